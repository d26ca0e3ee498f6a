"""Convert the data of table 1's tasks, by `python -m spacy elmo convert-data`."""

from pathlib import Path
from typing import NamedTuple

import typer

from spacy_elmo.cli import elmo_cli


class Source(NamedTuple):
    """format (str): of `convert-data`. files (dict[str, str]): of each split, and further test
    sets. parts (dict[str, str] | None): of splits that are a part of their file, by article.
    negatives (float): share of the questions that are asked where they have no answer, too."""

    format: str
    files: dict[str, str]
    parts: dict[str, str] | None = None
    negatives: float = 0


SPLITS = ("train", "dev", "test")
SNLI, PROPBANK = "entailment/snli/small", "srl/propbank_ewt_spans/ewt-propbank"
MNLI = "entailment/mnli_dev_matched/mnli-dev-matched.jsonl"
IN_PARTS = {split: split for split in SPLITS}
ONTOGUM, LITBANK = "coref/ontogum/ontogum", "coref/litbank/litbank"
GUM, NESTED = "ner/gum_named/gum-named", "ner/litbank_entities/litbank-entities"
SQUAD, XQUAD = "qa/squad11_dev_rebuilt/dev-v1.1.rebuilt.json", "qa/xquad_en/xquad.en.json"
SOURCES = {
    "gum": [Source("conll2003", {split: f"{GUM}-{split}.conll" for split in SPLITS})],
    # Made of SNLI's official dev set; its test set is the official one.
    "snli": [
        Source("snli", {split: f"{SNLI}/{split}.jsonl" for split in SPLITS}),
        Source("snli", {"mnli": MNLI}),
    ],
    "propbank": [
        Source("propbank_spans", {split: f"{PROPBANK}-{split}.gold_conll" for split in SPLITS})
    ],
    "ontogum": [
        Source("ontogum", {split: f"{ONTOGUM}-{split}.conllu" for split in SPLITS}),
        Source("litbank_coref", {"litbank": f"{LITBANK}-test.conll"}),
    ],
    "litbank_coref": [Source("litbank_coref", {s: f"{LITBANK}-{s}.conll" for s in SPLITS})],
    "litbank": [Source("litbank_entities", {split: f"{NESTED}-{split}.tsv" for split in SPLITS})],
    "squad": [
        Source("squad", dict.fromkeys(SPLITS, SQUAD), IN_PARTS),
        # Of the same articles: XQuAD's paragraphs are some of SQuAD's dev set.
        Source("squad", {"xquad": XQUAD}, {"xquad": "test"}),
    ],
    # A third of them without an answer.
    "squad_unanswered": [Source("squad", dict.fromkeys(SPLITS, SQUAD), IN_PARTS, 0.5)],
}


def main(
    data: Path = typer.Argument(..., help="Folder with the task data"),
    output: Path = typer.Argument(..., help="Folder to write"),
) -> None:
    """Write OUTPUT/<data set>/<split>.spacy."""
    for name, sources in SOURCES.items():
        for source in sources:
            for split, file in source.files.items():
                command = ["convert-data", source.format, str(find(data / file))]
                command += [str(output / name / f"{split}.spacy")]
                if source.parts:
                    command += ["--part", source.parts[split]]
                if source.negatives:
                    command += ["--negatives", str(source.negatives)]
                elmo_cli(command, standalone_mode=False)


def find(path: Path) -> Path:
    """RETURNS (Path): The file, plain or compressed."""
    return path if path.exists() else path.with_name(f"{path.name}.xz")


if __name__ == "__main__":
    typer.run(main)
