"""Users' mistakes, through spaCy's own command line: an exit code and a message of ours, never
a traceback."""

import os
import re
import shlex
import sys

import pytest
import spacy
from spacy.cli._util import app
from typer.testing import CliRunner

from spacy_elmo.files import LOCK_FILE

from ..support.runs import train, write_config

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has pipes and devices")


@pytest.fixture(scope="module")
def places(tmp_path_factory, texts):
    """Names in the command lines below -> paths."""
    folder = tmp_path_factory.mktemp("places")
    contents = {
        "text.txt": b"I like green eggs and ham.\nYou like ham.\n" * 20,
        "empty.txt": b"",
        "blank.txt": b" \n\n",
        "latin.txt": "Das Haus ist schön.\n".encode("latin-1"),
        "broken.txt.gz": b"\x1f\x8b\x08\x00\x00\x00",
        "many.txt": b"the bank\n" * 60,
        "broken.spacy": b"abc",
        "binary.cfg": bytes(range(256)),
        "words.txt": b"\xff\xfe",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe.txt")
    config = write_config(folder, texts)
    train(folder, texts, "run")
    for name in ("nlp", "bad_nlp"):
        spacy.blank("en").to_disk(folder / name)
    (folder / "bad_nlp" / "vocab" / "strings.json").write_bytes(b"{")
    # meta.json of a stranger's.
    for name, content in {
        "meta_list": "[]",
        "meta_cut": '{"evaluation": {"max_tokens": "x"}}',
        "meta_misc": '{"tokenizer": {"@misc": "x"}}',
    }.items():
        (folder / name).mkdir()
        for path in (folder / "run" / "model-last").iterdir():
            (folder / name / path.name).write_bytes(path.read_bytes())
        (folder / name / "meta.json").write_text(content)
        (folder / name / "digests.json").unlink()
    found = {path.name.replace(".", "_"): path for path in folder.iterdir()}
    return {
        **found,
        "config": config,
        "model": folder / "run" / "model-last",
        "out": folder / "out",
    }


# Files without usable text, and the messages for them.
NO_TEXTS = {
    "empty_txt": "EL094",
    "blank_txt": "EL094",
    "folder": "EL080",
    "out": "EL080",
    "pipe_txt": "EL100.*a pipe or a device",
    "latin_txt": "EL155.*byte 16, in line 1.*latin-1",
    "broken_txt_gz": "EL103",
    "broken_spacy": "EL103",
    "binary_cfg": "EL081",
}
READERS = (
    "evaluate {{model}} {text}",
    "neighbors 'I like ham .' --token ham --corpus {text}",
    "pretrain {{config}} {{out}} --paths.train {text}",
    "pretrain {{config}} {{out}} --paths.dev {text}",
    "debug-corpus {{config}} --paths.train {text}",
    "benchmark {text} --output {{out}}.png",
    "demo --texts {text} --output {{out}}.png",
)

# Command line, and the message with exit code 1; or 2 for an error of the parser.
MISTAKES = [
    *[
        (command.format(text="{" + text + "}"), code)
        for text, code in NO_TEXTS.items()
        for command in READERS
        # One reader is behind all of them.
        if command is READERS[0] or text == "latin_txt"
    ],
    # init-config
    ("init-config {config}", "exists.*--force"),
    ("convert-data conll2003 {text_txt} {text_txt}", "text.txt.* cannot be replaced"),
    ("init-config {text_txt}/x.cfg", "EL145.*xists"),
    ("init-config {out} --lang zzz", "EL161.*'zzz'"),
    ("init-config {out} --pipeline ''", "No component is named"),
    ("init-config {out} --pipeline nope", "EL061"),
    ("init-config {out} --pipeline sentencizer", "EL061"),
    ("init-config {out} --pipeline elmo_coref,elmo_qa", "'elmo_qa' and 'elmo_coref'"),
    ("init-config {out} --preset nope", "EL060"),
    ("init-config {out} --preset kim_5m", "'kim_5m'.*--pretraining.*task_mix"),
    ("init-config {out} --preset task_mix --pretraining", "'task_mix'.*kim_5m"),
    ("init-config {out} --vectors {folder}", "'word_features' reads no"),
    ("init-config {out} --options {folder}", "EL031"),
    ("init-config /dev/full", "exists"),
    ("init-config /dev/full --force", "cannot be read or written.*No space"),
    # pretrain and debug-corpus
    *[
        (command.format(config="{" + config + "}"), code)
        for config, code in {
            "folder": "EL100.*a folder",
            "pipe_txt": "EL100.*a pipe",
            "out": "EL100",
            "binary_cfg": "EL098",
            "empty_txt": r"EL091.*\[corpus\] train",
        }.items()
        for command in ("pretrain {config} {{out}}", "debug-corpus {config}")
    ],
    *[
        (f"pretrain {{config}} {{out}} {option}", code)
        for option, code in {
            "--threads 100000": 2,
            "--max-minutes nan": 2,
            "--device tpu": "EL091.*device = tpu",
            "--training": 2,
            "--training.nothing 1": "EL09",
            "--training.batch_tokens 1000000000000": "EL091.*batch_tokens",
            "--corpus.vocabulary {words_txt}": "EL103",
            "--nlp.lang zzz": "EL161",
            "--paths.train 2024": r"EL091.*\[paths\] train = 2024.*\./2024",
            "--paths.init {folder}": "EL031",
            "--bilm.input vectors --paths.vectors {bad_nlp}": "EL087",
        }.items()
    ],
    ("pretrain {config} {text_txt}", 2),
    ("pretrain {config} {text_txt}/x", "cannot be read or written"),
    ("pretrain {config} {run}", "EL095.*--resume"),
    # evaluate
    ("evaluate {out} {text_txt}", "EL030"),
    ("evaluate {model} -", "standard input"),
    ("evaluate {model} {text_txt} --vocab {words_txt}", "EL103"),
    ("evaluate {model} {text_txt} --vocab {text_txt}", "EL071"),
    ("evaluate {model} {text_txt} --cut x", "EL012"),
    ("evaluate {model} {text_txt} --max-tokens 1", 2),
    ("evaluate {model} {text_txt} --lang zzz", "EL161"),
    ("evaluate {model} {text_txt} --output {text_txt}/x", "EL145"),
    ("evaluate {model} {text_txt} --output /dev/full", "exact perplexity.*written: No space"),
    ("evaluate {meta_list} {text_txt}", "EL103"),
    ("evaluate {meta_cut} {text_txt}", "EL012.*max_tokens = 'x'"),
    ("evaluate {meta_misc} {text_txt}", "EL012.*tokenizer"),
    # neighbors
    *[
        (f"neighbors 'I like ham .' --token ham --corpus {{text_txt}} {option}", code)
        for option, code in {
            "--limit 1000000000000000000000000": 2,
            "--layer 9": "EL012",
            "--lang zzz": "EL161",
            "--vectors {bad_nlp}": "EL087",
            "--output {out}.xyz": "A picture cannot",
            "--json {text_txt}/x": "EL145",
            "--json /dev/full": "I like.*cannot be read or written.*No space",
        }.items()
    ],
    ("neighbors '' --token ham --corpus {text_txt}", "EL053"),
    # demo
    ("demo --texts {empty_txt} --output {out}.png", "no sentences"),
    ("demo --texts {many_txt} --output {out}.png", "60 sentences"),
    ("demo --word nope --output {out}.png", "EL053"),
    ("demo --output {out}.xyz", "A picture cannot"),
    ("demo {folder}", "EL031"),
    # benchmark
    *[
        (f"benchmark {{text_txt}} {{model}} --output {{out}}.png {option}", code)
        for option, code in {
            "--precisions fp8": "EL012",
            "--batch-sizes ''": 2,
            "--lang zzz": "EL161",
            "--json {text_txt}/x": "EL145",
        }.items()
    ],
    ("benchmark {text_txt} {out} --output {out}.png", "EL030"),
    ("benchmark {text_txt} --output {out}.xyz", "A picture cannot"),
    # embed
    *[(f"embed {{text_txt}} {{out}} --{o} words", f"EL012.*--{o}") for o in ("unit", "format")],
    ("embed {text_txt} {out} --layers top", "EL249"),
    ("embed {text_txt} {out} --pipeline x --lang en", 2),
    # weights
    ("weights {nlp}", "EL063"),
    ("weights {bad_nlp}", "EL171"),
    ("weights {nlp} --output {out}.xyz", "A picture cannot"),
]  # fmt: skip


@pytest.mark.parametrize("command, expected", MISTAKES)
@pytest.mark.timeout(60)
def test_mistakes_are_told(places, tmp_path, monkeypatch, command, expected):
    monkeypatch.chdir(places["folder"])
    out = tmp_path / "out"
    names = {name: shlex.quote(str(path)) for name, path in {**places, "out": out}.items()}

    result = CliRunner().invoke(app, ["elmo", *shlex.split(command.format(**names))])

    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == (2 if expected == 2 else 1), result.output
    if expected != 2:  # long lines are wrapped
        assert re.search(f"({expected})", " ".join(result.output.split())), result.output
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left <= {LOCK_FILE}
    assert not list(places["folder"].iterdir())
