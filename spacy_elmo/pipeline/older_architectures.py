"""Architectures as saved pipelines and configs of version 0.1.0 name them.

Their defaults are those of that time, and stay: what was saved without a value has it still.
"""

from typing import List, Optional, Sequence

from thinc.api import Model
from thinc.types import Floats2d

from ..errors import Errors
from ..layers.elmo_tok2vec import Tok2VecModel
from ..layers.scalar_mix import MixOutput
from ..layers.spans import SpanGetter
from .architectures import build_elmo_tok2vec_v2
from .making import make_elmo, make_elmo_listener

# Mixes learn at the optimizer's own rate.
_LEARN_RATE_FACTOR = 1.0


def build_elmo_v1(
    *,
    get_spans: Optional[SpanGetter] = None,
    width: int = 256,
    depth: int = 2,
    cell_width: int = 512,
    char_width: int = 16,
    # Tuples: what a config is filled with must neither change nor refuse to be copied.
    filters: Sequence[Sequence[int]] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 128)),
    n_highway: int = 1,
    max_chars: int = 50,
    cell_clip: Optional[float] = None,
    proj_clip: Optional[float] = None,
    projection: bool = True,
    skip_connections: bool = True,
    activation: str = "relu",
    input: str = "characters",
    n_words: int = 0,
    vector_width: int = 0,
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
    """As `build_elmo_v2`, with a mix that hardly learns."""
    return make_elmo(locals(), _LEARN_RATE_FACTOR)


def build_elmo_listener_v1(
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
    """As `build_elmo_listener_v2`, with a mix that hardly learns."""
    return make_elmo_listener(locals(), _LEARN_RATE_FACTOR)


def build_elmo_tok2vec_v1(
    *,
    encode: Model[List[Floats2d], List[Floats2d]],
    embed: Optional[Tok2VecModel] = None,
    input: Optional[Tok2VecModel] = None,
    output: Optional[Tok2VecModel] = None,
    word_dropout: float = 0.0,
) -> Tok2VecModel:
    """As `build_elmo_tok2vec_v2`, with an encoder. RAISES (ValueError): EL004 if ELMo is
    nowhere; else as that."""
    if input is None and output is None:
        raise ValueError(Errors.EL004)
    return build_elmo_tok2vec_v2(
        encode=encode, embed=embed, input=input, output=output, word_dropout=word_dropout
    )
