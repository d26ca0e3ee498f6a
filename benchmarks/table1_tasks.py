"""The tasks of projects/table1, for scripts that change one thing in their configs."""

from pathlib import Path

from thinc.api import Config

from spacy_elmo.experiments.run_settings import RunSettings
from spacy_elmo.experiments.runs import Run, make_run_config, use_cache
from spacy_elmo.experiments.variants import Variant

PROJECT = Path(__file__).parent.parent / "projects" / "table1"
# Folder of the corpus: component, config.
TASKS = {
    "polarity": ("textcat", "sentiment.cfg"),
    "snli": ("elmo_entailment", "entailment.cfg"),
    "gum": ("ner", "entities.cfg"),
    "wnut17": ("ner", "entities.cfg"),
    "propbank": ("elmo_srl", "roles.cfg"),
    "ontogum": ("elmo_coref", "coreference.cfg"),
    "litbank_coref": ("elmo_coref", "coreference_singletons.cfg"),
    "squad": ("elmo_qa", "answers.cfg"),
}


def make_settings(
    task: str, corpora: Path, *, max_steps: int = 1000, patience: int = 0, eval_frequency: int = 200
) -> RunSettings:
    """task (str): one of `TASKS`. corpora (Path): folder with its corpus. The others: see
    `RunSettings`. RETURNS (RunSettings): its own."""
    component, config = TASKS[task]
    return RunSettings(
        str(corpora / task),
        component,
        max_steps=max_steps,
        patience=patience,
        eval_frequency=eval_frequency,
        config=str(PROJECT / config),
    )


def make_task_config(variant: Variant, settings: RunSettings, cache: Path) -> Config:
    """variant (Variant): without ELMo or with it. settings (RunSettings): of the task. cache
    (Path): for the layers. RETURNS (Config): what `train_config` trains with the first seed."""
    config = make_run_config(Run(variant, 1.0, 0), settings)
    if variant.places:
        use_cache(config, cache)
    config["paths"]["train"] = str(Path(settings.corpus) / "train.spacy")
    return config
