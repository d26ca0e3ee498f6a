"""Functions that a config can name under @architectures.

The defaults of the `.v1` architectures never change, since saved configs may omit these values.
"""

from dataclasses import fields
from inspect import signature
from typing import Any, Dict, Iterable, List, Optional, Sequence, cast

from thinc.api import Model
from thinc.types import Floats2d

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import usual_numbers
from ..checkpoints.loaders import build_bundled_loader_v1
from ..errors import Errors
from ..inference.embedder import Embedder
from ..layers.elmo_layers import LayersSettings, elmo_layers
from ..layers.elmo_tok2vec import PLACE, SKIP, encode_rows, in_parts, join
from ..layers.listener import MIX_KEYS, ElmoListener, replace_listener, replace_listener_config
from ..layers.scalar_mix import MixOutput, MixSettings, mixed_layers, scalar_mix
from ..layers.spans import SpanGetter, build_window_spans_v1
from ..layers.torch_rows import use_torch
from ..layers.word_features import Tok2VecModel, drop_words, hide_target
from ..utils import require_known, require_valid, with_defaults

# An optimizer such as Adam moves each number by about its learning rate, which is right for
# matrices: at 0.001, three weights before a softmax hardly move in hundreds of updates. Chosen on
# dev of three tasks; a power of two divides exactly.
MIX_LEARN_RATE_FACTOR = 32.0
# Mixes of `.v1` learn at the optimizer's own rate.
_MIX_LEARN_RATE_FACTOR_V1 = 1.0

_BUNDLED = BiLMConfig()
_SHAPE_KEYS = [field.name for field in fields(BiLMConfig)]
_EMBEDDER_KEYS = ("batch_tokens", "word_cache", "precision", "n_threads")


def build_elmo_v2(
    *,
    get_spans: Optional[SpanGetter] = None,
    width: int = _BUNDLED.width,
    depth: int = _BUNDLED.depth,
    cell_width: int = _BUNDLED.cell_width,
    char_width: int = _BUNDLED.char_width,
    # Tuples: what a config is filled with must neither change nor refuse to be copied.
    filters: Sequence[Sequence[int]] = _BUNDLED.filters,
    n_highway: int = _BUNDLED.n_highway,
    max_chars: int = _BUNDLED.max_chars,
    cell_clip: Optional[float] = _BUNDLED.cell_clip,
    proj_clip: Optional[float] = _BUNDLED.proj_clip,
    projection: bool = _BUNDLED.projection,
    skip_connections: bool = _BUNDLED.skip_connections,
    activation: str = _BUNDLED.activation,
    input: str = _BUNDLED.input,
    n_words: int = _BUNDLED.n_words,
    vector_width: int = _BUNDLED.vector_width,
    frozen: bool = True,
    output: MixOutput = "mix",
    initial_weights: Optional[List[float]] = None,
    fixed_weights: bool = False,
    mix_l2: float = 0.0,
    mix_layer_norm: bool = False,
    mix_dropout: float = 0.0,
    batch_tokens: int = 8192,
    word_cache: int = 100_000,
    initial_state: str = "zero",
    precision: str = "fp32",
    n_threads: int = 0,
) -> Tok2VecModel:
    """Build a biLM with a mix of its layers. The defaults are the bundled shape.

    get_spans (Optional[SpanGetter]): cuts docs into sequences; None for
        spacy-elmo.window_spans.v1.
    width, depth, cell_width, char_width, filters, n_highway, max_chars, cell_clip,
        proj_clip, projection, skip_connections, activation, input, n_words, vector_width:
        the shape, see `BiLMConfig`.
    frozen (bool): if true, the biLM is not trained, only the mix and the tasks.
    output, initial_weights, fixed_weights, mix_l2, mix_layer_norm, mix_dropout: the
        mix, see `MixSettings`.
    batch_tokens (int): tokens per forward pass of the biLM, boundaries counted; at
        least 1.
    word_cache (int): word vectors kept between batches; 0 for none.
    initial_state (str): what sequences start from; only "zero".
    precision (str): of the matrix products where the biLM is not trained: "fp32", "bf16", "fp16"
        or "int8".
    n_threads (int): threads on a CPU; 0 for as many as torch uses, and one in a child process,
        such as those of `nlp.pipe(n_process=2)`.
    RETURNS (Tok2VecModel): docs -> arrays of shape (n_tokens, width); with
        `output = "all"`, n_layers times as wide.
    RAISES (ValueError): EL010 to EL012 for a value out of range.
    """
    return _make_elmo(locals(), MIX_LEARN_RATE_FACTOR)


def build_elmo_listener_v2(
    *,
    upstream: str = "elmo",
    width: int,
    depth: int,
    output: MixOutput = "mix",
    initial_weights: Optional[List[float]] = None,
    fixed_weights: bool = False,
    mix_l2: float = 0.0,
    mix_layer_norm: bool = False,
    mix_dropout: float = 0.0,
) -> Tok2VecModel:
    """Listen to an "elmo" component, with a separate mix for this task (as in the paper).

    upstream (str): name of the component.
    width (int): `${components.elmo.model.width}`.
    depth (int): `${components.elmo.model.depth}`.
    output, initial_weights, fixed_weights, mix_l2, mix_layer_norm, mix_dropout: the
        mix, see `MixSettings`.
    RETURNS (Tok2VecModel): docs -> arrays of shape (n_tokens, width); with
        `output = "all"`, n_layers times as wide.
    RAISES (ValueError): EL002 for upstream "*", EL012 for a value out of range.
    """
    return _make_elmo_listener(**locals(), learn_rate_factor=MIX_LEARN_RATE_FACTOR)


def build_elmo_tok2vec_v2(
    *,
    encode: Optional[Model[List[Floats2d], List[Floats2d]]] = None,
    embed: Optional[Tok2VecModel] = None,
    input: Optional[Tok2VecModel] = None,
    output: Optional[Tok2VecModel] = None,
    word_dropout: float = 0.0,
    vectors: Optional[Tok2VecModel] = None,
) -> Tok2VecModel:
    """Put ELMo before an encoder, after it, or both (Peters et al. 2018, table 3).

    encode (Optional[Model[List[Floats2d], List[Floats2d]]]): spacy.MaxoutWindowEncoder.v2,
        spacy-elmo.BiLSTMEncoder.v1 or another encoder of rows; null for none, if the task has an
        encoder: then `embed`, `vectors` and ELMo are concatenated unchanged.
    embed (Optional[Tok2VecModel]): spaCy's own word features, such as
        spacy.MultiHashEmbed.v2; null for none.
    input (Optional[Tok2VecModel]): spacy-elmo.ElmoListener.v2, concatenated with
        `embed` before the encoder; null for none.
    output (Optional[Tok2VecModel]): another listener, concatenated with the encoder's output;
        null for none. Without `encode`, it skips the encoder of elmo_entailment, elmo_qa and
        elmo_srl, and is concatenated with the output of that encoder. With neither `input` nor
        `output`, the model has no ELMo, to compare with.
    word_dropout (float): probability in [0, 1) that, in training, a token comes without
        its word features. In prediction, words never trained on come without them, unless
        it is 0. Not driven by [training] dropout.
    vectors (Optional[Tok2VecModel]): spacy-elmo.StaticVectors.v1, concatenated with the others
        before the encoder; null for none. Word dropout does not change them, unless they are among
        the features of `embed`: they also exist for words that were never trained on.
    RETURNS (Tok2VecModel): docs -> arrays as wide as encoder (without one, as `embed`, `vectors`
        and `input`) and `output` together.
    RAISES (ValueError): EL005 if nothing comes in, EL012 for a `word_dropout` out of range or
        without `embed`.
    """
    for place, listener in (("input", input), ("output", output)):
        if listener is not None:
            listener.attrs[PLACE] = place
    is_valid = 0 <= word_dropout < 1 and (embed is not None or not word_dropout)
    expected = "a probability in [0, 1), and 0 without [...tok2vec.embed]"
    require_valid(is_valid, "word_dropout", word_dropout, expected)
    if embed is not None and word_dropout:
        embed = drop_words(embed, word_dropout)
    sources = [source for source in (embed, vectors, input) if source is not None]
    if not sources:
        raise ValueError(Errors.EL005)
    if encode is not None:
        encoded = encode_rows(join(*sources), encode, has_features_alone=sources == [embed])
    else:
        encoded = join(*(s if s is input else hide_target(s) for s in sources))
    if output is not None:
        encoded = join(encoded, output)
        if encode is None:
            encoded.set_ref(SKIP, output)
    use_torch(encoded)
    # A block that is returned as it is keeps its own forward.
    is_new = encode is None and not any(encoded is source for source in sources)
    return in_parts(encoded) if is_new else encoded


def _build_elmo_v1(**arguments: Any) -> Tok2VecModel:
    """As `build_elmo_v2`, with a mix that learns more slowly, and a smaller default shape."""
    return _make_elmo(arguments, _MIX_LEARN_RATE_FACTOR_V1)


def build_elmo_listener_v1(**arguments: Any) -> Tok2VecModel:
    """As `build_elmo_listener_v2`, with a mix that learns more slowly."""
    return _make_elmo_listener(**arguments, learn_rate_factor=_MIX_LEARN_RATE_FACTOR_V1)


# What a config may set, and its defaults.
cast(Any, _build_elmo_v1).__signature__ = signature(build_elmo_v2)
cast(Any, build_elmo_listener_v1).__signature__ = signature(build_elmo_listener_v2)
build_elmo_v1 = with_defaults(
    _build_elmo_v1,
    width=256,
    cell_width=512,
    filters=((1, 32), (2, 32), (3, 64), (4, 128), (5, 128)),
    projection=True,
)


def build_elmo_tok2vec_v1(
    *,
    encode: Model[List[Floats2d], List[Floats2d]],
    embed: Optional[Tok2VecModel] = None,
    input: Optional[Tok2VecModel] = None,
    output: Optional[Tok2VecModel] = None,
    word_dropout: float = 0.0,
) -> Tok2VecModel:
    """As `build_elmo_tok2vec_v2`, with an encoder. EL005 also without `input` and `output`."""
    if input is None and output is None:
        raise ValueError(Errors.EL005)
    return build_elmo_tok2vec_v2(
        encode=encode, embed=embed, input=input, output=output, word_dropout=word_dropout
    )


@usual_numbers()
def _make_elmo(arguments: Dict[str, Any], learn_rate_factor: float) -> Tok2VecModel:
    """Build a model from the arguments of `build_elmo_v2`."""
    require_known("initial_state", arguments["initial_state"], ("zero",))
    config = BiLMConfig(**_choose(arguments, _SHAPE_KEYS))
    embedder = Embedder(
        BiLM(config), loader=build_bundled_loader_v1(), **_choose(arguments, _EMBEDDER_KEYS)
    )
    get_spans = arguments["get_spans"] or build_window_spans_v1()
    layers = elmo_layers(embedder, LayersSettings(get_spans, arguments["frozen"]))
    mix = MixSettings(**_choose(arguments, MIX_KEYS), learn_rate_factor=learn_rate_factor)
    model = mixed_layers(layers, scalar_mix(config.n_layers, config.width, mix))
    model.attrs["replace_listener"] = replace_listener
    model.attrs["replace_listener_cfg"] = replace_listener_config
    return model


def _make_elmo_listener(
    *, upstream: str = "elmo", width: int, depth: int, **settings: Any
) -> Tok2VecModel:
    """Build a listener with a mix; `settings` are those of `MixSettings`."""
    n_layers = depth + 1
    mix = scalar_mix(n_layers, width, MixSettings(**settings))
    return mixed_layers(ElmoListener(upstream, n_layers, width), mix)


def _choose(arguments: Dict[str, Any], keys: Iterable[str]) -> Dict[str, Any]:
    return {key: arguments[key] for key in keys}
