"""Custom attributes of spaCy, whose names all packages of a process share."""

import warnings
from typing import Any, Type, Union

from spacy.tokens import Doc, Span, Token

from ..errors import Warnings

_FUNCTIONS = ("method", "getter", "setter")


def add_extension(kind: Type[Union[Doc, Span, Token]], name: str, **settings: Any) -> None:
    """Register an attribute, unless it is there. Warns if it is another's (WL060), which stays:
    without it, whoever made it would fail.

    kind (Type[Union[Doc, Span, Token]]): what has it.
    name (str): of the attribute.
    **settings (Any): of `set_extension`.
    """
    if not kind.has_extension(name):
        kind.set_extension(name, **settings)
        return
    default, *functions = kind.get_extension(name)
    # A default may be an array, which cannot be compared as a whole.
    is_other = default is not settings.get("default")
    if is_other or functions != [settings.get(key) for key in _FUNCTIONS]:
        warnings.warn(Warnings.WL060.format(kind=kind.__name__, name=name), stacklevel=2)
