"""Save a pipeline with the bundled biLM, for vectors and similarity."""

from pathlib import Path

import spacy
import typer

# Words that the biLM keeps: few, so that memory is soon what it will be.
WORD_CACHE = 10_000


def main(output: Path = typer.Argument(..., help="Folder to write")) -> None:
    """Write OUTPUT, unless there is something: it may be a pipeline of your own."""
    if output.exists() and any(output.iterdir()):
        print(f"Kept {output}, which is there. Remove it, or give another folder, for a new one.")
        return
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
