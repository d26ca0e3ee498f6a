"""Memory of a pipeline with "elmo": over a million tokens, and for one long document."""

import random

import spacy
import typer
from common import describe_machine, print_table
from process_state import MIB, read_state
from spacy.tokens import Doc


def make_text(n_tokens: int, n_types: int, seed: int) -> str:
    """RETURNS (str): Zipfian words that differ from seed to seed only in the rare ones."""
    rng = random.Random(seed)
    ranks = [int(n_types ** rng.random()) for _ in range(n_tokens)]
    return " ".join(f"w{rank}" if rank < 5000 else f"w{rank}x{seed}" for rank in ranks)


def main(
    tokens: int = typer.Option(1_000_000),
    doc_tokens: int = typer.Option(500, help="Tokens of a document"),
    long: int = typer.Option(100_000, help="Tokens of the one long document"),
) -> None:
    """Print two tables."""
    print(describe_machine())
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    nlp.initialize()
    n_docs = tokens // doc_tokens
    rows = []
    texts = (make_text(doc_tokens, 50_000, i) for i in range(n_docs))
    # The zone frees what spaCy itself keeps of new words.
    for part in range(10):
        with nlp.memory_zone():
            for _ in nlp.pipe(next(texts) for _ in range(n_docs // 10)):
                pass
        rows.append([f"{(part + 1) * tokens // 10:,}", f"{read_state().memory / MIB:.0f}"])
    print_table(["tokens", "resident, MiB"], rows)
    before = read_state().memory
    words = make_text(long, 50_000, -1).split()
    doc = nlp(Doc(nlp.vocab, words=words))
    print()
    print_table(
        ["one document, tokens", "doc.tensor, MiB", "resident before, MiB", "after"],
        [
            [
                f"{len(doc):,}",
                f"{doc.tensor.nbytes / MIB:.0f}",
                f"{before / MIB:.0f}",
                f"{read_state().memory / MIB:.0f}",
            ]
        ],
    )


if __name__ == "__main__":
    typer.run(main)
