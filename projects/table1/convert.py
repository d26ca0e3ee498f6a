"""Convert the data of table 1's tasks, by `python -m spacy elmo convert-data`."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import typer


class Source(NamedTuple):
    """format (str): of `convert-data`. files (dict[str, str]): of each split. is_divided (bool):
    whether the splits are parts of one file, by article."""

    format: str
    files: dict[str, str]
    is_divided: bool = False


SPLITS = ("train", "dev", "test")
SNLI, PROPBANK = "entailment/snli/small", "srl/propbank_ewt_spans/ewt-propbank"
ONTOGUM, SQUAD = "coref/ontogum/ontogum", "qa/squad11_dev_rebuilt/dev-v1.1.rebuilt.json"
SOURCES = {
    # Made of SNLI's official dev set; its test set is the official one.
    "snli": Source("snli", {split: f"{SNLI}/{split}.jsonl" for split in SPLITS}),
    "propbank": Source(
        "propbank_spans", {split: f"{PROPBANK}-{split}.gold_conll" for split in SPLITS}
    ),
    "ontogum": Source("ontogum", {split: f"{ONTOGUM}-{split}.conllu" for split in SPLITS}),
    "squad": Source("squad", dict.fromkeys(SPLITS, SQUAD), is_divided=True),
}


def main(
    data: Path = typer.Argument(..., help="Folder with the task data"),
    output: Path = typer.Argument(..., help="Folder to write"),
) -> None:
    """Write OUTPUT/<data set>/<split>.spacy."""
    for name, source in SOURCES.items():
        for split, file in source.files.items():
            command = ["convert-data", source.format, find(data / file)]
            command.append(output / name / f"{split}.spacy")
            if source.is_divided:
                command += ["--part", split]
            subprocess.run([sys.executable, "-m", "spacy", "elmo", *map(str, command)], check=True)


def find(path: Path) -> Path:
    """RETURNS (Path): The file, plain or compressed."""
    return path if path.exists() else path.with_name(f"{path.name}.xz")


if __name__ == "__main__":
    typer.run(main)
