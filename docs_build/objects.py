"""Reference of a function or class: parameters as a table, results, errors, example."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from .docstrings import Docstring, Entry, read_docstring

ROOT = Path(__file__).resolve().parent.parent
_MISSING = inspect.Parameter.empty
_SKIPPED = ("self", "cls", "nlp", "name")


def describe(
    thing: Any,
    title: str = "",
    *,
    level: int = 2,
    skip: Collection[str] = ("self", "cls"),
    defaults: Optional[Mapping[str, Any]] = None,
    methods: bool = True,
) -> str:
    """Write the reference of a function, or of a class and its public methods.

    thing (Any): a class or a function with annotations and a docstring.
    title (str): its heading, or "" for no heading.
    level (int): of the heading.
    skip (Collection[str]): parameters to leave out.
    defaults (Optional[Mapping[str, Any]]): of parameters, instead of those of the signature.
    methods (bool): whether a class's methods are described, too.
    RETURNS (str): Markdown.
    """
    parameters = {
        key: value.replace(default=(defaults or {}).get(key, value.default))
        for key, value in _read_parameters(thing).items()
        if key not in skip
    }
    parts = read_docstring(thing, parameters)
    path = Path(inspect.getsourcefile(inspect.unwrap(thing)) or "").resolve()
    texts = [
        f"{'#' * level} {title}" if title else "",
        escape(parts.summary),
        escape(parts.notes),
        _make_parameter_table(parameters, parts, thing),
        _make_outcome_table(parts),
        f"```pycon\n{parts.example}\n```" if parts.example else "",
        f"Source: `{path.relative_to(ROOT).as_posix()}`",
    ]
    if inspect.isclass(thing) and methods:
        texts += _describe_methods(thing, level + 1)
    return "\n\n".join(text for text in texts if text)


def make_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """RETURNS (str): a Markdown table; "" without rows."""
    names = list(head)
    lines = [list(row) for row in rows]
    lines = [names, ["---"] * len(names), *lines] if lines else []
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wrap_parameters(table: str) -> str:
    """RETURNS (str): a table of parameters, which the style sheet folds on a phone."""
    return f'<div class="parameters" markdown>\n\n{table}\n\n</div>' if table else ""


def code(text: str) -> str:
    """RETURNS (str): text as code in a cell of a table."""
    return "`" + text.replace("`", "'").replace("|", "\\|") + "`" if text else ""


def cell(text: str) -> str:
    """RETURNS (str): Markdown on one line, for a cell of a table."""
    return re.sub(r"(?<!\\)\|", r"\\|", escape(text)).replace("\n", " ")


def escape(text: str) -> str:
    """RETURNS (str): text of a docstring as Markdown: stars and angle brackets outside of code are
    escaped, lists stay lists."""
    pieces = re.split(r"(`[^`]*`|^[ ]*[-*] )", text, flags=re.MULTILINE)
    pieces[::2] = [re.sub(r"([*<>])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)


def show_type(annotation: Any) -> str:
    """RETURNS (str): an annotation without module names."""
    if annotation is _MISSING:
        return ""
    if isinstance(annotation, str):
        return annotation
    text = inspect.formatannotation(annotation).replace("typing.", "")
    return re.sub(r"~?\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])", "", text)


def show_default(value: Any) -> str:
    """RETURNS (str): a default as a config has it; "required" without one."""
    if value is _MISSING:
        return "required"
    if "factory" in repr(value):  # a dataclass's default that is made each time
        return ""
    if isinstance(value, bool) or value is None:
        return code("null" if value is None else str(value).lower())
    if isinstance(value, str):
        return code(f'"{value}"')
    if isinstance(value, dict):
        return code(next((each for key, each in value.items() if key[0] == "@"), "block"))
    if isinstance(value, (list, tuple)):
        return code(str(value).replace("(", "[").replace(")", "]"))
    return code(str(value))


def _read_parameters(thing: Any) -> Dict[str, inspect.Parameter]:
    try:
        parameters = dict(inspect.signature(thing).parameters)
    except ValueError:  # of a NamedTuple
        return {}
    skipped = _SKIPPED if inspect.isclass(thing) else ()
    return {key: value for key, value in parameters.items() if key not in skipped}


def _make_parameter_table(parameters: Mapping[str, Any], parts: Docstring, owner: Any) -> str:
    rows = []
    for name, parameter in parameters.items():
        entry = _find_entry(name, parts, owner)
        kind = show_type(parameter.annotation) or entry.type
        default = "" if parameter.kind.name.startswith("VAR") else show_default(parameter.default)
        rows.append((f"`{name}`", code(kind), default, cell(entry.text)))
    return wrap_parameters(make_table(("name", "type", "default", "meaning"), rows))


def _find_entry(name: str, parts: Docstring, owner: Any) -> Entry:
    """The entry of a parameter: in the docstring, in that of the constructor, or in that of another
    object of the package whose name stands in the docstring (as in "see `Class`")."""
    entry = parts.parameters.get(name, Entry())
    if inspect.isclass(owner) and "__init__" in vars(owner) and not entry.text:
        entry = read_docstring(owner.__init__, (name,)).parameters.get(name, entry)
    if entry.text and not re.search(r"\bsee `\w+`", entry.text):
        return entry
    for reference in re.findall(r"`(\w+)`", entry.text or f"{parts.summary} {parts.notes}"):
        other = _find_object(reference, owner)
        known = _read_parameters(other) if other is not None else {}
        if name in known:
            found = _find_entry(name, read_docstring(other, known), other)
            if found.text:
                return found
    return entry


def _find_object(name: str, owner: Any) -> Any:
    """Another class or function of the package, looked up in the owner's module first."""
    module = sys.modules[inspect.unwrap(owner).__module__]
    loaded = [sys.modules[key] for key in sorted(sys.modules) if key.startswith("spacy_elmo")]
    for each in [module, *loaded]:
        thing = vars(each).get(name)
        is_object = inspect.isclass(thing) or inspect.isfunction(thing)
        if is_object and thing is not owner and thing.__module__.startswith("spacy_elmo"):
            return thing
    return None


def _make_outcome_table(parts: Docstring) -> str:
    link = r"[\1](errors.md#\1)"
    rows = []
    for keyword, entry in parts.outcomes:
        text = re.sub(r"\b([EW]L\d{3})\b", link, cell(entry.text))
        text = re.sub(r"#([EW]L\d{3})", lambda match: match[0].lower(), text)
        rows.append((keyword.lower(), code(entry.type), text))
    return make_table(("outcome", "type", "meaning"), rows)


def _describe_methods(cls: Any, level: int) -> Iterator[str]:
    for name, member in _list_methods(cls):
        title = f"{cls.__name__}.{name}"
        if isinstance(member, property):
            parts = read_docstring(member)
            text = f"{parts.summary} {parts.notes}".strip()
            yield f"{'#' * level} {title} <small>property</small>"
            yield text or " ".join(entry.text for _, entry in parts.outcomes)
        else:
            yield describe(getattr(member, "__func__", member), title, level=level)


def _list_methods(cls: Any) -> List[Tuple[str, Any]]:
    """Documented public methods and properties that the package defines."""
    found: Dict[str, Any] = {}
    for owner in cls.__mro__:
        if owner.__module__.startswith("spacy_elmo"):
            for name, member in vars(owner).items():
                is_method = inspect.isfunction(getattr(member, "__func__", member))
                is_shown = member.__doc__ and (is_method or isinstance(member, property))
                if is_shown and not name.startswith("_"):
                    found.setdefault(name, member)
    return list(found.items())
