"""The variants that an experiment compares, and their training configs."""

from copy import deepcopy
from dataclasses import fields
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from thinc.api import Config

from ..bilm.config import BiLMConfig
from ..errors import Errors
from ..layers.listener import MIX_KEYS, TOK2VEC_ARCHITECTURES
from ..pipeline.presets import STATIC_VECTORS, make_config
from ..text.languages import TOKENIZER
from ..utils import require_known

SUITES = ("gain", "weighting", "placement", "samples", "vectors")
# λ of the learned mixes, as in the paper's table 2.
_WEAK, _STRONG = 0.001, 1.0
_ELMO = "elmo"
_SHAPE = tuple(field.name for field in fields(BiLMConfig))
_PLACES = ("input", "output")


class Variant(NamedTuple):
    """A tok2vec to compare: its name in names of files, its title in tables, the places of ELMo
    ("input" before the encoder, "output" after it; none for spaCy's plain tok2vec; if `mix` is
    empty, those of the training config take precedence), settings of the mix that replace those of
    the config or preset, and whether it has static vectors. Norm and dropout are the same in all
    variants."""

    name: str
    title: str
    places: Tuple[str, ...]
    mix: Dict[str, Any]
    has_vectors: bool = False


def choose_variants(suite: str, depth: int) -> List[Variant]:
    """List the variants of a suite, the one without ELMo first: weighting (Peters et al. 2018,
    table 2), placement (table 3), samples (figure 1), gain (table 1), and vectors (table 1, with
    static vectors). `depth` counts the LSTM layers of the biLM."""
    require_known("suite", suite, SUITES)
    plain = Variant("plain", "without ELMo", (), {})
    elmo = _at_input("elmo", "with ELMo")
    learned = _at_input("input", f"learned, λ = {_WEAK}", output="mix", mix_l2=_WEAK)
    if suite == "weighting":
        names = ["word layer only", *(f"LSTM layer {i} only" for i in range(1, depth))]
        return [
            plain,
            _at_input("top", "last layer only", output="top"),
            _at_input("average", "plain average", output="average"),
            _at_input("strong", f"learned, λ = {_STRONG:g}", output="mix", mix_l2=_STRONG),
            learned,
            _at_input("all", "all, side by side", output="all"),
            *(_at_input(f"layer_{i}", name, output=i) for i, name in enumerate(names)),
        ]
    if suite == "placement":
        return [
            plain,
            learned._replace(title="input"),
            learned._replace(name="output", title="output", places=("output",)),
            learned._replace(name="both", title="input and output", places=_PLACES),
        ]
    if suite == "vectors":
        static = plain._replace(name="vectors", title="static vectors", has_vectors=True)
        both = elmo._replace(name="elmo_vectors", title="static vectors and ELMo", has_vectors=True)
        return [plain, elmo, static, both]
    return [plain, elmo]


def _at_input(name: str, title: str, **mix: Union[str, float]) -> Variant:
    return Variant(name, title, ("input",), mix)


def find_baseline(name: str) -> str:
    """Find the name of the variant without ELMo to compare a variant with."""
    return "vectors" if name == "elmo_vectors" else "plain"


def make_variant(
    variant: Variant,
    component: str,
    *,
    lang: str = "en",
    shape: Optional[BiLMConfig] = None,
    loader: Optional[Dict[str, Any]] = None,
    base: Optional[Config] = None,
    vectors: str = "",
) -> Config:
    """Make the training config of a variant. The configs of all variants of a component differ in
    their tok2vec only. base (Optional[Config]): the user's config, with an `ElmoTok2Vec` in the
    component; its "elmo" keeps its settings, but not its weights. None for the preset
    word_features."""
    if variant.has_vectors and not vectors:
        raise ValueError(f"The variant '{variant.title}' has no vectors. Add `--vectors PIPELINE`.")
    config = make_config(STATIC_VECTORS, [component], lang=lang, shape=shape, loader=loader)
    # spaCy's own tokenizers of some languages need more packages; the data is tokenized.
    config["nlp"]["tokenizer"] = dict(TOKENIZER)
    preset = config["components"][component]["model"]["tok2vec"]
    if base is not None:
        config = _merge_base(config, base, component, is_bundled=shape is None and loader is None)
        config["nlp"]["lang"] = lang
    if vectors:
        config["paths"]["vectors"] = vectors
    model = config["components"][component]["model"]
    keeps_vectors = base is not None and not vectors
    model["tok2vec"] = _make_tok2vec(model["tok2vec"], preset, variant, keeps_vectors)
    if not variant.places:
        del config["components"][_ELMO]
        config["initialize"]["components"].pop(_ELMO)
        config["nlp"]["pipeline"].remove(_ELMO)
        for key in ("frozen_components", "annotating_components"):
            if _ELMO in config["training"].get(key, []):
                config["training"][key].remove(_ELMO)
    return config


def _merge_base(preset: Config, base: Config, component: str, *, is_bundled: bool) -> Config:
    """Merge a user's config into a preset, but for the weights and the shape of its biLM."""
    tok2vec = base.get("components", {}).get(component, {}).get("model", {}).get("tok2vec", {})
    if tok2vec.get("@architectures") not in TOK2VEC_ARCHITECTURES or not tok2vec.get("embed"):
        problem = "the component has another tok2vec"
        raise ValueError(Errors.EL230.format(problem=problem, component=component))
    base = base.copy()
    blocks = base["components"]
    for name, block in blocks.items():
        if name != _ELMO and block.get("factory") == _ELMO:
            problem = f"'{name}' has the factory elmo: name it elmo"
            raise ValueError(Errors.EL230.format(problem=problem, component=component))
    elmo = blocks.pop(_ELMO, {})
    initialize = base.get("initialize", {}).get("components", {}).pop(_ELMO, {})
    expected, init = preset["components"][_ELMO], preset["initialize"]["components"][_ELMO]
    model = elmo.pop("model", {})
    problems = [
        f"its elmo has another {key}"
        for key in _SHAPE
        if model.get(key, expected["model"][key]) != expected["model"][key]
    ]
    if initialize.get("loader") not in (None, init.get("loader")):
        problems.append("its elmo has a loader")
    if "source" in elmo:
        problems.append("its elmo has a source")
    if problems and is_bundled:
        raise ValueError(Errors.EL230.format(problem=problems[0], component=component))
    expected["model"].update({key: model[key] for key in model if key not in _SHAPE})
    expected.update({key: elmo[key] for key in elmo if key != "source"})
    init.update({key: initialize[key] for key in initialize if key != "loader"})
    # The component, its corpora and score weights are those of the user's config.
    del preset["components"][component]
    preset["training"].pop("score_weights", None)
    for name in base.get("corpora", {}):
        preset["corpora"].pop(name, None)
    pipeline: List[str] = base["nlp"]["pipeline"]
    config = preset.merge(base)
    config["nlp"]["pipeline"] = pipeline if _ELMO in pipeline else [_ELMO, *pipeline]
    return config


def _make_tok2vec(
    block: Dict[str, Any], preset: Dict[str, Any], variant: Variant, keeps_vectors: bool
) -> Dict[str, Any]:
    """Make the tok2vec of a variant from an `ElmoTok2Vec`, with listeners and static vectors of a
    preset where the block has none. With `keeps_vectors`, each variant has the block's vectors."""
    embed, encode = deepcopy(block["embed"]), block.get("encode")
    own = block.get("vectors") if keeps_vectors else None
    # Static vectors are among the features (as in spaCy) without ELMo, else beside them.
    inside = bool(variant.has_vectors or own) and not variant.places
    if keeps_vectors and not own:
        inside = embed.get("include_static_vectors", False)
    if inside or "include_static_vectors" in embed:
        embed["include_static_vectors"] = inside
    if not variant.places:
        # spaCy's Tok2Vec needs an encoder.
        name = "spacy.Tok2Vec.v2" if encode else preset["@architectures"]
        return {"@architectures": name, "embed": embed, "encode": encode}
    in_config = tuple(place for place in _PLACES if block.get(place))
    chosen = variant.places if variant.mix or not in_config else in_config
    # Where a suite sets the mix, norm and dropout are the config's.
    kept = ("mix_layer_norm", "mix_dropout") if "output" in variant.mix else MIX_KEYS
    listeners: Dict[str, Optional[Dict[str, Any]]] = dict.fromkeys(_PLACES)
    for place in chosen:
        mix = block.get(place) or block.get("input") or {}
        mix = {key: value for key, value in mix.items() if key in kept}
        listeners[place] = {**preset["input"], **mix, **variant.mix}
    vectors = (block.get("vectors") or preset["vectors"]) if variant.has_vectors else own
    made = {**block, "embed": embed, "encode": encode, "vectors": vectors, **listeners}
    # Version 1 has no `vectors`, and needs an encoder.
    made["@architectures"] = preset["@architectures"]
    if not listeners["input"]:
        # Words may only be dropped where ELMo is next to the word features.
        made["word_dropout"] = 0.0
    return made
