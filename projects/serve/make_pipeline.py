"""Save a pipeline with the bundled biLM, for vectors and similarity."""

from pathlib import Path

import spacy
import typer

# Words that the biLM keeps: few, so that memory is soon what it will be.
WORD_CACHE = 10_000


def main(output: Path = typer.Argument(..., help="Folder to write")) -> None:
    """Write OUTPUT."""
    make_pipeline(output)
    print(f"Wrote {output}")


def make_pipeline(output: Path) -> None:
    """output (Path): folder of the pipeline."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"word_cache": WORD_CACHE}})
    nlp.initialize()
    nlp.to_disk(output)


if __name__ == "__main__":
    typer.run(main)
