"""Speed of the same trained pipelines with shorter products in what makes the vectors."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import spacy
import torch
from common import describe_machine
from spacy.language import Language
from spacy.training import Corpus
from thinc.api import NumpyOps, set_current_ops

from spacy_elmo.experiments.results import get_origin
from spacy_elmo.util.checked_json import write_checked_json

from .rows import ROWS, Row
from .runs import RESULTS, Run, read_result
from .speed import Pipeline, measure_task, read_turns
from .tasks import TASKS, TIMED

RESULT = "precisions.json"
FULL = "fp32"
# What ELMo has a setting for.
PRECISIONS = (FULL, "bf16", "int8")


class InBfloat16:
    """A pipeline whose transformer's weights are bfloat16; spaCy has no setting for that. What
    comes after it gets float32, as before."""

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        transformer: Any = nlp.get_pipe("transformer")
        module = transformer.model.transformer.bfloat16()
        module.register_forward_hook(lambda module, inputs, output: _to_float(output))

    def __call__(self, text: str) -> Any:
        return self.nlp(text)

    def pipe(self, texts: Iterable[str], *, batch_size: int) -> Iterator[Any]:
        """As `Language.pipe`."""
        return self.nlp.pipe(texts, batch_size=batch_size)


def _to_float(output: Any) -> Any:
    """What `transformers` returns, with its tensors in float32."""
    for key, value in output.items():
        output[key] = value.float() if isinstance(value, torch.Tensor) else value
    return output


def measure_precisions(
    work: Path, corpora: Path, *, turns: int, tokens: int, threads: int
) -> dict[str, Any]:
    """Measure every pipeline with ELMo or a transformer that was kept, and write
    WORK/results/precisions.json. The arguments are those of `measure_all`.

    RETURNS (dict[str, Any]): what is written: for each task, by row and precision, what
        `measure_task` gives; "test", the score of the pipeline with these products; and
        "is_trained", false if it was trained for its speed alone (`run --max-steps`).
    """
    torch.set_num_threads(threads)
    set_current_ops(NumpyOps(use_blis=False))
    tasks: dict[str, dict[str, dict[str, Any]]] = {}
    for task in TIMED:
        pipelines = load_variants(work, task)
        if pipelines:
            tasks[task] = measure_task(pipelines, read_turns(corpora / task, turns, tokens))
            for name, nlp in pipelines.items():
                found = tasks[task][name]
                found["test"] = score(nlp, corpora / task / "test.spacy", task)
                found["is_trained"] = is_trained(name.split()[0], task, work)
    result = {"machine": describe_machine(), "threads": threads, "turns": turns, "tokens": tokens}
    result = {**result, **get_origin(), "tasks": tasks}
    write_checked_json(work / RESULTS / RESULT, result)
    return result


def load_variants(work: Path, task: str) -> dict[str, Pipeline]:
    """RETURNS (dict[str, Pipeline]): By "row precision", for what the processor multiplies."""
    pipelines: dict[str, Pipeline] = {}
    for row in ROWS.values():
        path = Run(row, task, 0).find_model(work)
        if not path.exists() or row.family not in ("ELMo", "transformer"):
            continue
        for precision in PRECISIONS:
            nlp = load_with(row, path, precision)
            if nlp is not None:
                pipelines[f"{row.name} {precision}"] = nlp
    return pipelines


def load_with(row: Row, path: Path, precision: str) -> Pipeline | None:
    """RETURNS (Pipeline | None): A kept pipeline whose vectors are made with this precision; None
    if it cannot be, on this processor."""
    if row.family == "transformer":
        if precision == FULL:
            return spacy.load(path)
        has_it = precision == "bf16" and torch.ops.mkldnn._is_mkldnn_bf16_supported()
        return InBfloat16(spacy.load(path)) if has_it else None
    nlp = spacy.load(path, config={"components.elmo.model.precision": precision})
    try:
        nlp("What the processor lacks is known at the first use.")
        return nlp
    except ValueError as err:
        if "[EL016]" in str(err):
            return None
        raise


def is_trained(row: str, task: str, work: Path) -> bool:
    """RETURNS (bool): Whether the kept pipeline had all updates of the task."""
    result = read_result(Run(ROWS[row], task, 0), work)
    return result is not None and result["settings"]["max_steps"] == TASKS[task].max_steps


def score(pipeline: Pipeline, test: Path, task: str) -> float:
    """RETURNS (float): of a pipeline on the test set, percent."""
    nlp = pipeline.nlp if isinstance(pipeline, InBfloat16) else pipeline
    assert isinstance(nlp, Language)
    return 100 * nlp.evaluate(list(Corpus(test)(nlp)))[TASKS[task].score]
