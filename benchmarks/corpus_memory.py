"""Memory while a long text streams through tokenizer, shuffling and batches."""

import resource
from pathlib import Path

import typer
from common import print_table

from spacy_elmo.language_model.vocabulary import SPECIAL_WORDS, Vocabulary
from spacy_elmo.pretraining.stream import BatchStream
from spacy_elmo.text.corpus import Corpus, TextSource, cutter_maker


def main(
    megabytes: int = typer.Option(2000, help="Text to read"),
    text: Path = typer.Option(..., help="File or folder to read over and over"),
    n_workers: int = typer.Option(0, help="Processes that tokenize"),
) -> None:
    """Print the resident memory of this process at each twentieth of the way."""
    source = TextSource(str(text), 0)
    make_cutter = cutter_maker("en", {}, window_share=0.25)
    corpus = Corpus({"x": source}, {"x": 1.0}, make_cutter, n_workers=n_workers)
    stream = BatchStream(
        corpus.read,
        Vocabulary([*SPECIAL_WORDS, "the"]),
        batch_tokens=8192,
        buffer_tokens=1_000_000,
        seed=0,
    )
    rows: list[list[str]] = []
    n_bytes = 0.0
    for step in stream.steps(stream.start(corpus.start())):
        # About what a token is in English text, its space counted.
        n_bytes += step.n_targets * 5.0
        if n_bytes >= (len(rows) + 1) * megabytes * 1e6 / 20:
            rows.append([f"{n_bytes / 1e6:.0f}", f"{resident():.0f}"])
            print(*rows[-1], flush=True)
        if len(rows) == 20:
            break
    print_table(["text, MB", "resident, MB"], rows)


def resident() -> float:
    """RETURNS (float): MB of this process in memory now."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


if __name__ == "__main__":
    typer.run(main)
