"""Components that change tokens, such as `merge_entities`, behind one that has read them."""

import warnings

from spacy.language import Language

from ..errors import Warnings
from ..utils import show_names


def turn_off_retokenizers(nlp: Language, first: int) -> None:
    """Keep what is computed of tokens theirs: it belongs to no others.

    nlp (Language): a pipeline; WL066 says what is turned off. first (int): position of the first
        component that reads tokens.
    """
    names = [n for n in nlp.pipe_names[first:] if nlp.get_pipe_meta(n).retokenizes]
    for name in names:
        nlp.disable_pipe(name)
    if names:
        warnings.warn(Warnings.WL066.format(names=show_names(names)), stacklevel=3)
