"""Text that is not in UTF-8 is refused, with its place and what it may be."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_elmo.text.formats import read_docbin, read_jsonl, read_text

ENGLISH = "The café is “green”, and the ham is naïve.\n" * 30
KOREAN = "배가 고프다. 나는 밥을 먹는다.\n" * 30

# Bytes, where they begin to be wrong, and what the message says of them.
REFUSED = {
    "UTF-16 with a mark": (ENGLISH.encode("utf-16"), (0, 1), "UTF-16LE with a mark"),
    "UTF-16-BE with a mark": (b"\xfe\xff" + KOREAN.encode("utf-16-be"), (0, 1), "UTF-16BE with"),
    "UTF-32": (ENGLISH.encode("utf-32"), (0, 1), "UTF-32LE with a mark"),
    "UTF-16-LE": (ENGLISH.encode("utf-16-le"), (1, 1), "UTF-16LE. Convert it.*-f UTF-16LE"),
    "UTF-16-BE": (KOREAN.encode("utf-16-be"), (0, 1), "UTF-16BE"),
    "latin-1": ("Ham !\nThe café .\n".encode("latin-1"), (13, 2), "latin-1 or cp1252.*-f CP1252"),
    "EUC-KR": (KOREAN.encode("euc-kr"), (0, 1), "another script, such as EUC-KR"),
    "cp1251": ("Привет, это текст.\n".encode("cp1251"), (0, 1), "another script"),
    "NUL": (b"I like\nham\0and eggs\n", (10, 2), "text with NUL in it. Remove"),
    "a damaged byte": (
        f"{KOREAN}ham ".encode() + b"\xff" + KOREAN.encode(),
        (len(f"{KOREAN}ham ".encode()), 31),
        "UTF-8 with damaged bytes in it. Drop",
    ),
    "a character cut off": ("Ham “".encode()[:-1], (4, 1), ""),
    "gzip": (gzip.compress(ENGLISH.encode()), (1, 1), r"gzip data. Give its name the ending \.gz"),
    "a PDF": (b"%PDF-1.4\n%\xc7\xec\n", (10, 2), "a PDF. Extract"),
    "a program": (b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 9, (7, 1), "no text at all"),
}


@pytest.mark.parametrize("ending", ["txt", "jsonl", "txt.gz"])
@pytest.mark.parametrize("name", REFUSED)
def test_other_encodings_are_refused_with_place_and_guess(tmp_path, name, ending):
    content, place, guess = REFUSED[name]
    path = tmp_path / f"x.{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    where = rf"byte {place[0]}, in line {place[1]}, is 0x.*"
    if ending == "jsonl":  # as a rule the first line is no JSON
        where, guess = "", ""

    with pytest.raises(ValueError, match=rf"(?s)(EL155|EL103).*x\.{ending}.*{where}{guess}"):
        list((read_jsonl if ending == "jsonl" else read_text)(path, 0))


def test_the_place_does_not_depend_on_where_reading_began(tmp_path):
    path = tmp_path / "x.jsonl"
    lines = [json.dumps({"text": f"line {i}"}).encode() for i in range(900)]
    lines[700] = b'{"text": "caf\xe9"}'
    path.write_bytes(b"\n".join(lines))
    byte = sum(len(line) + 1 for line in lines[:700]) + 13
    (*_, (_, offset)) = [item for _, item in zip(range(500), read_jsonl(path, 0))]

    for start in (0, offset):
        with pytest.raises(ValueError, match=rf"EL155.*byte {byte}, in line 701, is 0xe9.*latin-1"):
            list(read_jsonl(path, start))


@pytest.mark.parametrize("ending", ["txt", "jsonl"])
def test_byte_order_marks_are_removed(tmp_path, ending):
    texts = ["Ham !", "배가 고프다 ."]
    lines = texts if ending == "txt" else [json.dumps({"text": text}) for text in texts]
    path = tmp_path / f"x.{ending}"
    path.write_text("".join(f"\ufeff{line}\n" for line in lines), encoding="utf-8")

    assert [text for text, _ in (read_text if ending == "txt" else read_jsonl)(path, 0)] == texts


@given(st.text(st.characters(exclude_characters="\0\r\n\ufeff", codec="utf-8")))
def test_all_of_utf8_is_read(tmp_path, text):
    (tmp_path / "x.txt").write_bytes(f"{text}\n".encode())
    (tmp_path / "x.jsonl").write_text(json.dumps({"text": text}))

    assert [found for found, _ in read_text(tmp_path / "x.txt", 0)] == [text]
    assert [found for found, _ in read_jsonl(tmp_path / "x.jsonl", 0)] == [text]


@given(st.lists(st.tuples(st.text("aé배\n", min_size=1), st.booleans())), st.booleans())
def test_docs_have_the_text_that_spacy_gives_them(tmp_path, words, are_known):
    vocab = Vocab()
    spaces = [space for _, space in words] if are_known else None
    docs = [Doc(vocab, words=["x"]), Doc(vocab, words=[word for word, _ in words], spaces=spaces)]
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "x.spacy")

    assert [text for text, _ in read_docbin(tmp_path / "x.spacy", 0)] == [doc.text for doc in docs]


def test_nul_in_json_and_docs_is_refused(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": "a"}\n{"text": "a\\u0000b"}')
    with pytest.raises(ValueError, match="EL103.*NUL character in the line at byte 14"):
        list(read_jsonl(tmp_path / "x.jsonl", 0))
    doc = Doc(Vocab(), words=["a\0b"])
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")
    with pytest.raises(ValueError, match="EL103.*doc 0"):
        list(read_docbin(tmp_path / "x.spacy", 0))


@given(st.data())
def test_a_damaged_docbin_is_refused(tmp_path, data):
    path = tmp_path / "x.spacy"
    DocBin(docs=[Doc(Vocab(), words=["ham", "and", "eggs"])]).to_disk(path)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)

    # zlib's sum tells of nearly all, and what is left is still text.
    with pytest.raises(ValueError, match=r"EL103.*x\.spacy"):
        list(read_docbin(path, 0))
