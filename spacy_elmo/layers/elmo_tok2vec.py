"""`elmo_tok2vec`: ELMo before an encoder, behind it, or both."""

from typing import Any, Callable, List, Optional, Tuple

from spacy.tokens import Doc
from thinc.api import LayerNorm, Linear, Model, chain, concatenate, with_array
from thinc.types import Floats2d

from ..errors import Errors
from .in_parts import in_parts
from .word_dropout import drop_words

Tok2VecModel = Model[List[Doc], List[Floats2d]]
# Attribute of a listener with its mix: where it stands.
PLACE = "place"
# Of a model without an encoder, what goes past the encoder of the task, behind it.
PAST = "past"


def elmo_tok2vec(
    *,
    embed: Optional[Tok2VecModel],
    encode: Optional[Model[List[Floats2d], List[Floats2d]]],
    input: Optional[Tok2VecModel],
    output: Optional[Tok2VecModel],
    word_dropout: float = 0.0,
    vectors: Optional[Tok2VecModel] = None,
) -> Tok2VecModel:
    """Join word features, static vectors, ELMo and an encoder. See `build_elmo_tok2vec_v2`."""
    for place, listener in (("input", input), ("output", output)):
        if listener is not None:
            listener.attrs[PLACE] = place
    if not 0 <= word_dropout < 1 or (word_dropout and embed is None):
        raise ValueError(Errors.EL019.format(value=word_dropout))
    if embed is not None and word_dropout:
        embed = drop_words(embed, word_dropout)
    # Word dropout is not for static vectors: they know words that were never trained on.
    sources = [source for source in (embed, vectors, input) if source is not None]
    if not sources:
        raise ValueError(Errors.EL005)
    if encode is not None:
        # spaCy's own word features are as wide as its encoder.
        encoded = _encode(_join(*sources), encode, maps=sources != [embed])
    else:
        hidden = [_hide_target(source) for source in (embed, vectors) if source is not None]
        encoded = _join(*hidden, *([] if input is None else [input]))
    if output is not None:
        encoded = _join(encoded, output)
        if encode is None:
            encoded.set_ref(PAST, output)
    # What was given stays as it is.
    given = (embed, vectors, input)
    return encoded if any(encoded is each for each in given) else in_parts(encoded)


def get_past_width(tok2vec: Tok2VecModel) -> int:
    """tok2vec (Tok2VecModel): any, initialized. RETURNS (int): How many of its numbers, the last
    ones, go past the encoder that a task has of its own: those of `output` without `encode`."""
    past = tok2vec.maybe_get_ref(PAST) if isinstance(tok2vec, Model) else None
    return 0 if past is None else past.get_dim("nO")


def _join(*sources: Tok2VecModel) -> Tok2VecModel:
    if len(sources) == 1:
        return sources[0]
    joined: Tok2VecModel = concatenate(*sources)
    # spaCy's embedding layers learn theirs when they are initialized.
    if all(source.has_dim("nO") for source in sources):
        joined.set_dim("nO", sum(source.get_dim("nO") for source in sources), force=True)
    return joined


def _hide_target(embed: Tok2VecModel) -> Tok2VecModel:
    """spaCy's embedding layers take the task's target for their own if they get to see it when
    they are initialized: an encoder behind them keeps it from them."""
    dims = {"nO": embed.maybe_get_dim("nO")}
    return Model("word_features", _forward_inner, init=_init_inner, layers=[embed], dims=dims)


def _forward_inner(
    model: Tok2VecModel, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    return model.layers[0](docs, is_train)


def _init_inner(model: Tok2VecModel, X: Any = None, Y: Any = None) -> None:
    (embed,) = model.layers
    embed.initialize(X=X)
    if embed.has_dim("nO"):
        model.set_dim("nO", embed.get_dim("nO"))


def _encode(
    read: Tok2VecModel, encode: Model[List[Floats2d], List[Floats2d]], *, maps: bool
) -> Tok2VecModel:
    width = encode.get_dim("nO")
    # spaCy's encoders read as many numbers as they write.
    between: List[Model] = (
        [with_array(chain(Linear(nO=width), LayerNorm(nI=width)))] if maps else []
    )
    encoded: Tok2VecModel = chain(read, *between, encode)
    encoded.set_dim("nO", width, force=True)
    return encoded
