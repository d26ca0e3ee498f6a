"""A pipeline that runs for an hour: are memory, threads and open files the same at its end?"""

import itertools
import time
from collections.abc import Iterator
from contextlib import nullcontext
from statistics import median
from typing import NamedTuple

import spacy
import typer
from common import describe_machine, print_table
from memory import make_text
from process_state import MIB, ProcessState, read_state
from spacy.language import Language

# Of the samples, the first are left out: caches fill, and the allocator finds its size.
_WARM_UP = 0.3
# Words that the biLM keeps: few, so that there is soon room for no more.
_WORD_CACHE = 10_000
# That come again and again, where there are no new words.
_N_TEXTS = 2000


class Sample(NamedTuple):
    """minutes (float): since the start. tokens (int): read by then."""

    minutes: float
    tokens: int
    strings: int
    state: ProcessState


def main(
    pipeline: str = typer.Option("", help="Saved or installed; none: blank with the bundled elmo"),
    minutes: float = typer.Option(60.0, min=0.01),
    interval: float = typer.Option(
        60.0, min=0.01, help="Seconds between two lines; at most a tenth of the time"
    ),
    zones: bool = typer.Option(True, help="Give back what the vocab collects, batch by batch"),
    new_words: bool = typer.Option(
        True, help="Words that no text had before; else the same texts again and again"
    ),
    batch_texts: int = typer.Option(64, min=1),
    most_growth: float = typer.Option(16.0, help="MiB that are still called flat"),
) -> None:
    """Print a line for each minute and a verdict; the exit code is 1 if something grew."""
    print(describe_machine())
    nlp = load_pipeline(pipeline)
    samples = []
    interval = min(interval, 60 * minutes / 10)
    for sample in run(
        nlp,
        minutes,
        interval,
        zones=zones,
        n_texts=0 if new_words else _N_TEXTS,
        batch_texts=batch_texts,
    ):
        samples.append(sample)
        print(format_sample(sample), flush=True)
    print()
    print_table(
        ["minute", "tokens", "resident, MiB", "threads", "open files", "strings"],
        [format_row(sample) for sample in samples],
    )
    problems = find_growth(samples, most_growth * MIB)
    print()
    print("Not flat: " + "; ".join(problems) if problems else "Flat: nothing grew.")
    raise typer.Exit(bool(problems))


def load_pipeline(pipeline: str) -> Language:
    """RETURNS (Language): the named one, or a blank one with "elmo"."""
    if pipeline:
        return spacy.load(pipeline)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"word_cache": _WORD_CACHE}})
    nlp.initialize()
    return nlp


def run(
    nlp: Language, minutes: float, interval: float, *, zones: bool, n_texts: int, batch_texts: int
) -> Iterator[Sample]:
    """Read texts until the time is over: ever new ones, or `n_texts` again and again.

    YIELDS (Sample): after each interval, and at the end.
    """
    started = time.monotonic()
    n_tokens, next_sample = 0, interval
    for i in itertools.count():
        seeds = range(i * batch_texts, (i + 1) * batch_texts)
        texts = [make_text(5 + k % 40, 50_000, k % n_texts if n_texts else k) for k in seeds]
        with nlp.memory_zone() if zones else nullcontext():
            n_tokens += sum(len(doc) for doc in nlp.pipe(texts))
        seconds = time.monotonic() - started
        is_over = seconds >= 60 * minutes
        if is_over or seconds >= next_sample:
            yield Sample(seconds / 60, n_tokens, len(nlp.vocab.strings), read_state())
            next_sample += interval
        if is_over:
            return


def find_growth(samples: list[Sample], most_growth: float) -> list[str]:
    """RETURNS (list[str]): what grew from after the warm-up until the end; of memory, the
    median of the last third against that of the first."""
    warm = samples[int(_WARM_UP * len(samples)) :]
    if len(warm) < 3:
        return [f"{len(warm)} lines after the warm-up are too few to say, expected 3"]
    first, last = warm[0].state, warm[-1].state
    third = len(warm) // 3
    memory = [sample.state.memory for sample in warm]
    growth = median(memory[-third:]) - median(memory[:third])
    problems = [f"memory by {growth / MIB:.1f} MiB"] if growth > most_growth else []
    for name in ("threads", "handles"):
        if getattr(last, name) > getattr(first, name):
            problems.append(f"{name} from {getattr(first, name)} to {getattr(last, name)}")
    return problems


def format_row(sample: Sample) -> list[str]:
    """RETURNS (list[str]): the cells of a sample."""
    state = sample.state
    return [
        f"{sample.minutes:.1f}",
        f"{sample.tokens:,}",
        f"{state.memory / MIB:.0f}",
        str(state.threads),
        str(state.handles),
        f"{sample.strings:,}",
    ]


def format_sample(sample: Sample) -> str:
    """RETURNS (str): the same as a line of a log."""
    return "minute {}: {} tokens, {} MiB, {} threads, {} open files".format(*format_row(sample))


if __name__ == "__main__":
    typer.run(main)
