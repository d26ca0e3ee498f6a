"""What the experiments compare: where ELMo stands, and how its layers are weighted."""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from spacy.language import Language

from ..errors import Errors

SUITES = ("gain", "weighting", "placement", "samples", "vectors")
# λ of the learned mixes, as in the paper's table 2.
_WEAK, _STRONG = 0.001, 1.0
# What spaCy calls a group of spans where nobody says it.
_SPANS_KEY = "sc"


class Variant(NamedTuple):
    """A config's tok2vec.

    name (str): in the names of files.
    title (str): in tables.
    places (Tuple[str, ...]): where ELMo stands: "input" (before the encoder), "output"
        (behind it); none for spaCy's plain tok2vec. Without a `mix` of its own, a variant with ELMo
        has it where the training config does.
    mix (Dict[str, Any]): keys of the listener's mix that are not as in the training config or,
        where that has none, in the preset: norm and dropout are the same in all variants.
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
    learned = _before_encoder("input", f"learned, λ = {_WEAK}", output="mix", mix_l2=_WEAK)
    elmo = _before_encoder("elmo", "with ELMo")
    if suite == "weighting":
        fixed = [_before_encoder(f"layer_{i}", _name_layer(i), output=i) for i in range(depth)]
        return [
            plain,
            _before_encoder("top", "last layer only", output="top"),
            _before_encoder("average", "plain average", output="average"),
            _before_encoder("strong", f"learned, λ = {_STRONG:g}", output="mix", mix_l2=_STRONG),
            learned,
            _before_encoder("all", "all, side by side", output="all"),
            *fixed,
        ]
    if suite == "placement":
        return [
            plain,
            learned._replace(title="input"),
            learned._replace(name="output", title="output", places=("output",)),
            learned._replace(name="both", title="input and output", places=("input", "output")),
        ]
    if suite == "vectors":
        static = [
            plain._replace(name="vectors", title="static vectors"),
            elmo._replace(name="elmo_vectors", title="static vectors and ELMo"),
        ]
        return [plain, elmo, *(variant._replace(has_vectors=True) for variant in static)]
    return [plain, elmo]


def _before_encoder(name: str, title: str, **mix: Union[str, float]) -> Variant:
    return Variant(name, title, ("input",), mix)


def _name_layer(i: int) -> str:
    return f"LSTM layer {i} only" if i else "word layer only"


def get_score(component: str, block: Optional[Mapping[str, Any]] = None) -> str:
    """component (str): a factory. block (Optional[Mapping[str, Any]]): what its config says of it.
    RETURNS (str): the score that it is chosen by, such as "tag_acc". RAISES (ValueError): EL061 if
    it has none."""
    nlp = Language()
    known = nlp.has_factory(component)
    weights = nlp.get_factory_meta(component).default_score_weights if known else None
    scores = {key: weight for key, weight in (weights or {}).items() if weight}
    if not scores:
        raise ValueError(Errors.EL061.format(name=component))
    best = max(scores, key=lambda key: scores[key])
    # spaCy names those of spans by their key, and the default ones by its own.
    spans_key = (block or {}).get("spans_key", _SPANS_KEY)
    return best.replace(f"spans_{_SPANS_KEY}_", f"spans_{spans_key}_")
