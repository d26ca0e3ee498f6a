"""Reference of a function or class: signature as a table, types, defaults, link to the source."""

import inspect
import re
import sys
import typing
from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence

from .docstrings import Docstring, Entry, read_docstring
from .sources import Sources

_SEE = re.compile(r"see `(\w+)`")
_NAMED = re.compile(r"`(\w+)`")
_MISSING = inspect.Parameter.empty
_SKIPPED = ("self", "cls", "nlp", "name")


def describe_function(
    function: Any,
    title: str,
    sources: Sources,
    *,
    level: int = 2,
    skip: Collection[str] = (),
    defaults: Optional[Mapping[str, Any]] = None,
) -> str:
    """Write the reference of a function.

    function (Any): it, with annotations and a docstring.
    title (str): its heading, or "" for none.
    sources (Sources): takes note of its file.
    level (int): of the heading.
    skip (Collection[str]): parameters to leave out.
    defaults (Optional[Mapping[str, Any]]): of parameters, instead of the signature's.
    RETURNS (str): Markdown.
    """
    signature = inspect.signature(function).parameters
    parameters = {
        key: value.replace(default=(defaults or {}).get(key, value.default))
        for key, value in signature.items()
        if key not in ("self", "cls", *skip)
    }
    lines = _describe(function, parameters, title, sources, level)
    return "\n\n".join(line for line in lines if line)


def describe_class(cls: Any, title: str, sources: Sources, *, level: int = 2) -> str:
    """Write the reference of a class: what it is made with, then its public methods.

    cls (Any): it. title, sources, level: as in `describe_function`. RETURNS (str): Markdown.
    """
    lines = _describe(cls, _constructor(cls), title, sources, level)
    lines += _describe_methods(cls, sources, level + 1)
    return "\n\n".join(line for line in lines if line)


def _describe(
    item: Any, parameters: Dict[str, Any], title: str, sources: Sources, level: int
) -> List[str]:
    """RETURNS (List[str]): What functions and classes have in common; "" for what one lacks."""
    parts = read_docstring(item, parameters)
    return [
        _heading(title, level),
        escape(parts.summary),
        escape(parts.notes),
        _parameter_table(parameters, parts, item),
        _outcome_table(parts, item),
        _example(parts),
        f"Source: {sources.link(item)}",
    ]


def describe_settings(cls: Any, sources: Sources) -> str:
    """cls (Any): a dataclass of settings. sources (Sources): takes note of its file.
    RETURNS (str): a table of its fields, with a link to the source."""
    parameters = _constructor(cls)
    table = _parameter_table(parameters, read_docstring(cls, parameters), cls)
    return f"{table}\n\nSource: {sources.link(cls)}"


def wrap_parameters(rows: Sequence[str]) -> str:
    """rows (Sequence[str]): of a table of parameters: name, type, default, meaning. RETURNS (str):
    it in a block of its own, which the style sheet folds on a phone."""
    return '<div class="parameters" markdown>\n\n' + "\n".join(rows) + "\n\n</div>"


def code(text: str) -> str:
    """text (str): any. RETURNS (str): the same as code in a cell of a table."""
    # A bar would end the cell, a grave accent the code.
    return "`" + text.replace("`", "'").replace("|", "\\|") + "`" if text else ""


def cell(text: str) -> str:
    """text (str): Markdown on one line. RETURNS (str): the same for a cell of a table."""
    return re.sub(r"(?<!\\)\|", r"\\|", escape(text)).replace("\n", " ")


def escape(text: str) -> str:
    """text (str): running text of a docstring. RETURNS (str): Markdown in which stars and angle
    brackets outside of code are themselves; a list stays one."""
    pieces = re.split(r"(`[^`]*`|^[ ]*[-*] )", text, flags=re.MULTILINE)
    pieces[::2] = [re.sub(r"([*<>])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)


def show_type(annotation: Any) -> str:
    """annotation (Any): of a parameter. RETURNS (str): as one would write it."""
    if annotation is _MISSING:
        return ""
    if isinstance(annotation, str):
        return annotation
    text = inspect.formatannotation(annotation)
    text = re.sub(r"Optional\[NoneType\]", "None", text.replace("typing.", ""))
    return re.sub(r"~?\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])", "", text)


def show_default(value: Any) -> str:
    """value (Any): a default. RETURNS (str): as a config has it; "required" for none."""
    if value is _MISSING:
        return "required"
    if isinstance(value, bool):
        return code(str(value).lower())
    if value is None:
        return code("null")
    if isinstance(value, str):
        return code(f'"{value}"')
    if isinstance(value, dict):
        # A block names what makes it; the rest is in the default config.
        return code(next((each for key, each in value.items() if key[0] == "@"), "block"))
    if isinstance(value, (list, tuple)):
        return code(str(value).replace("(", "[").replace(")", "]"))
    return code(repr(value)) if isinstance(value, (int, float)) else code(str(value))


def _constructor(cls: Any) -> Dict[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(cls).parameters
    except ValueError:  # a NamedTuple's or a builtin's
        return {}
    return {key: value for key, value in parameters.items() if key not in _SKIPPED}


def _heading(title: str, level: int) -> str:
    return f"{'#' * level} {title}" if title else ""


def _parameter_table(parameters: Mapping[str, Any], parts: Docstring, owner: Any) -> str:
    if not parameters:
        return ""
    rows = ["| name | type | default | what it is |", "|---|---|---|---|"]
    for name, parameter in parameters.items():
        entry = _find_entry(name, parts, owner)
        kind = _expand(entry.type, parameter.annotation, owner)
        default = "" if parameter.kind.name.startswith("VAR") else _show(parameter.default)
        rows.append(f"| `{name}` | {code(kind)} | {default} | {cell(entry.text)} |")
    return wrap_parameters(rows)


def _expand(written: str, annotation: Any, owner: Any) -> str:
    """A type as the docstring writes it, unless it has a short name that only the code knows."""
    names = vars(sys.modules[inspect.unwrap(owner).__module__])
    words = re.findall(r"[A-Za-z_]\w*", written)
    is_short = any(
        word in names
        and not inspect.isclass(names[word])
        and names[word] is not getattr(typing, word, 0)
        for word in words
    )
    return written if written and not is_short else show_type(annotation) or written


def _show(default: Any) -> str:
    # A dataclass's default that is made anew each time.
    return "" if "factory" in repr(default) else show_default(default)


def _find_entry(name: str, parts: Docstring, owner: Any) -> Entry:
    """What the docstring says of a parameter; "see `Class`" is followed, and for a parameter that
    is not in it whatever other function it names."""
    entry = parts.parameters.get(name) or _read_init(owner, name)
    module = sys.modules[inspect.unwrap(owner).__module__]
    text = entry.text or f"{parts.summary} {parts.notes}"
    for reference in (_SEE if entry.text else _NAMED).findall(text):
        other = find_object(reference, module)
        if other is not None and other is not owner:
            known = _constructor(other)
            found = (
                _find_entry(name, read_docstring(other, known), other) if name in known else None
            )
            if found is not None and found.text:
                return found
    return entry


def _read_init(owner: Any, name: str) -> Entry:
    """What the docstring of a class's own constructor says of a parameter."""
    init = vars(owner).get("__init__") if inspect.isclass(owner) else None
    parts = read_docstring(init, (name,)) if init is not None else Docstring()
    return parts.parameters.get(name, Entry("", ""))


def find_object(name: str, module: Any) -> Any:
    """name (str): of a class or function. module (Any): where it is named. RETURNS (Any): it, from
    this module or another one of the package that is loaded; None if there is none."""
    # No others: some warn of names that they have no more.
    loaded = [sys.modules[key] for key in sorted(sys.modules) if key.startswith("spacy_elmo")]
    for other in [module, *loaded]:
        thing = getattr(other, name, None)
        own = getattr(thing, "__module__", None) or ""
        if own.startswith("spacy_elmo") and (inspect.isclass(thing) or inspect.isfunction(thing)):
            return thing
    return None


def _outcome_table(parts: Docstring, owner: Any) -> str:
    if not parts.outcomes:
        return ""
    rows = ["| outcome | type | what it is |", "|---|---|---|"]
    for keyword, entry in parts.outcomes:
        kind = entry.type
        if keyword != "RAISES" and not inspect.isclass(owner):
            kind = _expand(kind, inspect.signature(owner).return_annotation, owner)
        rows.append(f"| {keyword.lower()} | {code(kind)} | {cell(link_codes(entry.text))} |")
    return "\n".join(rows)


def link_codes(text: str) -> str:
    """text (str): Markdown of a page in docs/reference/. RETURNS (str): the same, with codes
    of messages as links."""
    return re.sub(r"\b([EW]L\d{3})\b", lambda m: f"[{m[1]}](errors.md#{m[1].lower()})", text)


def _example(parts: Docstring) -> str:
    return f"```pycon\n{parts.example}\n```" if parts.example else ""


def _describe_methods(cls: Any, sources: Sources, level: int) -> List[str]:
    texts = []
    for name, owner in _public_methods(cls):
        member = vars(owner)[name]
        if isinstance(member, property):
            parts = read_docstring(member)
            text = f"{parts.summary} {parts.notes}".strip() or " ".join(
                entry.text for _, entry in parts.outcomes
            )
            texts.append(f"{'#' * level} {cls.__name__}.{name} <small>property</small>")
            texts.append(f"{text}\n\nSource: {sources.link(member.fget)}")
        else:
            function = getattr(member, "__func__", member)
            title = f"{cls.__name__}.{name}"
            texts.append(describe_function(function, title, sources, level=level))
    return texts


def _public_methods(cls: Any) -> List[Any]:
    """Names of documented public methods, and the class of the package that has each."""
    found: Dict[str, Any] = {}
    for owner in cls.__mro__:
        if not owner.__module__.startswith("spacy_elmo"):
            continue
        for name, member in vars(owner).items():
            is_method = inspect.isfunction(getattr(member, "__func__", member))
            if name.startswith("_") or not (is_method or isinstance(member, property)):
                continue
            if member.__doc__:
                found.setdefault(name, owner)
    return list(found.items())
