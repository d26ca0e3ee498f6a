"""Write the training config of a pipeline: a component for each kind of annotation in a corpus."""

from pathlib import Path

import spacy
import typer
from convert_treebank import find_file
from spacy.tokens import DocBin
from thinc.api import Config

from spacy_elmo import make_config
from spacy_elmo.checkpoints.loaders import read_config
from spacy_elmo.language_model.evaluation import find_recorded_tokenizer

# Component -> what its examples have.
ANNOTATION = {
    "tagger": "TAG",
    "morphologizer": "POS",
    "parser": "DEP",
    "trainable_lemmatizer": "LEMMA",
    "ner": "ENT_IOB",
}
BUNDLED = "en_small"
# Smaller than the preset's, so that the package is: 4 MB.
ENTITY_ENCODER = {"embed": {"rows": [2500, 500, 1250, 1250]}, "encode": {"depth": 2}}
# Typographical quotation marks and apostrophes, which the treebank lacks.
APOSTROPHES = ("'s", "n't", "'m", "'re", "'ve", "'ll", "'d", "'")
VARIANTS = {
    "single": [
        {"tags": ["POS", "RB", "VBZ", "VBP", "MD", "VBD"], "variants": [a, a.replace("'", "’")]}
        for a in APOSTROPHES
    ],
    "paired": [
        {"tags": ["``", "''"], "variants": [["'", "'"], ["‘", "’"]]},
        {"tags": ["``", "''"], "variants": [['"', '"'], ["“", "”"]]},
    ],
}
AUGMENTER = {
    "@augmenters": "spacy.combined_augmenter.v1",
    "lower_level": 0.1,
    "orth_level": 0.3,
    "orth_variants": VARIANTS,
    "whitespace_level": 0.1,
    "whitespace_per_token": 0.05,
    "whitespace_variants": [" ", "\n", "\n\n", "\t"],
}


def main(
    treebank: Path = typer.Argument(
        ..., help="Folder with the treebank; its files name the language"
    ),
    corpus: Path = typer.Argument(..., help="Folder with train.spacy"),
    output: Path = typer.Argument(..., help="Config to write"),
    weights: str = typer.Option(
        "../../work/{lang}_small/model-best", help="BiLM of a language that is not English"
    ),
) -> None:
    """Write the config; `spacy init fill-config` completes it."""
    lang = find_file(treebank, "*-ud-train.conllu").name.partition("_")[0]
    weights = BUNDLED if lang == "en" else weights.format(lang=lang)
    lang, tokenizer = find_recorded_tokenizer(weights, lang)
    docs = list(DocBin().from_disk(corpus / "train.spacy").get_docs(spacy.blank("xx").vocab))
    components = [
        name for name, attr in ANNOTATION.items() if any(doc.has_annotation(attr) for doc in docs)
    ]
    own = {"name": weights} if weights == BUNDLED else {"path": weights}
    loader = "BundledLoader.v2" if weights == BUNDLED else "CheckpointLoader.v1"
    config = make_config(
        "word_features",
        components,
        lang=lang,
        tokenizer=tokenizer,
        shape=read_config(weights),
        loader={"@misc": f"spacy-elmo.{loader}", **own},
        cache=str(output.parent / "cache"),
    )
    if "ner" in components:
        entities = Config(config["components"]["ner"]["model"]["tok2vec"]).merge(ENTITY_ENCODER)
        config["components"]["ner"]["model"]["tok2vec"] = entities
    config["corpora"]["train"]["augmenter"] = AUGMENTER
    if weights == BUNDLED:
        config["components"]["elmo"]["installed_weights"] = weights
    config.to_disk(output)
    print(f"{output}: {', '.join(components)}")


if __name__ == "__main__":
    typer.run(main)
