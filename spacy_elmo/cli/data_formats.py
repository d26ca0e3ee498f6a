"""Formats of `elmo convert-data`: their names, their options, and the help with both."""

import inspect
import re
from copy import copy
from typing import Any, Callable, Dict, List

import typer
from typer.core import TyperCommand

_ARGUMENTS = "spacy_elmo.convert_data.arguments"


def get_readers() -> Dict[str, Callable]:
    """RETURNS (Dict[str, Callable]): Readers of all packages by the name of their format."""
    from ..registry import task_readers

    return dict(sorted(task_readers.get_all().items()))


def get_options(reader: Callable) -> Dict[str, Any]:
    """reader (Callable): of a format. RETURNS (Dict[str, Any]): Its options by name, such as
    "joined", with their defaults."""
    parameters = inspect.signature(reader).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def spell_option(name: str) -> str:
    """name (str): of a parameter. RETURNS (str): of the option, such as "--max-tokens"."""
    return f"--{name.replace('_', '-')}"


class ConvertDataCommand(TyperCommand):
    """The command, whose help has what is known only with the readers, which other packages add
    to: the names of all formats, and the options of the format before `--help`."""

    def parse_args(self, ctx: Any, args: List[str]) -> List[str]:
        """Of click. Its help is printed before arguments are parsed."""
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Of click."""
        readers = get_readers()
        shown = copy(self)
        shown.params = [_name_formats(param, list(readers)) for param in self.params]
        format = next((name for name in ctx.meta[_ARGUMENTS] if name in readers), None)
        if format is not None:
            shown.params += _make_options(readers[format], format)
            shown.help = f"{self.help}\n\n{format}: {_read_summary(readers[format])}"
        TyperCommand.format_help(shown, ctx, formatter)


def _name_formats(param: Any, names: List[str]) -> Any:
    if param.name != "format":
        return param
    param = copy(param)
    param.help = f"{param.help}. One of: {', '.join(names)}"
    return param


def _make_options(reader: Callable, format: str) -> List[Any]:
    """RETURNS (List[Any]): Parameters of click, for the help alone."""

    def command(**options: Any) -> None:
        pass

    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_make_option(default, name, f"Of {format}: {_read_help(reader, name)}"),
            annotation=type(default),
        )
        for name, default in get_options(reader).items()
    ]
    # Typer reads it, whatever the function takes.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    app.command(add_help_option=False)(command)
    return typer.main.get_command(app).params


def _make_option(default: Any, name: str, help: str) -> Any:
    return typer.Option(
        default, spell_option(name), help=help, show_default="none" if default == "" else True
    )


def _read_summary(reader: Callable) -> str:
    return " ".join((inspect.getdoc(reader) or "").partition("\n\n")[0].split())


def _read_help(reader: Callable, name: str) -> str:
    """RETURNS (str): What the docstring says of a parameter, up to the next entry."""
    entry = rf"^{name} \([^)]*\):\s(.*?)(?=^\w+ \(|\Z)"
    found = re.search(entry, inspect.getdoc(reader) or "", re.MULTILINE | re.DOTALL)
    return " ".join(found[1].split()).rstrip(".") if found else ""
