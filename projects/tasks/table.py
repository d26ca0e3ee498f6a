"""Write one table of the scores with ELMo and without."""

from pathlib import Path
from statistics import mean, stdev

import srsly
import typer
from tasks import TASKS

HEADER = ["task", "score", "split", "plain tok2vec", "ELMo", "fewer errors", "ratio", "seeds"]


def main(
    training: Path = typer.Argument(..., help="Folder with the scores"),
    output: Path = typer.Argument(..., help="Markdown file to write; JSON goes beside it"),
) -> None:
    """Average the scores over the seeds, in percent, and write them as a table."""
    lines = [HEADER, ["---"] * len(HEADER)]
    results = []
    for task, about in TASKS.items():
        for split in ("dev", "test"):
            values = {
                kind: read(training, task, kind, split, about.key) for kind in ("plain", "elmo")
            }
            if not all(values.values()):
                continue
            plain, elmo = mean(values["plain"]), mean(values["elmo"])
            # A perfect or an empty score has no errors, or nothing, to compare with.
            fewer = (elmo - plain) / (100 - plain) if plain < 100 else 0.0
            ratio = elmo / plain if plain else 0.0
            results.append({"task": task, "split": split, "score": about.key, **values})
            cells = [show(values["plain"]), show(values["elmo"]), f"{fewer:.0%}", f"{ratio:.2f}"]
            lines.append([about.title, about.score, split, *cells, str(len(values["elmo"]))])
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    output.write_text(text, "utf-8")
    srsly.write_json(output.with_suffix(".json"), results)
    print(text)


def read(training: Path, task: str, kind: str, split: str, key: str) -> list[float]:
    """RETURNS (list[float]): the score of each seed, in percent."""
    paths = sorted(training.glob(f"{task}_{kind}_*.json"))
    return [100 * srsly.read_json(path)[split][key] for path in paths]


def show(values: list[float]) -> str:
    """RETURNS (str): mean, and the deviation if there are several values."""
    spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
    return f"{mean(values):.2f}{spread}"


if __name__ == "__main__":
    typer.run(main)
