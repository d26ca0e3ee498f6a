"""Tiny trained pipelines of every component and preset, made through public names alone: a test
of this folder says the same of any version of the package."""

import random
from pathlib import Path

import numpy as np
import spacy
import srsly
from spacy.cli import app
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.vectors import Vectors
from typer.testing import CliRunner

from spacy_elmo import make_config

from ..support.toy_wordnet import make_lines, write_wordnet

# A tiny biLM.
SHAPE = {
    "width": 8,
    "depth": 2,
    "cell_width": 6,
    "projection": True,
    "char_width": 3,
    "filters": [[1, 3], [2, 4]],
    "n_highway": 1,
    "max_chars": 14,
}
RANDOM = {"@misc": "spacy-elmo.RandomLoader.v1", "seed": 1}
TEXTS = [
    "Sam eats green eggs .",
    "",
    "Ham !",
    "  Ann   said : \n “ eat ham ” and Sam eats eggs . ok",
]
WORDS = ["Sam", "eats", "green", "eggs", "ham", "and"]
PRESETS = ("shared_mix", "task_mix", "word_features", "static_vectors", "fine_tune", "allennlp")
TASKS = (
    "elmo_coref",
    "elmo_entailment",
    "elmo_qa",
    "elmo_srl",
    "textcat",
    "spancat",
    "morphologizer",
)


def run(*arguments, exit_code=0, input=None):
    """Run a spaCy command in this process. RETURNS (str): what it printed."""
    spacy.registry.cli.get_all()
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)
    assert result.exit_code == exit_code, (result.output, result.exception)
    return result.output


def make_gold(vocab, task, seed=0, n_docs=16):
    """Annotated docs: each label can be seen from single words."""
    rng = random.Random(seed)
    return [_annotate(vocab, task, rng) for _ in range(n_docs)]


def _annotate(vocab, task, rng):
    words = [rng.choice(WORDS) for _ in range(rng.randrange(4, 9))]
    n = len(words)
    if task == "elmo_coref":
        doc = Doc(vocab, words=words)
        places = [i for i, word in enumerate(words) if word == "Sam"]
        # An empty group says that the doc was annotated, and has no chain.
        doc.spans["coref_clusters_1"] = [doc[i : i + 1] for i in places] if len(places) > 1 else []
        return doc
    if task in ("elmo_entailment", "elmo_qa"):
        names = ("premise", "hypothesis") if task == "elmo_entailment" else ("question", "context")
        doc = Doc(vocab, words=words, sent_starts=[i in (0, 2) for i in range(n)])
        doc.spans[names[0]] = [Span(doc, 0, 2, label=names[0])]
        doc.spans[names[1]] = [Span(doc, 2, n, label=names[1])]
        has_ham = "ham" in words[2:]
        if task == "elmo_entailment":
            doc.cats = {"yes": float(has_ham), "no": float(not has_ham)}
        else:
            spans = [Span(doc, i, i + 1, label="answer") for i in range(2, n) if words[i] == "ham"]
            doc.spans["answers"] = SpanGroup(doc, name="answers", spans=spans)
        return doc
    if task == "elmo_srl":
        words = [rng.choice(["Sam", "Ann"]), "eats", rng.choice(["ham", "eggs"]), "."]
        doc = Doc(vocab, words=words, sent_starts=[True, False, False, False])
        verb = Span(doc, 1, 2, label="V")
        doc.spans["srl_predicates"] = [verb]
        doc.spans["srl_1"] = [verb, Span(doc, 0, 1, label="A0"), Span(doc, 2, 3, label="A1")]
        return doc
    is_name = [word == "Sam" for word in words]
    doc = Doc(
        vocab,
        words=words,
        tags=["NAME" if name else "WORD" for name in is_name],
        pos=["PROPN" if name else "NOUN" for name in is_name],
        ents=["B-PER" if name else "O" for name in is_name],
    )
    doc.cats = {"good": float("ham" in words), "bad": float("ham" not in words)}
    doc.spans["sc"] = [Span(doc, i, i + 1, label="PER") for i in range(n) if is_name[i]]
    return doc


def write_vectors(folder):
    """Write a pipeline with static vectors. RETURNS (Path): its folder."""
    nlp = spacy.blank("en")
    data = np.random.default_rng(0).normal(size=(len(WORDS), 12)).astype("f")
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=WORDS)
    nlp.to_disk(folder)
    return folder


def write_training(folder, name):
    """Write a training config and its corpora. name (str): of a preset, which trains a tagger and
    an entity recogniser, or of a component. RETURNS (Path): the config, for `spacy train`."""
    folder.mkdir(parents=True, exist_ok=True)
    preset = name if name in PRESETS else "task_mix"
    components = ["tagger", "ner"] if name in PRESETS else [name]
    vocab = spacy.blank("en").vocab
    for seed, part in enumerate(("train", "dev")):
        docs = make_gold(vocab, name, seed)
        DocBin(docs=docs, store_user_data=True).to_disk(folder / f"{part}.spacy")
    config = make_config(preset, components, loader=RANDOM)
    config["components"]["elmo"]["model"].update(SHAPE)
    config["paths"].update({part: str(folder / f"{part}.spacy") for part in ("train", "dev")})
    if preset == "static_vectors":
        config["paths"]["vectors"] = str(write_vectors(folder / "vectors"))
    for component in components:
        model = config["components"][component]["model"]
        if str(model.get("@architectures", "")).startswith("spacy-elmo."):
            model["width"] = 12
    config["training"].update({"max_steps": 4, "eval_frequency": 2})
    config.to_disk(folder / "config.cfg", interpolate=False)
    run("init", "fill-config", folder / "config.cfg", folder / "filled.cfg")
    return folder / "filled.cfg"


def train_pipeline(folder, name):
    """Train a pipeline by `spacy train`. RETURNS (Path): the folder with the last one."""
    config = write_training(folder, name)
    printed = run("train", config, "--output", folder / "output")
    assert "Saved pipeline" in printed
    return folder / "output" / "model-last"


def save_pipeline(folder, name):
    """Save a pipeline without a trained component. RETURNS (Path): its folder."""
    nlp = spacy.blank("en")
    if name == "elmo_lm":
        nlp.add_pipe("elmo_lm")
        nlp.initialize()
    elif name == "elmo":
        nlp.add_pipe("elmo", config={"store_layers": True})
    else:
        elmo = {"@architectures": "spacy-elmo.Elmo.v2", **SHAPE}
        nlp.add_pipe("elmo", config={"model": elmo, "store_layers": True})
        nlp.config["initialize"]["components"]["elmo"] = {"loader": RANDOM}
        nlp.initialize()
        nlp.to_disk(folder / "elmo")
        write_wordnet(folder / "dict")
        srsly.write_jsonl(folder / "senses.jsonl", make_lines())
        run(
            *("elmo", "train-senses", folder / "senses.jsonl", folder / "dict"),
            *(folder / "pipeline", "--weights", folder / "elmo"),
        )
        return folder / "pipeline"
    nlp.to_disk(folder / "pipeline")
    return folder / "pipeline"


def make_pipeline(folder: Path, name: str) -> Path:
    """Make a pipeline of any component or preset. RETURNS (Path): the folder it is saved in."""
    folder.mkdir(parents=True, exist_ok=True)
    if name in ("elmo", "elmo_lm", "elmo_senses"):
        return save_pipeline(folder, name)
    return train_pipeline(folder, name)


def make_inputs(nlp, name):
    """Docs to be predicted: texts, or pairs of texts for the components that read these."""
    if name in ("elmo_entailment", "elmo_qa"):
        docs = make_gold(nlp.vocab, name, seed=3, n_docs=4)
        for doc in docs:
            doc.cats = {}
            doc.spans.pop("answers", None)
        return docs
    # spaCy's textcat scores an empty doc otherwise where no doc of the batch has words.
    return [nlp.make_doc(text) for text in TEXTS if text or name != "textcat"]


def describe(doc):
    """Collect what components wrote. RETURNS (Tuple[List, Any]): arrays, and the rest."""
    senses = [token._.sense for token in doc] if doc.has_extension("sense") and len(doc) else []
    arrays = [np.asarray(doc.tensor), np.array([doc.cats[key] for key in sorted(doc.cats)])]
    for name in ("elmo", "elmo_lm"):
        written = (doc.has_extension(name) and doc._.get(name)) or {}
        if name == "elmo":
            written = {k: v for entry in written.values() for k, v in entry.items()}
        arrays += [v for _, v in sorted(written.items()) if isinstance(v, np.ndarray)]
    rest = [
        [(t.text, t.tag_, t.pos_, t.ent_type_, t.is_sent_start) for t in doc],
        sorted(doc.cats),
        {key: [(s.start, s.end, s.label_) for s in group] for key, group in doc.spans.items()},
        senses,
    ]
    return arrays, rest


def assert_same(docs, expected, atol=1e-5):
    """Compare docs by the results of components."""
    docs, expected = list(docs), list(expected)
    assert len(docs) == len(expected) > 0
    for doc, other in zip(docs, expected):
        (arrays, rest), (other_arrays, other_rest) = describe(doc), describe(other)
        assert rest == other_rest
        assert len(arrays) == len(other_arrays)
        for array, another in zip(arrays, other_arrays):
            np.testing.assert_allclose(array, another, atol=atol, rtol=0)
