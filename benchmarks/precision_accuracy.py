"""What a lower precision costs a task: the same trained pipeline, scored with each."""

from pathlib import Path

import spacy
import typer
from common import describe_machine, print_table
from spacy.training import Corpus


def main(
    pipeline: Path = typer.Argument(..., help="Trained with elmo, such as output/model-best"),
    corpus: Path = typer.Argument(..., help="A .spacy file to score on"),
    score: str = typer.Option("tag_acc", help="Which of the scores"),
    precisions: str = typer.Option("fp32,bf16,int8", help="With commas"),
) -> None:
    """Print a table."""
    print(describe_machine())
    rows = []
    for precision in precisions.split(","):
        config = {"components": {"elmo": {"model": {"precision": precision}}}}
        nlp = spacy.load(pipeline, config=config)
        scores = nlp.evaluate(list(Corpus(corpus)(nlp)))
        rows.append([precision, f"{scores[score]:.2%}"])
    print_table(["precision", score], rows)


if __name__ == "__main__":
    typer.run(main)
