"""Which messages the package really made while the tests ran.

A message is made where it is raised, warned of or logged: by `.format`, or by being named if
nothing is to be filled in. `MessageUse`, a plugin of pytest, notes that, adds up the
processes of pytest-xdist, and fails a whole run that left out a message.
"""

import re
import string
import sys
from typing import Set

import pytest
from spacy.errors import ErrorsWithCodes

CODE = re.compile(r"[EW]L\d{3}")
# Markers of a whole run; `pytest -m slow` alone is none.
WHOLE = ("not slow and not gpu", "slow or not slow", "not gpu", "")

made: Set[str] = set()


class Template(str):
    """A message with places to fill."""

    code: str

    def format(self, *args: object, **kwargs: object) -> str:
        _note(self.code)
        return super().format(*args, **kwargs)


class NotingErrors(ErrorsWithCodes):
    """The class of `Errors` and `Warnings` while tests run."""

    def __getattribute__(cls, name: str) -> object:
        text = super().__getattribute__(name)
        if not CODE.fullmatch(name):
            return text
        if not any(field for _, field, _, _ in string.Formatter().parse(text)):
            _note(name)
            return text
        template = Template(text)
        template.code = name
        return template


def _note(code: str) -> None:
    # Two frames up is whoever names or fills the message: not a test that looks at them.
    caller = sys._getframe(2).f_globals.get("__name__", "")
    if caller.partition(".")[0] == "spacy_elmo":
        made.add(code)


def find_codes(*groups: type) -> Set[str]:
    """All codes of classes of messages."""
    return {name for group in groups for name in vars(group) if CODE.fullmatch(name)}


class MessageUse:
    """groups (type): classes of messages, which note their use from now on."""

    def __init__(self, config: pytest.Config, *groups: type) -> None:
        self.config = config
        self.codes = find_codes(*groups)
        self.never_made: Set[str] = set()
        for group in groups:
            group.__class__ = NotingErrors  # type: ignore[assignment]

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["messages"] = sorted(made)
        elif exitstatus == 0 and self._is_whole():
            self.never_made = self.codes - made
            if self.never_made:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        made.update(getattr(node, "workeroutput", {}).get("messages", ()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.never_made:
            terminalreporter.section("messages that no test raises", red=True)
            terminalreporter.line(", ".join(sorted(self.never_made)))

    def _is_whole(self) -> bool:
        option = self.config.option
        return (
            self.config.args_source == pytest.Config.ArgsSource.TESTPATHS
            and option.markexpr in WHOLE
            and not (option.keyword or option.collectonly or option.deselect or option.ignore)
            and not (getattr(option, "lf", False) or getattr(option, "stepwise", False))
        )
