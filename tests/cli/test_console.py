"""What commands print goes through one place: results to one stream, all else to the other."""

import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tqdm import std, tqdm

from spacy_elmo import cli
from spacy_elmo.cli.common import Console, _format_seconds, exit_on_error
from spacy_elmo.errors import Errors, Warnings

FILES = sorted(Path(cli.__file__).parent.glob("*.py"))


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_else_prints(path):
    pattern = r"\bprint\(|(import|from) (wasabi|tqdm)|sys\.std(out|err)|typer\.(echo|secho)"
    if path.stem != "console":
        assert not re.search(pattern, path.read_text("utf-8"))


def say_all(console):
    console.show("result")
    console.show_title("Title")
    console.show_table([("a", "1"), ("b", "20")], ("what", "n"))
    console.inform("note")
    console.warn("warning")
    console.tell("line")
    assert list(console.track([1, 2], unit="things")) == [1, 2]
    console.finish(Path("x.json"), None, summary="two")
    console.fail("error")


def test_results_and_all_else_are_apart(capsys):
    say_all(Console())
    loud = capsys.readouterr()
    say_all(Console(is_quiet=True))
    quiet = capsys.readouterr()

    assert loud.out == quiet.out and loud.out.startswith("result\n")
    assert "= Title =" in loud.out and "\x1b" not in loud.out + loud.err
    assert re.search(r"what +n *\n-+ +-+ *\na +1 *\nb +20", loud.out)
    for text in ("note", "warning", "line", "Wrote x.json in 0.0 s\ntwo", "error"):
        assert text in loud.err
    assert "things" not in loud.err  # no terminal, no bar
    assert quiet.err.strip() == "✘ error"


def test_a_terminal_gets_bars_and_colours(monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("ANSI_COLORS_DISABLED", raising=False)
    say_all(Console())
    assert "2/2 things" in sys.stderr.getvalue() and "\x1b[" in sys.stderr.getvalue()
    assert "\x1b[1m" in sys.stdout.getvalue()
    assert "\x1b[" in Console().mark("ham") and "ham" in Console().mark("ham")

    monkeypatch.setattr(sys, "stderr", Terminal())
    say_all(Console(is_quiet=True))
    assert "things" not in sys.stderr.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    assert Console().mark("ham") == "[ham]"


def test_our_warnings_are_messages():
    ours = UserWarning(Warnings.WL051.format(task=3))
    with exit_on_error():
        shown = [
            warnings.formatwarning(message, UserWarning, "x.py", 1)
            for message in (ours, UserWarning("another's"))
        ]
    assert shown[0].startswith("⚠ [WL051] A process") and "x.py:1: UserWarning" in shown[1]
    assert "x.py:1: UserWarning" in warnings.formatwarning(ours, UserWarning, "x.py", 1)


@pytest.mark.parametrize("is_quiet", [False, True])
def test_warnings_can_be_quiet(is_quiet):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with exit_on_error(is_quiet):
            warnings.warn("another's", stacklevel=1)
    assert bool(caught) != is_quiet


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, ImportError])
def test_an_error_of_ours_has_no_traceback(kind, capsys):
    with pytest.raises(SystemExit, match="1"), exit_on_error(is_quiet=True):
        raise kind(Errors.EL003)
    assert "[EL003]" in capsys.readouterr().err
    # Nor spaCy's own of a tokenizer's package; an import that fails is a mistake.
    with pytest.raises(SystemExit, match="1"), exit_on_error(is_quiet=True):
        raise ImportError("Japanese support requires ham")
    assert "requires ham" in capsys.readouterr().err
    with pytest.raises(ImportError), exit_on_error():
        import spacy_elmo.ham  # noqa: F401
    with pytest.raises(AssertionError), exit_on_error():
        raise AssertionError("a mistake of ours")


@pytest.mark.slow
@pytest.mark.parametrize("method, stream", [("show", "stdout"), ("tell", "stderr")])
def test_a_reader_may_go(tmp_path, method, stream):
    code = (
        "import sys, pathlib\n"
        "from spacy_elmo.cli.common import exit_on_error\n"
        "with exit_on_error() as console:\n"
        f"    for i in range(100_000): console.{method}('result')\n"
        f"    pathlib.Path({str(tmp_path / 'x')!r}).touch()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        left, kept = process.stdout, process.stderr
        if stream == "stderr":
            left, kept = kept, left
        assert left.readline() == b"result" + os.linesep.encode()
        left.close()
        rest = kept.read().decode()

    # The files are still written.
    assert (process.returncode, rest) == (0, "") and (tmp_path / "x").exists()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_stream_that_was_closed_is_no_mistake(monkeypatch, stream):
    """Python has None for what a shell closes (`2>&-`)."""
    monkeypatch.setattr(sys, stream, None)
    console = Console()
    console.show("result")
    console.show_title("title")
    console.inform("note")
    console.fail("error")
    assert console.mark("word") == "[word]" and not console.has_bars
    console.finish()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux")
def test_a_full_disk_is_told():
    code = (
        "from spacy_elmo.cli.common import exit_on_error\n"
        "with exit_on_error() as console: console.show('result')\n"
    )
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, check=False
        )
    error = done.stderr.decode()
    assert done.returncode == 1 and "[EL158]" in error and "Exception ignored" not in error


def test_an_interrupt_on_the_way_to_tqdms_lock_is_not_hidden(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    tqdm.get_lock()
    monkeypatch.delattr(tqdm, "_lock")
    monkeypatch.setattr(std, "TqdmDefaultWriteLock", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Console().inform("note")


def test_letters_that_the_output_does_not_have(monkeypatch):
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    Console().show("schön")
    assert output.buffer.getvalue() == b"sch\\xf6n\n"


def test_durations():
    cases = {0.04: "0.0 s", 3.21: "3.2 s", 59.96: "1 min 0 s", 125: "2 min 5 s", 3_720: "1 h 2 min"}
    assert {seconds: _format_seconds(seconds) for seconds in cases} == cases
