"""Files -> sequences: formats, order, positions, workers, memory."""

import gzip
import io
import json
import logging
import lzma

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin
from spacy.vectors import Vectors

from spacy_elmo.text import text_files as files
from spacy_elmo.text.corpus import Corpus, TextSource, cutter_maker, open_sources, spool_stdin
from spacy_elmo.text.formats import read_docbin, read_jsonl, read_text
from spacy_elmo.text.languages import read_static_vectors
from spacy_elmo.text.text_files import find_files, open_binary

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
def test_damaged_files_are_refused(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    write(path, ["abc def ghi " * 100] * 50)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 + 3])
    reader = READERS[ending.split(".")[0]]
    if ending == "txt":  # half a text is a text
        assert list(reader(path, 0))
        return
    with pytest.raises(ValueError, match=r"EL103.*x\."):
        list(reader(path, 0))


@pytest.mark.parametrize("line", ["{}", "3", '{"text": 3}', "text"])
def test_lines_without_a_text_are_refused(tmp_path, line):
    (tmp_path / "x.jsonl").write_text('{"text": "a"}\n\n' + line)
    with pytest.raises(ValueError, match="EL103.*byte 15"):
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


def test_zstd_needs_its_extra(tmp_path, monkeypatch):
    write(tmp_path / "x.txt.zst", TEXTS)
    monkeypatch.setattr(files, "zstd", None)
    with pytest.raises(ValueError, match=r"EL038.*spacy-elmo\[zstd\]"):
        open_binary(tmp_path / "x.txt.zst")


def test_the_standard_input_is_saved_and_read_once(tmp_path, caplog):
    first = spool_stdin(tmp_path, io.BytesIO(b"a b\nc\n"))
    with caplog.at_level(logging.WARNING):
        again = spool_stdin(tmp_path, io.BytesIO(b"other text"))
    assert "[WL011]" in caplog.text and "stdin.txt" in caplog.text

    assert first == again
    assert [text for text, _ in read_text(first, 0)] == ["a b", "c"]


def test_lines_that_end_with_returns_are_refused(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"The Harbour\rShips come in\r")
    with pytest.raises(ValueError, match=r"EL103.*x\.txt.*\\r alone"):
        list(read_text(path, 0))
    # A line alone may end with anything, and any line may have one in it.
    for content in (b"The Harbour\r", b"a \r b\nc"):
        path.write_bytes(content)
        assert list(read_text(path, 0))


@pytest.mark.parametrize(
    "content, code", [(b"", "EL094"), (b"\n \n", "EL094"), (b"caf\xe9\n", r"EL155.*stdin\.txt")]
)
def test_a_standard_input_without_text_is_refused(tmp_path, content, code):
    with pytest.raises(ValueError, match=code):
        spool_stdin(tmp_path, io.BytesIO(content))

    assert not list(tmp_path.glob("*.txt"))
    assert spool_stdin(tmp_path, io.BytesIO(b"a b\n")).read_bytes() == b"a b\n"


@given(st.text(st.sampled_from("aé배 \U0001f600"), max_size=400), st.integers(4, 40))
def test_long_lines_are_cut_behind_a_space(tmp_path, text, length):
    path = tmp_path / "one.txt"
    path.write_text(f"{text}\nnext line\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacy_elmo.text.formats._MAX_LINE", length)
        parts = list(read_text(path, 0))
        for i, (_, offset) in enumerate(parts):
            assert list(read_text(path, offset)) == parts[i + 1 :]
    assert "".join(part for part, _ in parts) == text + "next line"
    assert all(len(part.encode()) <= length for part, _ in parts)
    longest = max(map(len, f"{text} next".encode().split(b" ")))
    if longest < length:  # then no word is cut
        words = [word for part, _ in parts for word in part.split(" ") if word]
        assert words == f"{text}\nnext line".split()


def test_left_out_files_are_a_warning(lines, caplog):
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
    monkeypatch.setattr("spacy_elmo.text.corpus._CHUNK_CHARS", 40)
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
def test_reading_resumes_at_any_position(lines, monkeypatch, n_open):
    monkeypatch.setattr("spacy_elmo.text.corpus._CHUNK_CHARS", 40)
    monkeypatch.setattr("spacy_elmo.text.corpus._N_OPEN", n_open)
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


def make_corpus(path, n_workers=0, sources=None, **cutting):
    found, weights = open_sources(str(path), sources or {}, path / "run", 0)
    make_cutter = cutter_maker("en", {}, **cutting)
    return Corpus(found, weights, make_cutter, n_workers=n_workers)


def test_sources_share_the_text_by_weight_whatever_their_files(tmp_path):
    (tmp_path / "big.txt").write_text("a a a a a a a .\n" * 5_000)
    (tmp_path / "small").mkdir()
    for i in range(60):
        (tmp_path / "small" / f"{i}.txt").write_text("b b b b b b b .\n" * 30)
    sources = {
        "a": {"path": str(tmp_path / "big.txt"), "weight": 3},
        "b": {"path": str(tmp_path / "small"), "weight": 1},
    }
    corpus = make_corpus(tmp_path, sources=sources)
    stream = corpus.read(corpus.start())
    items = [item for _, item in zip(range(240), stream)]
    words = [word for sequences, _ in items for words in sequences for word in words]

    assert 0.73 < words.count("a") / (words.count("a") + words.count("b")) < 0.77
    # From any position on it is the same.
    again = corpus.read(json.loads(json.dumps(items[119][1])))
    assert [item for _, item in zip(range(120), again)] == items[120:]


def test_invalid_sources_are_refused(lines):
    with pytest.raises(ValueError, match="standard input"):
        open_sources("-", {}, None, 0)
    for source in ({"path": "x"}, {"path": str(lines), "weight": 0}, 3):
        with pytest.raises(ValueError, match="'a' in .corpus.sources."):
            open_sources("", {"a": source}, lines, 0)


def test_an_empty_source_is_refused(lines):
    (lines / "empty.txt").touch()
    sources = {name: {"path": str(lines / f"{name}.txt"), "weight": 1} for name in ("a", "empty")}
    corpus = make_corpus(lines, sources=sources)
    with pytest.raises(ValueError, match="EL094.*'empty'"):
        list(corpus.read(corpus.start()))


@pytest.mark.parametrize("lang", ["xy", "", "EN", "../en", "en.punctuation", "en\n"])
def test_an_unknown_language_is_refused(lang):
    with pytest.raises(ValueError, match="(?s)EL161.*only: af, .*en, .*take 'xx'"):
        cutter_maker(lang, {})()


@pytest.mark.parametrize("block", [{"a": 1}, {"@tokenizers": "nope"}, {"@tokenizers": ["x"]}])
def test_an_unknown_tokenizer_is_refused(block):
    with pytest.raises(ValueError, match="EL089.*'en'"):
        cutter_maker("en", block)()


def test_the_tokenizer_of_the_config_is_used(tmp_path):
    (tmp_path / "x.txt").write_text("배가 고프다.\n", encoding="utf-8")
    sources, weights = open_sources(str(tmp_path), {}, tmp_path / "run", 0)
    make_cutter = cutter_maker("ko", {"@tokenizers": "spacy.Tokenizer.v1"})

    assert list(Corpus(sources, weights, make_cutter).read_once()) == [[["배가", "고프다", "."]]]


def save_vectors(path, vectors, **settings):
    nlp = spacy.blank("en")
    if settings:
        nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=vectors, **settings)
    else:
        for word, vector in zip(("ham", "eggs"), vectors):
            nlp.vocab.set_vector(word, vector)
    nlp.to_disk(path)
    return path


def test_static_vectors_are_read_or_refused(tmp_path):
    numbers = np.array([[0.0, 1.0], [2.0, 3.0]], dtype="float32")
    folder = save_vectors(tmp_path / "nlp", numbers)
    for path in (folder, folder / "vocab"):
        words, vectors = read_static_vectors(path)
        assert sorted(zip(vectors.tolist(), words)) == [([0.0, 1.0], "ham"), ([2.0, 3.0], "eggs")]
    floret = {"mode": "floret", "minn": 2, "maxn": 3, "hash_count": 1}
    for path, problem in (
        (save_vectors(tmp_path / "empty", []), ""),
        (save_vectors(tmp_path / "nan", numbers * np.nan), "NaN or infinite"),
        (save_vectors(tmp_path / "floret", numbers, **floret), "floret"),
        (tmp_path / "nowhere", ""),
    ):
        with pytest.raises(ValueError, match=f"EL087.*{problem}"):
            read_static_vectors(path)
    (folder / "vocab" / "key2row").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="EL087"):
        read_static_vectors(folder)
