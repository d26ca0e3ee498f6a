"""The completion of `spacy elmo` in shells, as the page of the commands has it."""

import os
import shutil
import subprocess
import sys

import pytest

from docs_build.completion import SCRIPTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="shells of Unix"),
]
# Begun lines, and what is offered for the last word.
CASES = {
    ("elmo", "in"): {"init-config", "index"},
    ("elmo", "embed", "--engine", ""): {"local", "ray"},
}


@pytest.fixture
def run_shell(tmp_path):
    """Runs lines in a shell that finds a program "spacy"."""
    program = tmp_path / "spacy"
    program.write_text(f"#!{sys.executable}\nfrom spacy.cli import setup_cli\nsetup_cli()\n")
    program.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])

    def run(shell, *lines):
        if shutil.which(shell) is None:
            pytest.skip(f"needs {shell}")
        done = subprocess.run(
            [shell, "-c", "\n".join([*lines])],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    return run


@pytest.mark.parametrize("words", CASES)
def test_bash(run_shell, words):
    array = " ".join(f"'{word}'" for word in ("spacy", *words))
    printed = run_shell(
        "bash",
        SCRIPTS["bash"],
        f"COMP_WORDS=({array}); COMP_CWORD={len(words)}; _spacy",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    )
    assert set(printed.split()) == CASES[words]


@pytest.mark.parametrize("words", CASES)
def test_zsh(run_shell, words):
    # Outside of an editor, what `_arguments` would be given is printed.
    array = " ".join(f"'{word}'" for word in ("spacy", *words))
    printed = run_shell(
        "zsh",
        "compdef() { : }; _arguments() { print -r -- $1 }",
        SCRIPTS["zsh"],
        f"words=({array}); CURRENT={len(words) + 1}; _spacy",
    )
    begin, end = "*: :((", "))"
    assert printed.startswith(begin) and printed.rstrip().endswith(end), printed
    lines = printed.strip()[len(begin) : -len(end)].splitlines()
    assert {line.split(":")[0].strip('"') for line in lines} == CASES[words]


@pytest.mark.parametrize("words", CASES)
def test_fish(run_shell, words):
    begun = " ".join(("spacy", *words))
    printed = run_shell("fish", SCRIPTS["fish"], f"complete -C '{begun}'")
    assert {line.split("\t")[0] for line in printed.splitlines()} == CASES[words]
