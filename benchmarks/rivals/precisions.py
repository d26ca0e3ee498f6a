"""Speed of the same trained pipelines with shorter products in what makes the vectors."""

from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.training import Corpus

from spacy_elmo.inference.packed_layers import require_precision

from .rows import ROWS, Row
from .runs import RESULTS, Run, read_result
from .speed import measure_task, read_turns, use_threads, write_measured
from .tasks import TASKS, TIMED

RESULT = "precisions.json"
FULL = "fp32"
# By family of rows.
PRECISIONS = {"ELMo": (FULL, "bf16", "int8"), "transformer": (FULL, "bf16")}


def measure_precisions(
    work: Path, corpora: Path, *, turns: int, tokens: int, threads: int
) -> dict[str, Any]:
    """Measure every pipeline with ELMo or a transformer that was kept, and write
    WORK/results/precisions.json. The arguments are those of `measure_all`.

    RETURNS (dict[str, Any]): what is written: for each task, by row and precision, what
        `measure_task` gives; "test", the score of the pipeline with these products; and
        "is_trained", false if it was trained for its speed alone (`run --max-steps`).
    RAISES (typer.BadParameter): as `measure_all`.
    """
    use_threads(threads)
    tasks: dict[str, dict[str, dict[str, Any]]] = {}
    for task in TIMED:
        pipelines = load_variants(work, task)
        if pipelines:
            tasks[task] = measure_task(pipelines, read_turns(corpora / task, turns, tokens))
            for name, nlp in pipelines.items():
                found = tasks[task][name]
                found["test"] = score(nlp, corpora / task / "test.spacy", task)
                found["is_trained"] = is_trained(name.split()[0], task, work)
    conditions = {"threads": threads, "turns": turns, "tokens": tokens}
    return write_measured(work / RESULTS / RESULT, tasks, conditions)


def load_variants(work: Path, task: str) -> dict[str, Language]:
    """RETURNS (dict[str, Language]): By "row precision", for what the processor multiplies."""
    pipelines: dict[str, Language] = {}
    for row in ROWS.values():
        path = Run(row, task, 0).find_model(work)
        if path.exists():
            for precision in filter(is_there, PRECISIONS.get(row.family, ())):
                pipelines[f"{row.name} {precision}"] = load_with(row, path, precision)
    return pipelines


def is_there(precision: str) -> bool:
    """RETURNS (bool): Whether this processor multiplies it."""
    try:
        require_precision(precision, "cpu")
        return True
    except ValueError:
        return False


def load_with(row: Row, path: Path, precision: str) -> Language:
    """RETURNS (Language): A kept pipeline whose vectors are made with this precision. spaCy has no
    setting for a transformer's: its weights are rounded, and what comes after it gets float32."""
    if row.family == "ELMo":
        return spacy.load(path, config={"components.elmo.model.precision": precision})
    nlp = spacy.load(path)
    if precision == "bf16":
        transformer: Any = nlp.get_pipe("transformer")
        module = transformer.model.transformer.bfloat16()
        module.register_forward_hook(lambda module, inputs, output: _to_float(output))
    return nlp


def _to_float(output: Any) -> Any:
    """What `transformers` returns, with its tensors in float32."""
    for key, value in output.items():
        output[key] = value.float() if isinstance(value, torch.Tensor) else value
    return output


def is_trained(row: str, task: str, work: Path) -> bool:
    """RETURNS (bool): Whether the kept pipeline had all updates of the task."""
    result = read_result(Run(ROWS[row], task, 0), work)
    return result is not None and result["settings"]["max_steps"] == TASKS[task].max_steps


def score(nlp: Language, test: Path, task: str) -> float:
    """RETURNS (float): of a pipeline on the test set, percent."""
    return 100 * nlp.evaluate(list(Corpus(test)(nlp)))[TASKS[task].score]
