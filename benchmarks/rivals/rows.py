"""The rows: what is trained, as configs that differ in nothing but what makes the vectors."""

from importlib.util import find_spec
from typing import NamedTuple

from thinc.api import Config

from spacy_elmo.text.languages import TOKENIZER
from spacy_elmo.utils import read_template

from .configs import (
    Make,
    make_elmo,
    make_plain,
    make_pretrained,
    make_transformer,
    make_tuned_transformer,
    with_vectors,
)
from .inputs import DEPTHS, MEDIUM, Inputs
from .tasks import EVAL_FREQUENCY, Task

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
