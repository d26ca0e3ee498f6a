"""The data sets, the inputs, and the rows: training configs that differ in their vectors only."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from common import set_weights
from thinc.api import Config

from spacy_elmo.checkpoints.loaders import load_embedder
from spacy_elmo.experiments.runs import get_score
from spacy_elmo.files import digest, digest_file
from spacy_elmo.pipeline.presets import make_config
from spacy_elmo.text.languages import TOKENIZER
from spacy_elmo.utils import read_template


class Task(NamedTuple):
    """A data set.

    title (str): for people.
    component (str): factory of the component to train.
    max_steps (int): updates at most.
    patience (int): updates without a better dev score, after which training ends.
    """

    title: str
    component: str
    max_steps: int
    patience: int

    @property
    def score(self) -> str:
        """RETURNS (str): Key of the score that everything is chosen by."""
        return get_score(self.component)


# The first two have their speed measured, too.
TASKS = {
    "ewt": Task("UD English EWT, XPOS", "tagger", 3000, 1000),
    "wnut17": Task("WNUT 2017, entities", "ner", 2000, 800),
    "gum": Task("GUM, named entities", "ner", 2000, 800),
    "uner_ewt": Task("Universal NER on EWT", "ner", 3000, 1000),
}
TIMED = ("ewt", "wnut17")
EVAL_FREQUENCY = 200


# Layers of the transformer that frozen rows choose from.
DEPTHS = (2, 3, 6)
# The larger biLM, beside the one that is compared.
MEDIUM = "en_medium"
# How they were made, in their folder.
MADE = "made.json"


class Inputs(NamedTuple):
    """Where they are.

    work (Path): folder of `rivals.py prepare`.
    weights (str): folder of a biLM; "" for the bundled one.
    """

    work: Path
    weights: str = ""

    def find(self, name: str) -> Path:
        """name (str): "vectors", "floret", "pretrained", "en_medium" or "minilm_2".
        RETURNS (Path): its folder, or its file."""
        return self.work / "inputs" / name

    def find_weights(self, name: str) -> str:
        """name (str): "biLM" or "en_medium". RETURNS (str): its folder; "" for the bundled one."""
        return self.weights if name == "biLM" else str(self.find(name))

    def has(self, name: str) -> bool:
        """RETURNS (bool): Whether it is there."""
        return name == "biLM" or self.find(name).exists()

    def hash(self, name: str) -> str:
        """RETURNS (str): Digest of its content, which may change under the same path."""
        if name in ("biLM", MEDIUM):
            return _hash_bilm(self.find_weights(name))
        return hash_files(self.find(name))


@cache
def _hash_bilm(weights: str) -> str:
    return load_embedder(weights or None).hash_weights().hex()[:16]


@cache
def hash_files(path: Path) -> str:
    """path (Path): a file or a folder. RETURNS (str): digest of its names and contents."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    digests = [f"{file.relative_to(path)} {digest_file(file)}" for file in files]
    return digest("\n".join(digests).encode())[:16]


# Component and inputs -> config.
Make = Callable[[str, Inputs], Config]


def make_elmo(preset: str, factor: float = 0.0, bilm: str = "biLM") -> Make:
    """RETURNS (Make): With a preset of ELMo and one of the biLMs. With a factor, this is trained,
    too, at this part of the learning rate; its layers are cached where it is frozen."""

    def make(component: str, inputs: Inputs) -> Config:
        weights = inputs.find_weights(bilm)
        config = make_config(preset, [component], **set_weights(weights, "${paths.weights}"))
        config["paths"]["weights"] = weights or None
        config["paths"]["cache"] = str(inputs.work / "cache")
        elmo = config["components"]["elmo"]
        if factor:
            elmo["learn_rate_factor"], elmo["model"]["frozen"] = factor, False
        if elmo["model"]["frozen"]:
            config["initialize"]["components"]["elmo"]["activation_cache"] = {
                "@misc": "spacy-elmo.ActivationCache.v1",
                "path": "${paths.cache}",
                "dtype": "float32",
            }
        return config

    return make


def make_plain(component: str, inputs: Inputs | None = None) -> Config:
    """RETURNS (Config): With spaCy's word features and encoder, as in `word_features`."""
    config = make_config("word_features", [component])
    del config["components"]["elmo"], config["initialize"]["components"]
    config["nlp"]["pipeline"] = [component]
    tok2vec = config["components"][component]["model"]["tok2vec"]
    parts = {key: tok2vec[key] for key in ("embed", "encode")}
    config["components"][component]["model"]["tok2vec"] = {
        "@architectures": "spacy.Tok2Vec.v2",
        **parts,
    }
    return config


def with_vectors(make: Make, name: str) -> Make:
    """RETURNS (Make): The same, with static vectors: where a preset has no block for them, among
    the word features."""

    def make_with(component: str, inputs: Inputs) -> Config:
        config = make(component, inputs)
        tok2vec = config["components"][component]["model"]["tok2vec"]
        if "vectors" not in tok2vec:
            tok2vec["embed"]["include_static_vectors"] = True
        config["paths"]["vectors"] = str(inputs.find(name))
        return config

    return make_with


def make_pretrained(component: str, inputs: Inputs) -> Config:
    """RETURNS (Config): The plain one, from the weights of `spacy pretrain`. As spaCy's templates
    have it, with the tok2vec as a component: that of a parser is not the pretrained layer alone."""
    config = make_plain(component, inputs)
    model = config["components"][component]["model"]
    config["components"]["tok2vec"] = {"factory": "tok2vec", "model": model["tok2vec"]}
    config["nlp"]["pipeline"] = ["tok2vec", component]
    model["tok2vec"] = {
        "@architectures": "spacy.Tok2VecListener.v1",
        "width": model["tok2vec"]["encode"]["width"],
        "upstream": "tok2vec",
    }
    config["paths"]["init_tok2vec"] = str(inputs.find("pretrained"))
    config["initialize"]["init_tok2vec"] = "${paths.init_tok2vec}"
    config["pretraining"] = make_pretraining_block()
    return config


def make_pretraining_block() -> dict[str, Any]:
    """RETURNS (dict[str, Any]): [pretraining]: characters of each word, one pass."""
    return {
        "component": "tok2vec",
        "layer": "",
        "max_epochs": 1,
        "dropout": 0.2,
        "n_save_every": None,
        "n_save_epoch": None,
        "corpus": "corpora.pretrain",
        "batcher": {
            "@batchers": "spacy.batch_by_words.v1",
            "size": 3000,
            "discard_oversize": False,
            "tolerance": 0.2,
        },
        "objective": {
            "@architectures": "spacy.PretrainCharacters.v1",
            "maxout_pieces": 3,
            "hidden_size": 300,
            "n_characters": 4,
        },
        "optimizer": {"@optimizers": "Adam.v1", "learn_rate": 0.001, "use_averages": True},
    }


def make_transformer(depth: int) -> Make:
    """RETURNS (Make): A transformer's first layers, frozen, in ELMo's place in
    `word_features`."""

    def make(component: str, inputs: Inputs) -> Config:
        config = _add_transformer(make_plain(component, inputs), inputs, depth)
        preset = make_config("word_features", [component])
        ours = preset["components"][component]["model"]["tok2vec"]
        config["components"][component]["model"]["tok2vec"] = {
            **ours,
            "input": make_transformer_listener(),
        }
        config["training"]["frozen_components"] = ["transformer"]
        # Listeners of a frozen transformer read what it has written to the doc.
        config["training"]["annotating_components"] = ["transformer"]
        return config

    return make


def make_tuned_transformer(rate: float) -> Make:
    """RETURNS (Make): The whole transformer, trained, and nothing else before the task."""

    def make(component: str, inputs: Inputs) -> Config:
        config = _add_transformer(make_plain(component, inputs), inputs, max(DEPTHS))
        config["components"][component]["model"]["tok2vec"] = make_transformer_listener()
        # As in spaCy's own template for transformers.
        config["training"]["optimizer"] = {
            "@optimizers": "Adam.v1",
            "L2_is_weight_decay": True,
            "L2": 0.01,
            "grad_clip": 1.0,
            "use_averages": False,
            "learn_rate": {
                "@schedules": "warmup_linear.v1",
                "warmup_steps": 250,
                "total_steps": "${training.max_steps}",
                "initial_rate": rate,
            },
        }
        return config

    return make


def _add_transformer(config: Config, inputs: Inputs, depth: int) -> Config:
    # From a pipeline: spaCy initializes no frozen component.
    config["components"]["transformer"] = {"source": "${paths.transformer}"}
    config["paths"]["transformer"] = str(inputs.find(f"minilm_{depth}"))
    config["nlp"]["pipeline"] = ["transformer", *config["nlp"]["pipeline"]]
    return config


def make_transformer_listener() -> dict[str, Any]:
    return {
        "@architectures": "spacy-transformers.TransformerListener.v1",
        "grad_factor": 1.0,
        "pooling": {"@layers": "reduce_mean.v1"},
        "upstream": "transformer",
    }


# Learning rates that the fine-tuned transformer chooses from; spaCy's template has the first.
RATES = (5e-5, 1e-4, 4e-4)
# Parts of the tasks' learning rate that the fine-tuned biLM chooses from.
FACTORS = (0.02, 0.1, 0.3)
# The one that the preset has.
FACTOR = read_template("fine_tune")["components"]["elmo"]["learn_rate_factor"]
TUNED_ELMO = "fine-tuned ELMo"


class Row(NamedTuple):
    """A way to make vectors.

    name (str): in the names of files.
    title (str): in tables.
    family (str): "tok2vec", "ELMo" or "transformer".
    make (Callable[[str, Inputs], Config]): component and inputs -> config.
    needs (tuple[str, ...]): names of inputs.
    group (str): of the rows of one group, the best on dev is reported; "" for none.
    """

    name: str
    title: str
    family: str
    make: Make
    needs: tuple[str, ...] = ()
    group: str = ""


def explain_missing(row: Row, inputs: Inputs) -> str:
    """RETURNS (str): Why a row cannot be measured here; "" if it can."""
    if row.family == "transformer" and find_spec("spacy_transformers") is None:
        return "spacy-transformers is not installed"
    missing = [name for name in row.needs if not inputs.has(name)]
    return f"without {', '.join(missing)}" if missing else ""


def make_training_config(row: Row, task: Task, inputs: Inputs, seed: int) -> Config:
    """RETURNS (Config): What a row trains on a task, without the paths of its corpus."""
    config = row.make(task.component, inputs)
    # spaCy's own for some languages needs more packages; the data is tokenized.
    config["nlp"]["tokenizer"] = dict(TOKENIZER)
    config["training"].update(
        max_steps=task.max_steps, patience=task.patience, eval_frequency=EVAL_FREQUENCY
    )
    config["system"]["seed"] = seed
    return config


def _list_rows() -> list[Row]:
    static = "vectors of en_core_web_md"
    rows = [
        Row("plain", "tok2vec", "tok2vec", make_plain),
        Row(
            "plain_vectors",
            f"tok2vec, {static}",
            "tok2vec",
            with_vectors(make_plain, "vectors"),
            ("vectors",),
        ),
        Row(
            "plain_floret",
            "tok2vec, floret vectors",
            "tok2vec",
            with_vectors(make_plain, "floret"),
            ("floret",),
        ),
        Row(
            "plain_pretrained",
            "tok2vec, spacy pretrain",
            "tok2vec",
            make_pretrained,
            ("pretrained",),
        ),
    ]
    for preset in ("shared_mix", "task_mix", "word_features"):
        rows.append(Row(f"elmo_{preset}", f"ELMo, {preset}", "ELMo", make_elmo(preset), ("biLM",)))
    for factor in FACTORS:
        title = f"ELMo, fine_tune, learn_rate_factor {factor:g}"
        name = f"elmo_tuned_{factor:g}"
        rows.append(Row(name, title, "ELMo", make_elmo("fine_tune", factor), ("biLM",), TUNED_ELMO))
    needs = ("biLM", "vectors")
    make = with_vectors(make_elmo("static_vectors"), "vectors")
    rows.append(Row("elmo_vectors", f"ELMo, static_vectors, {static}", "ELMo", make, needs))
    make = with_vectors(make_elmo("static_vectors", FACTOR), "vectors")
    title = f"ELMo, static_vectors, {static}, fine-tuned"
    rows.append(Row("elmo_tuned_vectors", title, "ELMo", make, needs))
    make, title = make_elmo("word_features", bilm=MEDIUM), f"ELMo {MEDIUM}, word_features"
    rows.append(Row("medium_word_features", title, "ELMo", make, (MEDIUM,)))
    make = with_vectors(make_elmo("static_vectors", bilm=MEDIUM), "vectors")
    title = f"ELMo {MEDIUM}, static_vectors, {static}"
    rows.append(Row("medium_vectors", title, "ELMo", make, (MEDIUM, "vectors")))
    for depth in DEPTHS:
        title = f"MiniLM-L6 frozen, {depth} layers, word features"
        name = f"minilm_{depth}"
        rows.append(Row(name, title, "transformer", make_transformer(depth), (name,), "frozen"))
    for rate in RATES:
        title = f"MiniLM-L6 fine-tuned, rate {rate:g}"
        make = make_tuned_transformer(rate)
        name = f"minilm_tuned_{rate:g}"
        rows.append(Row(name, title, "transformer", make, (f"minilm_{max(DEPTHS)}",), "fine-tuned"))
    return rows


ROWS = {row.name: row for row in _list_rows()}
