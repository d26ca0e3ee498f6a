"""What every `--help` says: units, defaults, an example, `--quiet`."""

import inspect
import re

import pytest
import typer
from typer.models import ArgumentInfo, OptionInfo

from spacy_elmo import cli
from spacy_elmo.cli.common import QUIET

from .test_commands import run

FUNCTIONS = {name: function for name, function, _ in cli._COMMANDS}
# What numbers count, or are numbers of.
UNITS = (
    "actors", "characters", "contexts", "docs", "layer", "lines", "minutes", "passes", "percent",
    "port", "processes", "processors", "runs", "seconds", "sentences", "sequences", "threads",
    "tokens", "updates",
)  # fmt: skip


def list_infos(name):
    """Arguments and options of a command by name, with their types."""
    parameters = inspect.signature(FUNCTIONS[name]).parameters.items()
    kinds = (ArgumentInfo, OptionInfo)
    return {key: (p.default, p.annotation) for key, p in parameters if isinstance(p.default, kinds)}


def shows_default(info, kind):
    """Whether Typer shows one: it leaves out None, "" and [], which need words of ours."""
    if info.default is ... or (kind is bool and len(list_names(info)) == 1):
        # Required, or a flag, which is off.
        return True
    if isinstance(info.show_default, str):
        return bool(info.show_default)
    return info.show_default and info.default not in (None, "", [])


def list_names(info):
    """The names of a flag, without its short one; two if it has none of its own (--x/--no-x)."""
    given = [name for name in getattr(info, "param_decls", None) or () if name.startswith("--")]
    return [name for names in given for name in names.split("/")] or ["--x", "--no-x"]


def counts_something(info, kind):
    if not any(number in str(kind) for number in ("int", "float")):
        return True
    return any(re.search(rf"\b{unit}\b", info.help, re.IGNORECASE) for unit in UNITS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_option_has_its_default_and_its_unit(name):
    for key, (info, kind) in list_infos(name).items():
        assert info.help, key
        assert shows_default(info, kind), key
        assert counts_something(info, kind), key


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_help_shows_all_of_it(name):
    printed = " ".join(run("elmo", name, "--help").split())

    assert f"Example: python -m spacy elmo {name} " in printed
    for info, _ in list_infos(name).values():
        default = info.show_default if isinstance(info.show_default, str) else info.default
        default = getattr(default, "value", default)
        if default not in (..., False, True):
            assert f"[default: {default}" in printed or f"[default: ({default})" in printed


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_command_can_be_quiet(name):
    assert list_infos(name)["quiet"] == (QUIET, bool)
    assert "-Q, --quiet" in run("elmo", name, "--help")


@pytest.mark.parametrize("name", ["search", "neighbors"])
@pytest.mark.parametrize("option", ["-n", "--n"])
def test_how_many_to_show_is_spelled_alike(name, option):
    """Both spellings have been there, one in each command."""
    command = typer.main.get_command(cli.elmo_cli).commands[name]
    required = {"search": ["index", "query"], "neighbors": ["x", "--token=x", "--corpus=x"]}

    context = command.make_context(name, [*required[name], option, "3"])

    assert context.params["n"] == 3


def test_the_checks_can_fail():
    options = {
        "no default": (OptionInfo(default=None, help="File to write"), str),
        "no text": (OptionInfo(default="", help="Folder"), str),
    }
    for info, kind in options.values():
        assert not shows_default(info, kind)
    assert shows_default(OptionInfo(default=False, param_decls=("--half",)), bool)
    assert not shows_default(OptionInfo(default=None, param_decls=()), bool)
    assert not counts_something(OptionInfo(default=3, help="How long to wait"), int)
    assert counts_something(OptionInfo(default=3, help="Minutes to wait"), int)
