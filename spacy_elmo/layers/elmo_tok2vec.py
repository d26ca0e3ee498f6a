"""`elmo_tok2vec`: ELMo before an encoder, behind it, or both."""

from typing import List, Optional

from spacy.tokens import Doc
from thinc.api import LayerNorm, Linear, Model, chain, concatenate, with_array
from thinc.types import Floats2d

from ..errors import Errors
from .word_dropout import drop_words

Tok2VecModel = Model[List[Doc], List[Floats2d]]
# Attribute of a listener with its mix: where it stands.
PLACE = "place"


def elmo_tok2vec(
    *,
    embed: Optional[Tok2VecModel],
    encode: Model[List[Floats2d], List[Floats2d]],
    input: Optional[Tok2VecModel],
    output: Optional[Tok2VecModel],
    word_dropout: float = 0.0,
) -> Tok2VecModel:
    """Join word features, ELMo and an encoder. See `build_elmo_tok2vec_v1`."""
    if input is None and output is None:
        raise ValueError(Errors.EL004)
    for place, listener in (("input", input), ("output", output)):
        if listener is not None:
            listener.attrs[PLACE] = place
    if not 0 <= word_dropout < 1 or (word_dropout and embed is None):
        raise ValueError(Errors.EL019.format(value=word_dropout))
    if embed is not None and word_dropout:
        embed = drop_words(embed, word_dropout)
    sources = [source for source in (embed, input) if source is not None]
    if not sources:
        raise ValueError(Errors.EL005)
    width = encode.get_dim("nO")
    layers: List[Model] = [concatenate(*sources) if len(sources) > 1 else sources[0]]
    if input is not None:
        # spaCy's encoders read as many numbers as they write.
        layers.append(with_array(chain(Linear(nO=width), LayerNorm(nI=width))))
    encoded: Tok2VecModel = chain(layers[0], *layers[1:], encode)
    encoded.set_dim("nO", width, force=True)
    if output is None:
        return encoded
    joined: Tok2VecModel = concatenate(encoded, output)
    joined.set_dim("nO", width + output.get_dim("nO"), force=True)
    return joined
