"""Files -> sequences: formats, order, positions, workers, memory."""

import gzip
import io
import json
import logging
import lzma
import os
import subprocess
import sys
import time
import zlib
from functools import partial

import numpy as np
import pytest
import spacy
import srsly
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin
from spacy.vectors import Vectors

from spacy_elmo.experiments.runs import read_docs
from spacy_elmo.text import cutting
from spacy_elmo.text import text_files as files
from spacy_elmo.text.corpus import (
    Corpus,
    cutter_maker,
    make_tokenizer,
    open_sources,
    read_all_sequences,
    read_sequences,
)
from spacy_elmo.text.cutting import Cutter
from spacy_elmo.text.file_formats import read_docbin, read_jsonl, read_text
from spacy_elmo.text.sentences import cut_sentences, cut_windows
from spacy_elmo.text.static_vectors import read_static_vectors
from spacy_elmo.text.stdin import spool_stdin
from spacy_elmo.text.text_files import find_files, open_binary
from spacy_elmo.text.texts import TextSource

from ..support.limits import finish_limited

TEXTS = ["I like green eggs .", "Ham ! And “ eggs . ” He said so .", "배 가 고프다 .", ""]


@pytest.fixture
def lines(tmp_path):
    """Two files with numbered lines."""
    for name, n in (("a", 40), ("b", 120)):
        text = "".join(f"{name}{i} is line {i} .\n" for i in range(n))
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return tmp_path


def write(path, texts):
    """Write texts in the format that the path's name says."""
    if ".spacy" in path.name:
        nlp = spacy.blank("xx")
        data = DocBin(docs=[nlp.make_doc(text) for text in texts]).to_bytes()
    elif ".jsonl" in path.name:
        data = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    else:
        data = "\n".join(texts).encode()
    compress = {
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".zst": files.zstd.compress,
    }
    path.write_bytes(compress.get(path.suffix, bytes)(data))


READERS = {"txt": read_text, "jsonl": read_jsonl, "spacy": read_docbin}


@pytest.mark.parametrize("compression", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("ending", READERS)
def test_texts_come_back_from_every_format_and_position(tmp_path, ending, compression):
    path = tmp_path / f"x.{ending}{compression}"
    texts = TEXTS[:3]
    write(path, texts)
    reader = READERS[ending]

    found = list(reader(path, 0))

    assert [text for text, _ in found] == texts
    for i, (_, offset) in enumerate(found):
        assert [text for text, _ in reader(path, offset)] == texts[i + 1 :]


@pytest.mark.parametrize("ending", [*READERS, "txt.gz", "txt.xz", "txt.zst", "spacy.xz"])
def test_damaged_files_are_named(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    write(path, ["abc def ghi " * 100] * 50)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 + 3])
    reader = READERS[ending.split(".")[0]]
    if ending == "txt":  # half a text is a text
        assert list(reader(path, 0))
        return
    with pytest.raises(ValueError, match=r"(EL083|EL084).*x\."):
        list(reader(path, 0))


@pytest.mark.parametrize("ending", ["txt.gz", "txt.xz", "txt.zst"])
def test_files_with_a_wrong_byte_are_named(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    write(path, [f"{i * i} abc def" for i in range(5000)])
    data = bytearray(path.read_bytes())
    for i in range(len(data) // 2, len(data) // 2 + 20):
        data[i] ^= 0x55
    path.write_bytes(data)
    with pytest.raises(ValueError, match="EL083"):
        list(read_text(path, 0))


@pytest.mark.parametrize("line", ["{}", "3", '{"text": 3}', "text"])
def test_lines_without_a_text_are_refused(tmp_path, line):
    (tmp_path / "x.jsonl").write_text('{"text": "a"}\n\n' + line)
    with pytest.raises(ValueError, match="EL084.*byte 15"):
        list(read_jsonl(tmp_path / "x.jsonl", 0))


def test_files_folders_and_globs_are_found(lines):
    (lines / ".hidden.txt").touch()
    (lines / "notes.pdf").touch()
    a, b = lines / "a.txt", lines / "b.txt"

    assert find_files(str(lines), ["txt"]) == [a, b]
    assert find_files(str(a), ["txt"]) == [a]
    assert find_files(f"{lines}/*.txt", ["txt"]) == [a, b]
    for path in (f"{lines}/c.txt", f"{lines}/*.jsonl", str(lines / "none"), "", "x" * 5000):
        with pytest.raises(ValueError, match="EL080"):
            find_files(path, ["txt"])
    with pytest.raises(ValueError, match=r"EL081.*notes\.pdf"):
        find_files(str(lines / "notes.pdf"), ["txt"])


def test_folders_are_found_by_links_once(lines, tmp_path_factory):
    real = tmp_path_factory.mktemp("real")
    (real / "below").mkdir()
    (real / "below" / "c.txt").touch()
    (lines / "z").mkdir()
    (lines / "z" / "d.txt").touch()
    for name, target in (("linked", real), ("up", lines), ("again", lines / "z")):
        (lines / name).symlink_to(target)
    (lines / ".git").mkdir()
    (lines / ".git" / "x.txt").touch()
    found = [path.relative_to(lines).as_posix() for path in find_files(str(lines), ["txt"])]
    assert found == ["a.txt", "b.txt", "linked/below/c.txt", "z/d.txt"]


def test_folders_that_may_not_be_read_are_said(lines, monkeypatch):
    (lines / "locked").mkdir()
    listing = os.scandir

    def refuse(path):
        if os.path.basename(path) == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return listing(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(ValueError, match="EL103.*locked.*Permission denied"):
        find_files(str(lines), ["txt"])
    (lines / "locked").rename(lines / ".locked")


@pytest.mark.timeout(20)
@pytest.mark.skipif(sys.platform == "win32", reason="makes a pipe with a name")
def test_pipes_and_devices_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    for path in (str(tmp_path / "pipe.txt"), "/dev/null"):
        with pytest.raises(ValueError, match="EL100.*a pipe or a device"):
            find_files(path, ["txt"])


def test_zstd_needs_its_extra(tmp_path, monkeypatch):
    write(tmp_path / "x.txt.zst", TEXTS)
    monkeypatch.setattr(files, "zstd", None)
    with pytest.raises(ValueError, match=r"EL082.*spacy-elmo\[zstd\]"):
        open_binary(tmp_path / "x.txt.zst")


def test_a_pipe_is_saved_and_not_read_the_second_time(tmp_path, caplog):
    first = spool_stdin(tmp_path, io.BytesIO(b"a b\nc\n"))
    with caplog.at_level(logging.WARNING):
        again = spool_stdin(tmp_path, io.BytesIO(b"other text"))
    assert "[WL011]" in caplog.text and "stdin.txt" in caplog.text

    assert first == again
    assert [text for text, _ in read_text(first, 0)] == ["a b", "c"]


def test_a_standard_input_that_was_closed_has_no_text(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="EL157"):
        spool_stdin(tmp_path)


def test_lines_of_old_macs_are_not_one_line(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"The Harbour\rShips come in\r")
    with pytest.raises(ValueError, match=r"EL329.*x\.txt.*\\r alone"):
        list(read_text(path, 0))
    # A line alone may end with anything, and any line may have one in it.
    for content in (b"The Harbour\r", b"a \r b\nc"):
        path.write_bytes(content)
        assert list(read_text(path, 0))


@pytest.mark.parametrize(
    "content, code", [(b"", "EL157"), (b"\n \n", "EL157"), (b"caf\xe9\n", r"EL155.*stdin\.txt")]
)
def test_a_pipe_without_text_is_no_text_the_second_time_either(tmp_path, content, code):
    (tmp_path / "stdin.123.partial.txt").write_text("of a process that was killed")
    with pytest.raises(ValueError, match=code):
        spool_stdin(tmp_path, io.BytesIO(content))

    assert not list(tmp_path.glob("*.txt"))
    assert spool_stdin(tmp_path, io.BytesIO(b"a b\n")).read_bytes() == b"a b\n"


def test_what_was_saved_of_a_pipe_is_checked(tmp_path):
    path = spool_stdin(tmp_path, io.BytesIO(b"a b\nc\n"))
    path.write_bytes(b"a b\nd\n")
    with pytest.raises(ValueError, match=r"EL104.*stdin\.txt"):
        spool_stdin(tmp_path)
    # What an older version saved has no digest.
    (tmp_path / "digests.json").unlink()
    assert spool_stdin(tmp_path) == path


@given(st.text(st.sampled_from("aé배 \U0001f600"), max_size=400), st.integers(4, 40))
def test_long_lines_are_cut_behind_a_space(tmp_path, text, length):
    path = tmp_path / "one.txt"
    path.write_text(f"{text}\nnext line\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacy_elmo.text.file_formats._MAX_LINE", length)
        parts = list(read_text(path, 0))
        for i, (_, offset) in enumerate(parts):
            assert list(read_text(path, offset)) == parts[i + 1 :]
    assert "".join(part for part, _ in parts) == text + "next line"
    assert all(len(part.encode()) <= length for part, _ in parts)
    longest = max(map(len, f"{text} next".encode().split(b" ")))
    if longest < length:  # then no word is cut
        words = [word for part, _ in parts for word in part.split(" ") if word]
        assert words == f"{text}\nnext line".split()


def test_files_that_are_left_out_are_told(lines, caplog):
    (lines / "news.en.shuffled").write_text("text")
    with caplog.at_level(logging.WARNING):
        assert len(find_files(str(lines), ["txt"])) == 2
    assert (
        "1 file, such as" in caplog.text
        and "[WL012]" in caplog.text
        and "news.en.shuffled" in caplog.text
    )


def read_chunks(source, position=None, n=1000, **settings):
    stream = source.read(position or source.start(), **settings)
    return [item for _, item in zip(range(n), stream)]


def test_an_epoch_reads_everything_once_and_the_next_in_another_order(lines, monkeypatch):
    monkeypatch.setattr("spacy_elmo.text.texts._CHUNK_CHARS", 40)
    source = TextSource(str(lines), seed=0)

    once = [text for chunk, _ in read_chunks(source, endless=False) for text in chunk.texts]
    twice = [text for chunk, _ in read_chunks(source, n=200) for text in chunk.texts]

    expected = sorted(t for p in source.files for t in p.read_text("utf-8").splitlines())
    assert sorted(once) == expected
    assert twice[: len(once)] == once
    assert twice[len(once) :] != once[: len(twice) - len(once)]
    # Files are mixed, the larger one read more often.
    first = "".join(text[0] for text in once[:80])
    assert "ab" in first and "ba" in first and first.count("b") > first.count("a")


@pytest.mark.parametrize("n_open", [1, 32])
def test_reading_goes_on_from_any_position(lines, monkeypatch, n_open):
    monkeypatch.setattr("spacy_elmo.text.texts._CHUNK_CHARS", 40)
    monkeypatch.setattr("spacy_elmo.text.texts._N_OPEN", n_open)
    source = TextSource(str(lines), seed=3)
    expected = read_chunks(source, n=150)

    for i in (0, 1, 30, 77, 100, 140):
        position = json.loads(json.dumps(expected[i][1]))
        found = read_chunks(TextSource(str(lines), seed=3), position, n=149 - i)
        assert found == expected[i + 1 :]


def test_empty_files_end_the_reading(tmp_path):
    (tmp_path / "a.txt").touch()
    source = TextSource(str(tmp_path), seed=0)

    assert read_chunks(source) == []


def test_sentences_end_where_words_say_so():
    text = "He said “ Stop ! ” and left . Did he ? ! Yes ... 3.5 % of them ."
    words = text.split(" ")

    assert [" ".join(s) for s in cut_sentences(words)] == [
        "He said “ Stop ! ” and left .", "Did he ? !", "Yes ...", "3.5 % of them .",
    ]  # fmt: skip


def test_a_line_break_in_a_doc_ends_a_sentence_as_the_end_of_a_line_does(tmp_path):
    text = "The Harbour\n\nShips come in at night.  They leave\nNobody sees them"
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}))
    lines, docs = (
        list(read_sequences(str(tmp_path / name), cutter_maker("en", {})))
        for name in ("a.txt", "a.jsonl")
    )
    assert docs == lines == read_all_sequences(str(tmp_path / "a.txt"), cutter_maker("en", {}))
    assert [" ".join(words) for words in docs] == [
        "The Harbour", "Ships come in at night .", "They leave", "Nobody sees them",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        'He opened the door.\n"Come in," she said.\n"Thank you."',
        "Er ging.\n»Komm herein«, sagte sie.",
        'Chapter One\n"Come in."',
    ],
)
def test_a_mark_that_opens_a_line_of_a_doc_belongs_to_it(tmp_path, text):
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}))
    lines, docs = (
        list(read_sequences(str(tmp_path / name), cutter_maker("en", {})))
        for name in ("a.txt", "a.jsonl")
    )
    assert docs == lines

    words = [token.text for token in spacy.blank("en")(text)]
    windows = list(cut_windows(words, 8))
    assert all(window[-1] not in ('"', "»") or window is windows[-1] for window in windows)


@given(st.lists(st.sampled_from(["a", "B", ".", "?", "”", ")", "\n", "。"])))
def test_cutting_loses_nothing(words):
    assert [w for s in cut_sentences(words) for w in s] == words
    windows = list(cut_windows(words, 3))
    assert [w for s in windows for w in s] == words
    assert all(0 < len(s) <= 3 for s in windows)


def test_sequences_are_sentences_lines_or_windows():
    make = partial(make_tokenizer, "en", {})
    texts = ["I like eggs. You do not.", "", "Ham!"]

    cut = lambda **kw: [" ".join(s) for s in Cutter(make, **kw)(texts, 0)]  # noqa: E731

    assert cut() == ["I like eggs .", "You do not .", "Ham !"]
    assert cut(cut="lines") == ["I like eggs . You do not .", "Ham !"]
    assert cut(window_share=1.0) == ["I like eggs . You do not .", "Ham !"]
    assert cut(cut="windows", max_tokens=6) == ["I like eggs .", "You do not .", "Ham !"]
    with pytest.raises(ValueError, match="EL012.*max_tokens"):
        Cutter(make, max_tokens=0)
    with pytest.raises(ValueError, match="EL086"):
        Cutter(make, cut="paragraphs")


def test_a_tokenizer_that_knows_many_words_is_made_anew(monkeypatch):
    monkeypatch.setattr(cutting, "_MOST_WORDS", 1000)
    cutter = Cutter(partial(make_tokenizer, "xx", {}))
    first = cutter.tokenizer
    texts = [[f"word{i} other{i}." for i in range(k, k + 50)] for k in range(0, 1000, 50)]

    found = [cutter(part, 0) for part in texts]

    assert cutter.tokenizer is not first
    assert len(cutter.tokenizer.vocab) < 1500
    fresh = Cutter(partial(make_tokenizer, "xx", {}))
    assert found == [[s for text in part for s in fresh([text], 0)] for part in texts]


def test_a_tokenizer_may_be_any_function():
    vocab = spacy.blank("xx").vocab

    cutter = Cutter(lambda: lambda text: Doc(vocab, words=text.split()))

    assert cutter(["I like eggs.", "Ham !"], 0) == [["I", "like", "eggs."], ["Ham", "!"]]


def make_corpus(path, n_workers=0, sources=None, **cutting):
    found, weights = open_sources(str(path), sources or {}, path / "run", 0)
    make_cutter = cutter_maker("en", {}, **cutting)
    return Corpus(found, weights, make_cutter, n_workers=n_workers)


WORKER = """
import os, sys
from spacy_elmo.text.corpus import Corpus, cutter_maker
from spacy_elmo.text.texts import TextSource

def make():
    print(os.getpid(), flush=True)
    return cutter_maker("xx", {})()

if __name__ == "__main__":
    corpus = Corpus({"x": TextSource(sys.argv[1], 0)}, {"x": 1.0}, make, n_workers=1)
    for _ in corpus.read(corpus.start()):
        pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.timeout(120)
def test_workers_end_with_a_trainer_that_was_killed(lines, tmp_path):
    (tmp_path / "worker.py").write_text(WORKER)
    command = [sys.executable, str(tmp_path / "worker.py"), str(lines)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        worker = int(process.stdout.readline())
        assert os.path.exists(f"/proc/{worker}")
        process.kill()
    while os.path.exists(f"/proc/{worker}") and "(zombie)" not in read_status(worker):
        time.sleep(0.1)


def read_status(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            return file.read()
    except OSError:
        return ""


@pytest.mark.timeout(120)
def test_workers_change_nothing(lines):
    settings = {"window_share": 0.5, "max_tokens": 20}
    here, there = (
        [item for _, item in zip(range(30), corpus.read(corpus.start()))]
        for corpus in (make_corpus(lines, n, **settings) for n in (0, 2))
    )

    assert here == there


def test_sources_share_the_text_by_weight_whatever_their_files(tmp_path):
    (tmp_path / "big.txt").write_text("a a a a a a a .\n" * 20_000)
    (tmp_path / "small").mkdir()
    for i in range(300):
        (tmp_path / "small" / f"{i}.txt").write_text("b b b b b b b .\n" * 20)
    sources = {
        "a": {"path": str(tmp_path / "big.txt"), "weight": 3},
        "b": {"path": str(tmp_path / "small"), "weight": 1},
    }
    corpus = make_corpus(tmp_path, sources=sources)
    stream = corpus.read(corpus.start())
    items = [item for _, item in zip(range(900), stream)]
    words = [word for sequences, _ in items for words in sequences for word in words]

    assert 0.74 < words.count("a") / (words.count("a") + words.count("b")) < 0.76
    # From any position on it is the same.
    again = corpus.read(json.loads(json.dumps(items[499][1])))
    assert [item for _, item in zip(range(400), again)] == items[500:]


def test_sources_that_are_none_are_named(lines):
    with pytest.raises(ValueError, match="EL088"):
        open_sources("-", {}, None, 0)
    for source in ({"path": "x"}, {"path": str(lines), "weight": 0}, 3):
        with pytest.raises(ValueError, match="EL085.*'a'"):
            open_sources("", {"a": source}, lines, 0)


def test_an_empty_source_is_named(lines):
    (lines / "empty.txt").touch()
    sources = {name: {"path": str(lines / f"{name}.txt"), "weight": 1} for name in ("a", "empty")}
    corpus = make_corpus(lines, sources=sources)
    with pytest.raises(ValueError, match="EL094.*'empty'"):
        list(corpus.read(corpus.start()))


def test_a_language_that_needs_more_is_named():
    try:
        spacy.blank("ko")
    except ImportError:
        with pytest.raises(ValueError, match="EL089.*'ko'.*Tokenizer.v1"):
            cutter_maker("ko", {})()


@pytest.mark.parametrize("lang", ["xy", "", "EN", "../en", "en.punctuation", "en\n"])
def test_a_language_that_there_is_not_is_refused(lang):
    with pytest.raises(ValueError, match="(?s)EL161.*only: af, .*en, .*take 'xx'"):
        cutter_maker(lang, {})()


@pytest.mark.parametrize("block", [{"a": 1}, {"@tokenizers": "nope"}, {"@tokenizers": ["x"]}])
def test_a_tokenizer_that_there_is_not_is_refused(block):
    with pytest.raises(ValueError, match="EL089.*'en'"):
        cutter_maker("en", block)()


def test_half_a_character_is_replaced(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": "a \\ud83d b"}')

    assert next(read_jsonl(tmp_path / "x.jsonl", 0))[0] == "a ? b"


def test_the_tokenizer_of_the_config_is_used(tmp_path):
    (tmp_path / "x.txt").write_text("배가 고프다.\n", encoding="utf-8")
    sources, weights = open_sources(str(tmp_path), {}, tmp_path / "run", 0)
    make_cutter = cutter_maker("ko", {"@tokenizers": "spacy.Tokenizer.v1"})

    assert list(Corpus(sources, weights, make_cutter).read_once()) == [[["배가", "고프다", "."]]]


def test_static_vectors_are_read(tmp_path):
    nlp = spacy.blank("en")
    nlp.vocab.set_vector("ham", spacy.vocab.Vocab().vectors.data.__class__((3,), dtype="float32"))
    nlp.vocab.set_vector("eggs", [1.0, 2.0, 3.0])
    nlp.to_disk(tmp_path / "nlp")

    for path in (tmp_path / "nlp", tmp_path / "nlp" / "vocab"):
        words, vectors = read_static_vectors(path)
        assert vectors[words.index("eggs")].tolist() == [1.0, 2.0, 3.0]
    spacy.blank("en").to_disk(tmp_path / "empty")
    for path in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="EL087"):
            read_static_vectors(path)


def test_vectors_of_parts_of_words_have_no_words(tmp_path):
    nlp = spacy.blank("en")
    nlp.vocab.vectors = Vectors(
        strings=nlp.vocab.strings,
        mode="floret",
        data=np.ones((5, 2), dtype="float32"),
        minn=2,
        maxn=3,
        hash_count=1,
    )
    nlp.to_disk(tmp_path / "floret")

    with pytest.raises(ValueError, match="EL087.*floret.*parts of words"):
        read_static_vectors(tmp_path / "floret")


def test_a_folder_with_vectors_that_are_none_is_refused(tmp_path):
    nlp = spacy.blank("en")
    nlp.vocab.set_vector("ham", np.array([1.0, np.nan], dtype="float32"))
    nlp.to_disk(tmp_path / "nan")
    with pytest.raises(ValueError, match="EL087.*infinite, or none"):
        read_static_vectors(tmp_path / "nan")

    nlp.vocab.set_vector("ham", np.array([1.0, 2.0], dtype="float32"))
    nlp.to_disk(tmp_path / "nlp")
    nlp.vocab.vectors.key2row = dict.fromkeys(nlp.vocab.vectors.key2row, -1)
    nlp.to_disk(tmp_path / "below")
    with pytest.raises(ValueError, match="EL087.*below 0"):
        read_static_vectors(tmp_path / "below")

    for name in ("vectors", "key2row", "strings.json"):
        path = tmp_path / "nlp" / "vocab" / name
        content = path.read_bytes()
        for damaged in (b"", content[:-3], b"\xff" + content[1:]):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match="EL087"):
                read_static_vectors(tmp_path / "nlp")
        path.write_bytes(content)


def test_reading_vectors_makes_no_components(tmp_path):
    nlp = spacy.blank("en")
    nlp.vocab.set_vector("ham", np.ones(2, dtype="float32"))
    nlp.to_disk(tmp_path)
    config = (tmp_path / "config.cfg").read_text()
    (tmp_path / "config.cfg").write_text(config.replace("spacy.Tokenizer.v1", "nobody.knows.it"))

    assert read_static_vectors(tmp_path).words == ["ham"]


MEMORY = """
import resource, sys
from spacy_elmo.text.corpus import Corpus, cutter_maker
from spacy_elmo.text.texts import TextSource
from spacy_elmo.pretraining.stream import BatchStream
from spacy_elmo.language_model.vocabulary import SPECIAL_WORDS, Vocabulary, WordCounter
from spacy_elmo.registry import corpus_readers

# Long words, and few different ones at a time: many bytes, little to cut.
LONG = "w" * 200

# Text that is made while it is read, and never ends; each line has a word of its own.
def read(path, offset):
    while True:
        common = " ".join([f"{LONG}{offset % 20_011}"] * 30)
        yield f"{common} own{offset} .", offset + 1
        offset += 1

corpus_readers.register("lazy", func=read)
source = TextSource(sys.argv[1], 0)
corpus = Corpus({"x": source}, {"x": 1.0}, cutter_maker("xx", {}))
vocabulary = Vocabulary([*SPECIAL_WORDS, "."])
stream = BatchStream(
    corpus.read, vocabulary, batch_tokens=50_000, buffer_tokens=500_000, seed=0
)
n_bytes, marks = 0, []
limits = [int(arg) * 1_000_000 for arg in sys.argv[2:]]
for step in stream.steps(stream.start(corpus.start())):
    n_bytes += step.n_targets * 200
    if n_bytes >= limits[len(marks)]:
        with open("/proc/self/statm") as file:
            marks.append(int(file.read().split()[1]) * resource.getpagesize() / 1e6)
        if len(marks) == len(limits):
            break
print(marks[-1] - marks[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.timeout(1500)
def test_memory_does_not_grow_with_the_text(tmp_path):
    (tmp_path / "x.lazy").touch()
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "x.lazy"), "50", "300"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)

    assert float(result.stdout) < 50


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_docbin_that_unpacks_to_very_much_is_refused(tmp_path, monkeypatch, ending):
    monkeypatch.setattr("spacy_elmo.text.docbins.MOST_BYTES", 100_000)
    path = tmp_path / f"x.spacy{ending}"
    for n_bytes, problem in ((300_000_000, "larger than 100,000 bytes unpacked"), (99_000, "")):
        content = zlib.compress(bytes(n_bytes))
        path.write_bytes(gzip.compress(content) if ending else content)
        with pytest.raises(ValueError, match=f"EL083.*x.spacy.*{problem}"):
            list(read_docbin(path, 0))
    monkeypatch.setattr("spacy_elmo.text.docbins.MOST_BYTES", 200_000)
    # Zeros inside that a second compression hides.
    path.write_bytes(gzip.compress(bytes(300_000)) if ending else zlib.compress(bytes(300_000)))
    with pytest.raises(ValueError, match="EL083.*larger than 200,000"):
        list(read_docbin(path, 0))


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_small_docbin_takes_little_memory(tmp_path):
    path = tmp_path / "x.spacy"
    DocBin(docs=[spacy.blank("xx")("green eggs")]).to_disk(path)
    finish_limited(lambda: list(read_docbin(path, 0)))


def change_docbin(**changes):
    """A .spacy file with other things in it, as somebody would write it who knows how."""
    content = DocBin(docs=[spacy.blank("xx")("green eggs")]).to_bytes()
    message = srsly.msgpack_loads(zlib.decompress(content))
    return zlib.compress(srsly.msgpack_dumps({**message, **changes}))


@pytest.mark.parametrize(
    "changes",
    [{"strings": [1]}, {"strings": 7}, {"flags": [None]}, {"flags": [3]}, {"attrs": []}],
    ids=str,
)
def test_a_docbin_of_other_things_is_named(tmp_path, changes):
    path = tmp_path / "x.spacy"
    path.write_bytes(change_docbin(**changes))
    with pytest.raises(ValueError, match="EL083.*x.spacy"):
        list(read_docbin(path, 0))
    if changes == {"attrs": []}:  # a division by zero
        with pytest.raises(ValueError, match="EL066.*x.spacy"):
            read_docs(path)
