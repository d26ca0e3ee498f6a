"""What the experiments compare: where ELMo stands, and how its layers are weighted."""

from typing import Any, Dict, List, NamedTuple, Tuple, Union

from spacy.language import Language

from ..errors import Errors
from ..layers.listener import MIX_KEYS
from ..util.templates import read_template

SUITES = ("gain", "weighting", "placement", "samples", "vectors")
# λ of the learned mixes, as in the paper's table 2.
_WEAK, _STRONG = 0.001, 1.0


class Variant(NamedTuple):
    """A config's tok2vec.

    name (str): in the names of files.
    title (str): in tables.
    places (Tuple[str, ...]): where ELMo stands: "input" (before the encoder), "output"
        (behind it); none for spaCy's plain tok2vec.
    mix (Dict[str, Any]): keys of the listener's mix.
    has_vectors (bool): whether static vectors are there, too.
    """

    name: str
    title: str
    places: Tuple[str, ...]
    mix: Dict[str, Any]
    has_vectors: bool = False


def find_baseline(name: str) -> str:
    """name (str): of a variant. RETURNS (str): of the one without ELMo that it is compared with:
    with static vectors, the one that has them, too."""
    return "vectors" if name == "elmo_vectors" else "plain"


def choose_variants(suite: str, depth: int) -> List[Variant]:
    """List what a suite compares (Peters et al. 2018: weighting is table 2, placement table
    3, samples figure 1, gain the rows of table 1, and vectors with static vectors beside, which
    all of the paper's have).

    suite (str): one of `SUITES`.
    depth (int): LSTM layers of the biLM.
    RETURNS (List[Variant]): without ELMo first.
    RAISES (ValueError): EL064 for an unknown suite.
    """
    if suite not in SUITES:
        raise ValueError(Errors.EL064.format(suite=suite, known=", ".join(SUITES)))
    plain = Variant("plain", "without ELMo", (), {})
    learned = _at("input", "input", f"learned, λ = {_WEAK}", mix_l2=_WEAK)
    every = _at("input", "all", "all, side by side", **_read_preset_mix())
    if suite == "weighting":
        fixed = [_at("input", f"layer_{i}", _name_layer(i), output=i) for i in range(depth)]
        return [
            plain,
            _at("input", "top", "last layer only", output="top"),
            _at("input", "average", "plain average", output="average"),
            _at("input", "strong", f"learned, λ = {_STRONG:g}", mix_l2=_STRONG),
            learned,
            every,
            *fixed,
        ]
    if suite == "placement":
        mix = {"mix_l2": _WEAK}
        return [
            plain,
            learned._replace(title="input"),
            Variant("output", "output", ("output",), mix),
            Variant("both", "input and output", ("input", "output"), mix),
        ]
    elmo = every._replace(title="with ELMo")
    if suite == "vectors":
        static = [
            plain._replace(name="vectors", title="static vectors"),
            elmo._replace(name="elmo_vectors", title="static vectors and ELMo"),
        ]
        return [plain, elmo, *(variant._replace(has_vectors=True) for variant in static)]
    return [plain, elmo]


def _at(place: str, name: str, title: str, **mix: Union[str, float]) -> Variant:
    return Variant(name, title, (place,), mix)


def _read_preset_mix() -> Dict[str, Any]:
    listener = read_template("word_features")["tok2vec"]["input"]
    return {key: listener[key] for key in MIX_KEYS if key in listener}


def _name_layer(i: int) -> str:
    return f"LSTM layer {i} only" if i else "word layer only"


def get_score(component: str) -> str:
    """component (str): a factory. RETURNS (str): The score that it is chosen by, such as
    "tag_acc". RAISES (ValueError): EL061 if it has none."""
    nlp = Language()
    known = nlp.has_factory(component)
    weights = nlp.get_factory_meta(component).default_score_weights if known else None
    scores = {key: weight for key, weight in (weights or {}).items() if weight}
    if not scores:
        raise ValueError(Errors.EL061.format(name=component))
    return max(scores, key=lambda key: scores[key])
