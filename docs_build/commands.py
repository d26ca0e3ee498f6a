"""Reference of the commands, from the functions that the Typer app is made of."""

import inspect
from typing import Any, Dict, List

from typer.models import ArgumentInfo

from spacy_elmo.cli import elmo_cli

from .completion import SECTION
from .objects import cell, code, show_type, wrap_parameters
from .sources import Sources

_INTRO = f"""# Commands

Commands of `python -m spacy elmo`. Each prints its own help with `--help`: what it takes, in which
units, what is taken if an option is left out, and an example. Flags are off unless they are given.
Options may stand before or behind arguments.

## Output

**Standard output** has results alone: tables, sentences that were found, a config that is written
to `-`. They can be piped or redirected; colours are for terminals (none if `NO_COLOR` is set),
elsewhere a marked word has brackets. **Standard error** has all else: progress, notes,
warnings, errors, and a closing line which says what was written where, and how long it took.
Progress bars are drawn on a terminal; elsewhere long commands print a line now and then.

`--quiet`, or `-Q`, leaves results and errors.

## Exit codes

| code | meaning |
|---|---|
| 0 | Done. For `pretrain` also: stopped by SIGTERM or `--max-minutes`, with a checkpoint. |
| 1 | It cannot be done: a message, mostly with a [code](errors.md), says why and what to do. |
| 2 | Wrong usage: an unknown option, a missing argument, a value of another type. |
| 130 | Ctrl-C. Files are whole or not there. |

After Ctrl-C, `embed --resume`, `experiment` and `index` resume; `pretrain` writes a checkpoint
first, and continues with `--resume`. Any other signal ends a command as
usual: 143 for SIGTERM, for `pretrain` only before its first step. A traceback is a bug:
please report it.

{SECTION}
"""
_OVERRIDES = "Sections of the config can be overridden, such as `--training.max_steps 100`."
_FORMAT_OPTIONS = (
    "Formats and their options are on the page of [readers](readers.md); `--help` prints them, "
    "those of a format behind its name."
)
# What commands take that is not among their parameters.
_MORE = {"pretrain": _OVERRIDES, "debug-corpus": _OVERRIDES, "convert-data": _FORMAT_OPTIONS}


def list_commands() -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): functions of the commands by name, in alphabetical order."""
    named = {str(info.name): info.callback for info in elmo_cli.registered_commands}
    return dict(sorted(named.items()))


def make_page(sources: Sources) -> str:
    """sources (Sources): takes note of the files. RETURNS (str): Markdown."""
    parts = [_INTRO.strip()]
    for name, function in list_commands().items():
        parts.append(_describe(name, function, sources))
    return "\n\n".join(parts) + "\n"


def _describe(name: str, function: Any, sources: Sources) -> str:
    parameters = {
        key: value
        for key, value in inspect.signature(function).parameters.items()
        if hasattr(value.default, "param_decls")
    }
    arguments = [
        key.upper() if value.default.default is ... else f"[{key.upper()}]"
        for key, value in parameters.items()
        if isinstance(value.default, ArgumentInfo)
    ]
    usage = " ".join(["python -m spacy elmo", name, *arguments, "[OPTIONS]"])
    parts = [
        f"## elmo {name}",
        f"```text\n{usage}\n```",
        _read_help(inspect.getdoc(function) or ""),
        _MORE.get(name, ""),
        _parameter_table(parameters),
        f"Source: {sources.link(function)}",
    ]
    return "\n\n".join(part for part in parts if part)


def _read_help(text: str) -> str:
    paragraphs = text.replace("\b", "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _parameter_table(parameters: Dict[str, Any]) -> str:
    rows: List[str] = ["| argument or option | type | default | what it is |", "|---|---|---|---|"]
    for name, parameter in parameters.items():
        info = parameter.default
        label = ", ".join(code(each) for each in _list_names(name, parameter))
        kind = code(_show_type(parameter))
        text = cell(" ".join((info.help or "").split()))
        rows.append(f"| {label} | {kind} | {_show_default(info)} | {text} |")
    return wrap_parameters(rows) if len(rows) > 2 else ""


def _list_names(name: str, parameter: Any) -> List[str]:
    info = parameter.default
    if isinstance(info, ArgumentInfo):
        return [name.upper()]
    if info.param_decls:
        # "--text/--no-text" is two names.
        return [each for names in info.param_decls for each in names.split("/")]
    option = f"--{name.replace('_', '-')}"
    return [option, f"--no-{option[2:]}"] if parameter.annotation is bool else [option]


def _show_type(parameter: Any) -> str:
    if parameter.annotation is bool:
        return "flag"
    text = show_type(parameter.annotation)
    if text.startswith("Optional["):
        text = text[len("Optional[") : -1]
    info = parameter.default
    bounds = [f"at least {info.min}"] if info.min is not None else []
    bounds += [f"at most {info.max}"] if info.max is not None else []
    return ", ".join([text, *bounds])


def _show_default(info: Any) -> str:
    default = info.default
    if isinstance(info.show_default, str):
        return cell(info.show_default)
    if default is ...:
        return "required"
    if default is None or default == "":
        return "none"
    if isinstance(default, bool):
        return "on" if default else "off"
    return code(str(default))
