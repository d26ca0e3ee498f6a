"""Reference of the commands, from their Typer app."""

import inspect
import re
from typing import Any

from typer.main import get_command

from spacy_elmo.cli import elmo_cli

from .completion import SECTION
from .objects import cell, code, make_table, show_type, wrap_parameters

_INTRO = f"""# Commands

Commands of `python -m spacy elmo`. `--help` prints the parameters of each. Results go to the
standard output, everything else to the standard error; `--quiet` or `-Q` prints results and errors
only. `pretrain` and `debug-corpus` can override a config, such as `--training.max_steps 100`.
`convert-data` takes the options of each [format](readers.md).

| exit code | meaning |
|---|---|
| 0 | Done, or stopped with a checkpoint (`pretrain`). |
| 1 | An error; the message has mostly a [code](errors.md). |
| 2 | Wrong usage. |
| 130 | Ctrl-C. Files are complete or missing. |

{SECTION}
"""


def make_page() -> str:
    """RETURNS (str): Markdown."""
    parts = [_INTRO]
    functions = {
        str(info.name): info.callback for info in elmo_cli.registered_commands if info.callback
    }
    for name, command in sorted(get_command(elmo_cli).commands.items()):  # type: ignore[attr-defined]
        annotations = inspect.get_annotations(inspect.unwrap(functions[name]))
        parameters = [each for each in command.params if each.name != "help"]
        arguments = [_show_name(each) for each in parameters if not each.opts[0].startswith("-")]
        usage = " ".join(["python -m spacy elmo", name, *arguments, "[OPTIONS]"])
        head = ("argument or option", "type", "default", "meaning")
        rows = [
            (
                ", ".join(code(each) for each in _list_names(parameter)),
                code(_show_type(parameter, annotations[parameter.name])),
                _show_default(parameter),
                cell(" ".join((parameter.help or "").split())),
            )
            for parameter in parameters
        ]
        parts += [
            f"## elmo {name}",
            f"```text\n{usage}\n```",
            _join_paragraphs(command.help or ""),
            wrap_parameters(make_table(head, rows)),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _join_paragraphs(text: str) -> str:
    paragraphs = re.split(r"\n\s*\n", text.replace("\b", "").replace("\f", ""))
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _show_name(argument: Any) -> str:
    name = argument.name.upper()
    return name if argument.required else f"[{name}]"


def _list_names(parameter: Any) -> list[str]:
    names = [*parameter.opts, *parameter.secondary_opts]
    return names if names[0].startswith("-") else [parameter.name.upper()]


def _show_type(parameter: Any, annotation: Any) -> str:
    if annotation is bool:
        return "flag"
    text = re.sub(r"^Optional\[(.*)\]$", r"\1", show_type(annotation))
    bounds = {"at least": parameter.min, "at most": parameter.max}
    return ", ".join([text, *(f"{key} {n}" for key, n in bounds.items() if n is not None)])


def _show_default(parameter: Any) -> str:
    if isinstance(parameter.show_default, str):
        return cell(parameter.show_default)
    if parameter.required:
        return "required"
    if isinstance(parameter.default, bool):
        return "on" if parameter.default else "off"
    return "none" if parameter.default in (None, "") else code(str(parameter.default))
