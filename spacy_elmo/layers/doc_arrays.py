"""Arrays that a component leaves with a doc, under the name of an extension."""

from collections import UserDict
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, cast

from spacy.tokens import Doc

from .extensions import add_extension


class DocArrays(UserDict):
    """A dict of arrays, or of dicts of arrays, which says in one line what it is: spaCy prints
    it where it does not fit, as in `doc.to_json(underscore=["elmo"])`.

    It is made when a user reads it. What a doc keeps is a plain dict, so docs can be loaded
    where this package is not installed. No subclass of `dict`: those with arrays break spaCy's
    test for JSON.
    """

    def __repr__(self) -> str:
        return (
            f"<{_describe(self.data)}. Arrays are no JSON: take lists of what you need, by "
            "`.tolist()`, or keep docs with `DocBin(store_user_data=True)`>"
        )

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self.data)


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_describe(part)}" for key, part in value.items())
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None else f"array of shape {shape}"


@dataclass(frozen=True)
class ArraysGetter:
    """name (str): of the extension."""

    name: str

    def __call__(self, doc: Doc) -> Optional[DocArrays]:
        """doc (Doc): any doc. RETURNS (Optional[DocArrays]): what was set, None if nothing was."""
        arrays = get_arrays(self.name, doc)
        return None if arrays is None else DocArrays(arrays)


@dataclass(frozen=True)
class ArraysSetter:
    """name (str): of the extension."""

    name: str

    def __call__(self, doc: Doc, arrays: Optional[Mapping[str, Any]]) -> None:
        """As `set_arrays`; what was read of another doc is kept as that keeps it."""
        set_arrays(self.name, doc, None if arrays is None else {**arrays})


def register_arrays(name: str) -> None:
    """Register an extension of docs that holds arrays; None where nothing is set.

    name (str): of the extension.
    """
    # No closures: spaCy sends extensions to other processes.
    add_extension(Doc, name, getter=ArraysGetter(name), setter=ArraysSetter(name))


def get_arrays(name: str, doc: Doc) -> Optional[Dict[str, Any]]:
    """name (str): of the extension. doc (Doc): any doc. RETURNS (Optional[Dict[str, Any]]): what
    was set, None if nothing was."""
    return cast(Dict, doc.user_data).get(_make_key(name))


def set_arrays(name: str, doc: Doc, arrays: Optional[Dict[str, Any]]) -> None:
    """name (str): of the extension. doc (Doc): any doc. arrays (Optional[Dict[str, Any]]): what
    to keep; copies and pickles of the doc have it, too."""
    cast(Dict, doc.user_data)[_make_key(name)] = arrays


def _make_key(name: str) -> Tuple[str, str, None, None]:
    # Where spaCy keeps the value of an extension that has no getter.
    return "._.", name, None, None
