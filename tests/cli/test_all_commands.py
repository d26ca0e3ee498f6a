"""All commands: help, streams, exit codes, completion."""

import inspect
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import srsly
import typer
from spacy.cli import app
from spacy.tokens import DocBin
from spacy.training import Example
from typer.models import ArgumentInfo, OptionInfo
from typer.testing import CliRunner

from docs_build.completion import SCRIPTS
from spacy_elmo import cli
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.cli.common import FAILED, INTERRUPTED, Console, exit_on_error, require_output
from spacy_elmo.errors import Errors
from spacy_elmo.experiments import runs
from spacy_elmo.experiments.results import get_origin
from spacy_elmo.explore import app as page
from spacy_elmo.layers.elmo_layers import get_embedder

from ..experiments.test_runs import make_result
from ..support.helpers import make_nlp
from ..support.runs import train
from ..support.toy_corpora import make_docs
from ..support.toy_wordnet import make_lines, write_wordnet
from .test_commands import run

NAMES = [name for name, _, _ in cli._COMMANDS]
# A command line of each that works and takes no time. OUT is a folder to write to.
WORKING = {
    "init-config": "OUT/config.cfg --weights weights",
    "demo": "weights --texts text.txt --word ham --output OUT/ham.png",
    "tasks": "nlp Ham. --html OUT/page.html",
    "explore": "nlp --port 0",
    "embed": "text.txt OUT/vectors --weights weights",
    "index": "text.txt OUT/index --weights weights",
    "search": "index ham --json OUT/x.json",
    "neighbors": "ham --token ham --corpus text.txt --weights weights --json OUT/x.json",
    "train-senses": "semcor.jsonl wordnet OUT/nlp --weights weights --json OUT/x.json",
    "weights": "nlp --output OUT/weights.png",
    "experiment": "gain corpus OUT --weights weights --seeds 0",
    "pretrain": "pretrain.cfg OUT/run --training.max_steps 2 --training.eval_frequency 9",
    "debug-corpus": "pretrain.cfg",
    "evaluate": "run/model-last text.txt --output OUT/x.json",
    "benchmark": "text.txt weights --batch-sizes 1 --repeats 1 --tokens 10 --output OUT/speed.png",
    "convert": "weights OUT/weights",
    "convert-data": "conll2003 train.conll OUT/train.spacy",
}
# And one that cannot be done.
FAILING = {
    "init-config": "config.cfg --preset nope",
    "demo": "nowhere",
    "tasks": "nowhere Ham.",
    "explore": "nowhere",
    "embed": "nowhere OUT/vectors",
    "index": "nowhere OUT/index",
    "search": "nowhere ham",
    "neighbors": "ham --token ham --corpus nowhere",
    "train-senses": "text.txt wordnet OUT/nlp",
    "weights": "nowhere",
    "experiment": "gain nowhere OUT",
    "pretrain": "nowhere.cfg OUT/run",
    "debug-corpus": "nowhere.cfg",
    "evaluate": "nowhere text.txt",
    "benchmark": "nowhere weights",
    "convert": "nowhere OUT/weights",
    "convert-data": "conll2003 nowhere OUT/train.spacy",
}
# Their output contains measurements or a free port.
MEASURING = {"benchmark", "debug-corpus", "explore"}
# They write files and print no result.
SILENT = {
    "init-config", "embed", "index", "pretrain", "convert", "convert-data",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory, texts):
    """What the command lines above name."""
    path = tmp_path_factory.mktemp("folder")
    nlp = make_nlp()
    nlp.add_pipe("textcat").initialize(lambda: [make_example(nlp)])
    nlp.to_disk(path / "nlp")
    write_native(get_embedder(nlp.get_pipe("elmo").model).bilm, path / "weights")
    (path / "text.txt").write_text("I like ham.\nThe ham was green.\n" * 3)
    (path / "train.conll").write_text("Ham NN B-NP B-FOOD\n! . O O\n\n")
    srsly.write_jsonl(path / "semcor.jsonl", make_lines())
    write_wordnet(path / "wordnet")
    (path / "corpus").mkdir()
    for i, split in enumerate(("train", "dev")):
        DocBin(docs=make_docs(10, i)).to_disk(path / f"corpus/{split}.spacy")
    train(path, texts, "run")
    command = ["elmo", "index", path / "text.txt", path / "index"]
    run(*command, "--weights", path / "weights")
    return path


def make_example(nlp):
    doc = nlp.make_doc("Ham .")
    doc.cats = {"good": 1.0, "bad": 0.0}
    return Example(nlp.make_doc("Ham ."), doc)


@pytest.fixture
def invoke(folder, tmp_path, monkeypatch):
    """A function that runs a command line in that folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(runs, "run_one", make_run)
    # A page that nobody reads.
    monkeypatch.setattr(page, "run_server", lambda app, opened: opened.close())
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def invoke(name, line, *more):
        # Another folder for each: most commands replace nothing.
        output = tmp_path / str(len(list(tmp_path.iterdir())))
        output.mkdir()
        words = line.replace("OUT", str(output)).split()
        return CliRunner().invoke(app, ["elmo", name, *words, *more]), output

    yield invoke
    for number, handler in handlers.items():
        signal.signal(number, handler)


def make_run(run, *_):
    """The result of a run that is not trained."""
    return {**make_result(run.variant.name, run.seed, 0.5, [0]), **get_origin()}


def slow_unless(names):
    """Names of the commands, marked slow but for some."""
    return [name if name in names else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]


@pytest.mark.parametrize("name, function, example", cli._COMMANDS, ids=NAMES)
def test_help_has_defaults_and_an_example_that_is_understood(
    name, function, example, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for path in ("results", "wordnet/dict"):
        Path(path).mkdir(parents=True)
    Path("semcor.jsonl").touch()
    command = typer.main.get_command(cli.elmo_cli).commands[name]
    printed = " ".join(run("elmo", name, "--help").split())

    # What is unknown, missing or of another type is an error here.
    command.make_context(name, shlex.split(example))
    assert " ".join(f"Example: python -m spacy elmo {name} {example}".split()) in printed
    assert "-Q, --quiet" in printed
    for parameter in inspect.signature(function).parameters.values():
        if isinstance(parameter.default, (ArgumentInfo, OptionInfo)):
            info = parameter.default
            assert info.help, parameter.name
            default = info.show_default if isinstance(info.show_default, str) else info.default
            default = getattr(default, "value", default)
            assert default not in (None, ""), parameter.name
            if default not in (..., False, True):
                assert f"[default: {default}" in printed or f"[default: ({default})" in printed


@pytest.mark.parametrize("name", slow_unless({*NAMES} - {"benchmark", "pretrain"}))
def test_what_works_ends_with_0_and_can_be_quiet(invoke, name):
    result, output = invoke(name, WORKING[name])
    quiet, _ = invoke(name, WORKING[name], "--quiet")

    assert (result.exit_code, quiet.exit_code) == (0, 0), result.output + quiet.output
    assert bool(result.stdout) == (name not in SILENT)
    if name not in MEASURING:
        assert quiet.stdout == result.stdout
    assert not quiet.stderr
    closing = re.search(r"✔ (Wrote (.*?)|Done) in [0-9.]+ s( |$)", unwrap(result.stderr))
    assert closing, result.stderr
    written = sorted(str(path) for path in output.rglob("*") if str(path) in (closing[2] or ""))
    assert bool(written) == any(output.iterdir()), result.stderr


def unwrap(text):
    """Without the line breaks of wasabi."""
    return " ".join(text.split())


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_done_ends_with_1_and_a_message(invoke, name):
    for flags in ([], ["-Q"]):
        result, output = invoke(name, FAILING[name], *flags)

        assert isinstance(result.exception, SystemExit), repr(result.exception)
        assert result.exit_code == FAILED == 1
        assert result.stderr.startswith("✘ ") and not result.stdout
        # A lock stays, so that two processes never hold two of them.
        files = [path for path in output.rglob("*") if path.is_file()]
        assert all(path.name == ".lock" for path in files)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_usage_ends_with_2(invoke, name):
    # A value for a flag, an option that is not there, an argument too many.
    for more in (["--quiet=yes"], ["--no-such-thing", "1"], ["one", "too", "many"]):
        if name == "neighbors" and more[0] == "one":
            continue  # takes any number of sentences
        result, _ = invoke(name, WORKING[name], *more)
        assert result.exit_code == 2, result.output
        assert not result.stdout and "Error: " in result.stderr


@pytest.mark.parametrize("name", slow_unless({"convert", "index", "weights"}))
def test_ctrl_c_ends_with_130(invoke, monkeypatch, name):
    def finish(self, *paths, summary=""):
        raise KeyboardInterrupt

    # The last thing that each command does, so that all before it is covered, too.
    monkeypatch.setattr(Console, "finish", finish)
    result, _ = invoke(name, WORKING[name])

    assert result.exit_code == INTERRUPTED == 130
    assert "Interrupted. " in result.stderr and "Traceback" not in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_in_a_terminal(folder, tmp_path):
    command = [sys.executable, "-m", "spacy", "elmo", "embed", "-", tmp_path / "out"]
    with subprocess.Popen(
        [str(part) for part in (*command, "--weights", folder / "weights")],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # What runs in the background of a shell ignores the signal, and so do its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        # It waits for a text.
        while not (tmp_path / "out").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        error = process.stderr.read()

    assert process.returncode == INTERRUPTED, error
    assert "Interrupted. " in error and "--resume" in error and "Traceback" not in error


# Begun lines, and what is offered for the last word.
CASES = {
    ("elmo", "in"): {"init-config", "index"},
    ("elmo", "embed", "--engine", ""): {"local", "ray"},
}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("words", CASES)
def test_bash_completes_commands_and_choices(tmp_path, words):
    program = tmp_path / "spacy"
    program.write_text(f"#!{sys.executable}\nfrom spacy.cli import setup_cli\nsetup_cli()\n")
    program.chmod(0o755)
    array = " ".join(f"'{word}'" for word in ("spacy", *words))
    lines = [
        SCRIPTS["bash"],
        f"COMP_WORDS=({array}); COMP_CWORD={len(words)}; _spacy",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    printed = subprocess.check_output(
        ["bash", "-c", "\n".join(lines)], env={**os.environ, "PATH": path}, text=True
    )
    assert set(printed.split()) == CASES[words]


# ---- what commands print


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def show_all(console):
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
    show_all(Console())
    loud = capsys.readouterr()
    show_all(Console(is_quiet=True))
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
    show_all(Console())
    assert "2/2" in sys.stderr.getvalue() and "\x1b[" in sys.stderr.getvalue()
    assert "\x1b[" in Console().mark("ham") and "ham" in Console().mark("ham")

    monkeypatch.setenv("NO_COLOR", "1")
    assert Console().mark("ham") == "[ham]"


@pytest.mark.parametrize("is_quiet", [False, True])
def test_warnings_are_messages(is_quiet, capsys):
    with exit_on_error(is_quiet), warnings.catch_warnings():
        warnings.simplefilter("default")
        if not is_quiet:
            warnings.warn("[WL003] Words are read", stacklevel=1)
        logged = capsys.readouterr().err
    assert ("⚠ [WL003] Words are read" in logged) != is_quiet


def test_errors_have_no_traceback_but_those_of_the_program(capsys):
    for error, message in (
        (ValueError(Errors.EL003), "[EL003]"),
        (RuntimeError(Errors.EL003), "[EL003]"),
        (ImportError("Japanese support requires ham"), "requires ham"),
        (OSError(28, "No space left on device", "x.txt"), "No space left on device ('x.txt')"),
        (MemoryError(), "not enough memory"),
        (RuntimeError("you tried to allocate 9 bytes"), "not enough memory"),
    ):
        with pytest.raises(SystemExit, match="1"), exit_on_error(is_quiet=True):
            raise error
        assert message in " ".join(capsys.readouterr().err.split())
    for error in (AssertionError(), RuntimeError("shapes"), ImportError("ham", name="ham")):
        with pytest.raises(type(error)), exit_on_error():
            raise error


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_stream_may_be_closed(monkeypatch, stream):
    """Python has None for a stream that the shell closed (`2>&-`)."""
    monkeypatch.setattr(sys, stream, None)
    show_all(Console())
    assert Console().mark("word") == "[word]"


def test_letters_that_the_output_does_not_have(monkeypatch):
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    Console().show("schön")
    assert output.buffer.getvalue() == b"sch\\xf6n\n"


def test_outputs_are_tried_before_the_work(tmp_path):
    (tmp_path / "old.json").write_text("old")
    for path in (None, tmp_path / "new.json", tmp_path / "old.json", tmp_path / "a" / "b.json"):
        require_output(path)
    assert (tmp_path / "old.json").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "old.json"]
    require_output(Path("/dev/stdout"))
    for path in (tmp_path, tmp_path / "old.json" / "x", Path("/proc/x.json"), Path("-")):
        with pytest.raises(ValueError, match=f"EL145.*{path}"):
            require_output(path)
