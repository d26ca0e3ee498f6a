"""Score a trained pipeline, round its weights, and write it as a package with a card."""

import shutil
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import spacy
import srsly
import typer
from convert_treebank import find_file
from make_config import VARIANTS
from spacy.cli.package import package
from spacy.language import Language
from spacy.training import Corpus
from spacy.training.augment import create_combined_augmenter

augment = partial(
    create_combined_augmenter,
    whitespace_level=0.0,
    whitespace_per_token=0.0,
    whitespace_variants=None,
)
# Form of the test texts -> settings of the reader.
TESTS: dict[str, dict[str, Any]] = {
    "running text": {},
    "gold tokens": {"gold_preproc": True},
    "lower case": {"augmenter": augment(1.0, 0.0, None)},
    "other quotes": {"augmenter": augment(0.0, 1.0, VARIANTS)},
}
SCORES = {
    "tag_acc": "XPOS",
    "pos_acc": "UPOS",
    "morph_acc": "morphology",
    "lemma_acc": "lemmas",
    "dep_uas": "UAS",
    "dep_las": "LAS",
    "sents_f": "sentences, F1",
    "ents_p": "entities, precision",
    "ents_r": "entities, recall",
    "ents_f": "entities, F1",
}


def main(
    pipeline: Path = typer.Argument(..., help="Trained pipeline"),
    corpus: Path = typer.Argument(..., help=".spacy file to score it on"),
    treebank: Path = typer.Argument(..., help="Folder with the treebank; its files name it"),
    output: Path = typer.Argument(..., help="Folder to write the package into"),
) -> None:
    """Write a folder in OUTPUT, which pip can install. Its name, licence and sources are those of
    NAME.json beside this script, such as en_ewt.json; without it, the name is the treebank's."""
    nlp = spacy.load(pipeline)
    name = find_file(treebank, "*-ud-train.conllu").name.partition("-")[0]
    meta = Path(__file__).with_name(f"{name}.json")
    named = srsly.read_json(meta) if meta.exists() else {"name": name.replace("_", "_elmo_")[3:]}
    round_weights(nlp)
    found = {name: nlp.evaluate([*Corpus(corpus, **s)(nlp)]) for name, s in TESTS.items()}
    nlp.meta.update(named)
    nlp.meta["performance"] = {key: found["running text"].get(key) for key in SCORES}
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        nlp.to_disk(folder / "pipeline")
        (folder / "pipeline" / "README.md").write_text(make_card(nlp, found), encoding="utf-8")
        (folder / "pipeline" / "LICENSE").write_text(make_licence(nlp), encoding="utf-8")
        package(folder / "pipeline", folder, create_sdist=False)
        output /= f"{nlp.lang}_{nlp.meta['name']}"
        shutil.rmtree(output, ignore_errors=True)
        shutil.move(next(folder.glob("*-*")), output)
        # setup.py copies it, too: installing leaves the folder as it is.
        for place in (output / output.name, *output.glob("*/*-*")):
            shutil.copy(output / "meta.json", place)
    print(f"{output}: {sum(f.stat().st_size for f in output.rglob('*/model')) / 1e6:.1f} MB")


def round_weights(nlp: Language) -> None:
    """Round to float16, in place: the package is half as large when it is compressed."""
    for _, pipe in nlp.pipeline:
        for node in pipe.model.walk() if hasattr(pipe, "model") else ():
            for name in node.param_names:
                if node.has_param(name):
                    node.set_param(name, node.get_param(name).astype("float16").astype("float32"))


def make_licence(nlp: Language) -> str:
    """RETURNS (str): LICENSE of the package."""
    return (
        f"The weights are licensed under {nlp.meta['license']}, see "
        "https://creativecommons.org/licenses. They were derived from works of other authors:\n\n"
        + "\n".join(list_sources(nlp))
        + "\n"
    )


def list_sources(nlp: Language) -> list[str]:
    """RETURNS (list[str]): A line for each source of the weights."""
    return [
        f"- {s}"
        if isinstance(s, str)
        else f"- {s['name']} ({s['author']}), {s['license']}: {s['url']}"
        for s in nlp.meta["sources"]
    ]


def make_card(nlp: Language, found: dict[str, dict[str, Any]]) -> str:
    """RETURNS (str): README.md of the package."""
    name = f"{nlp.lang}_{nlp.meta['name']}"
    rows = [f"| | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
    for key, title in SCORES.items():
        values = [each.get(key) for each in found.values()]
        if any(values):
            rows.append(f"| {title} | {' | '.join(f'{100 * (v or 0):.1f}' for v in values)} |")
    return "\n".join(
        [
            f"# {name}\n\n{nlp.meta['description']}\n",
            f"Components: {', '.join(nlp.pipe_names)}. Licence: {nlp.meta['license']}.\n",
            f'```python\nimport spacy\n\nnlp = spacy.load("{name}")\n```\n',
            "Scores on the test part, percent, by spaCy's own scorer (LAS without punctuation):\n",
            *rows,
            "\nTrained on:\n",
            *list_sources(nlp),
            "",
        ]
    )


if __name__ == "__main__":
    typer.run(main)
