"""The training config of a variant, from a preset or from a config of one's own."""

from copy import deepcopy
from typing import Any, Dict, Optional, Tuple

from thinc.api import Config

from ..bilm.config import BiLMConfig
from ..errors import Errors
from ..layers.listener import MIX_KEYS
from ..pipeline.presets import STATIC_VECTORS, make_config
from ..text.corpus import TOKENIZER
from .own_configs import merge_own, remove_elmo
from .variants import Variant

_NORM_AND_DROPOUT = ("mix_layer_norm", "mix_dropout")
_PLACES = ("input", "output")


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
    """Make the training config of a variant; those of one component differ in nothing but
    their tok2vec.

    variant (Variant): what to make.
    component (str): factory of the component to train.
    lang, shape, loader: see `make_config`.
    base (Optional[Config]): all else but the language: its `ElmoTok2Vec` has the word features,
        the encoder if there is one, and in an `input`, an `output` or both the mix, if it is not
        that of the preset's input; None for the preset word_features.
    vectors (str): pipeline with static vectors, which some variants read; "" for none but those
        of `base`, which all variants have then.
    RETURNS (Config): to be completed by `init_nlp` or `spacy init fill-config`.
    RAISES (ValueError): EL061 if the component has no tok2vec, EL231 without `vectors` where they
        are needed; for `base` as `merge_own`.
    """
    if variant.has_vectors and not vectors:
        raise ValueError(Errors.EL231.format(variant=variant.title))
    config = make_config(STATIC_VECTORS, [component], lang=lang, shape=shape, loader=loader)
    # spaCy's own for some languages needs more packages; the data is tokenized.
    config["nlp"]["tokenizer"] = dict(TOKENIZER)
    preset = config["components"][component]["model"]["tok2vec"]
    if base is not None:
        names_weights = shape is not None or loader is not None
        config = merge_own(config, base, component, names_weights=names_weights)
        config["nlp"]["lang"] = lang
    if vectors:
        config["paths"]["vectors"] = vectors
    model = config["components"][component]["model"]
    keeps = base is not None and not vectors
    model["tok2vec"] = _make_tok2vec(model["tok2vec"], preset, variant, keeps_vectors=keeps)
    if not variant.places:
        remove_elmo(config)
    return config


def _make_tok2vec(
    block: Dict[str, Any], preset: Dict[str, Any], variant: Variant, *, keeps_vectors: bool
) -> Dict[str, Any]:
    """block (Dict[str, Any]): an `ElmoTok2Vec`. preset (Dict[str, Any]): another, whose listener
    is taken, with the mix of the block's own input and output if it has them, and whose static
    vectors if the block has none. keeps_vectors (bool): whether static vectors are all the
    block's, in each variant. RETURNS (Dict[str, Any]): what the variant has there."""
    embed, encode = deepcopy(block["embed"]), block.get("encode")
    # Without ELMo where spaCy has them, else where the preset does.
    own = block.get("vectors") if keeps_vectors else None
    inside = bool(variant.has_vectors or own) and not variant.places
    if keeps_vectors and not own:
        inside = embed.get("include_static_vectors", False)
    if inside or "include_static_vectors" in embed:
        embed["include_static_vectors"] = inside
    if not variant.places:
        # Without an encoder, spaCy has no such thing.
        name = "spacy.Tok2Vec.v2" if encode else preset["@architectures"]
        return {"@architectures": name, "embed": embed, "encode": encode}
    places: Dict[str, Optional[Dict[str, Any]]] = dict.fromkeys(_PLACES)
    for place in _find_places(block, variant):
        places[place] = _make_listener(block.get(place) or block.get("input"), preset, variant)
    vectors = (block.get("vectors") or preset["vectors"]) if variant.has_vectors else own
    made = {**block, "embed": embed, "encode": encode, "vectors": vectors, **places}
    # Version 1 has no `vectors`, and no tok2vec without an encoder.
    made["@architectures"] = preset["@architectures"]
    if not places["input"]:
        # Nothing beside the word features makes up for those that are dropped.
        made["word_dropout"] = 0.0
    return made


def _find_places(block: Dict[str, Any], variant: Variant) -> Tuple[str, ...]:
    """RETURNS (Tuple[str, ...]): Where ELMo stands: where the config has it, unless a suite sets
    that, and the mix."""
    own = tuple(place for place in _PLACES if block.get(place))
    return variant.places if variant.mix or not own else own


def _make_listener(
    block: Optional[Dict[str, Any]], preset: Dict[str, Any], variant: Variant
) -> Dict[str, Any]:
    # Where a suite sets the mix, norm and dropout alone are the config's.
    kept = _NORM_AND_DROPOUT if "output" in variant.mix else MIX_KEYS
    own = {key: value for key, value in (block or {}).items() if key in kept}
    return {**preset["input"], **own, **variant.mix}
