"""An index that was damaged, or made by somebody who means no good: our error, never other
results, and nothing outside of its folder."""

from contextlib import suppress

import numpy as np
import pytest
import srsly

from spacy_elmo.files import read_checked_json, write_checked_json
from spacy_elmo.search.index_files import to_npy, write_content
from spacy_elmo.search.search_index import SearchIndex

from ..support.damage import each_mutation, flip, replace_by_others
from ..support.toy_embedder import ToyEmbedder
from .test_search_index import SENTENCES, create

QUERIES = [["ham"], ["the", "river"], ["tea"]]


@pytest.fixture
def folder(tmp_path):
    """An index of each kind of file."""
    index = create(tmp_path / "x", ToyEmbedder(), weighting="sif")
    index.add("a", SENTENCES)
    index.add("b", [["tea"], ["green", "tea"]], origin="0" * 32)
    return tmp_path / "x"


def list_files(folder):
    return sorted([*folder.glob("*-*"), folder / "index.json"])


def search(folder):
    index = SearchIndex.open(folder, ToyEmbedder())
    return [index.search(words, n=99) for words in QUERIES]


def check_mutations(folder, n, seed):
    expected, told = search(folder), []
    for name, kind in each_mutation(folder, folder.parent / "copy", n, seed):
        try:
            assert search(folder.parent / "copy") == expected, f"{kind} in {name}"
        except ValueError as err:
            assert "[EL140]" in str(err) or "[EL043]" in str(err)
            told.append(name)
    assert len({name.split("-")[0] for name in told}) == 5
    return told


def test_mutations_never_change_results(folder):
    assert len(check_mutations(folder, 25, seed=0)) > 150


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_many_mutations_never_change_results(folder, seed):
    assert len(check_mutations(folder, 400, seed)) > 2000


def test_one_flipped_bit_of_any_file_is_told(folder):
    for path in list_files(folder):
        content = path.read_bytes()
        for bit in range(0, len(content) * 8, 31):
            flip(path, bit)
            with pytest.raises(ValueError, match="EL140"):
                search(folder)
            path.write_bytes(content)
    search(folder)


def test_all_but_the_vectors_are_checked_when_it_is_opened(folder):
    for path in sorted(folder.glob("*-*")):
        flip(path, 8 * path.stat().st_size - 3)
        if path.name.startswith("vectors-"):
            index = SearchIndex.open(folder, ToyEmbedder())
            with pytest.raises(ValueError, match=f"EL140.*{path.name}"):
                index.search(["ham"])
        else:
            with pytest.raises(ValueError, match=f"EL140.*{path.name}"):
                SearchIndex.open(folder, ToyEmbedder())
        flip(path, 8 * path.stat().st_size - 3)


def test_other_things_in_the_place_of_files_are_told(folder):
    for path in list_files(folder):
        kept = path.read_bytes()
        for _ in replace_by_others(path):
            with pytest.raises(ValueError, match=r"EL140|EL043"):
                search(folder)
        path.write_bytes(kept)
    search(folder)


def test_what_is_added_to_a_damaged_index_is_refused(folder):
    (words,) = [p for p in folder.glob("words-*") if b"river" in p.read_bytes()]
    flip(words, 5)

    with pytest.raises(ValueError, match="EL140"):
        create(folder, ToyEmbedder(), weighting="sif")


def change(folder, **changes):
    """Write index.json as somebody would who knows how."""
    meta = read_checked_json(folder / "index.json")
    for key, value in changes.items():
        target = meta if key in meta else meta["parts"][0]
        target[key] = value
    write_checked_json(folder / "index.json", meta)


@pytest.mark.parametrize(
    "changes",
    [
        {"words": "../victim"},
        {"vectors": "../../victim"},
        {"transform": "/etc/passwd"},
        {"counts": "0" * 31},
        {"words": 7},
        {"n_sentences": 0},
        {"n_sentences": -1},
        {"n_sentences": 10**30},
        {"n_sentences": 2.0},
        {"n_sentences": True},
        {"n_sentences": 4},
        {"n_sentences": 6},
        {"source": None},
        {"origin": "../x"},
        {"layer": "1"},
        {"layer": -1},
        {"weighting": "best"},
        {"weighting": ["sif"]},
        {"backend": "os.system"},
        {"lang": "en.examples"},
        {"weights": 3},
        {"biLM": None},
        {"n_fitted": None},
        {"parts": {}},
        {"parts": [[]]},
        {"parts": [{"source": "a"}]},
        {"version": 1},
    ],
    ids=str,
)
def test_nothing_that_index_json_says_is_believed(folder, changes):
    victims = [folder.parent / f"victim{ending}" for ending in ("", ".npy", ".jsonl")]
    for victim in victims:
        victim.write_text("mine")
    change(folder, **changes)

    with pytest.raises(ValueError, match="EL140"):
        search(folder)
    with suppress(ValueError):
        create(folder, ToyEmbedder(), weighting="sif").remove("a")
    assert all(victim.read_text() == "mine" for victim in victims)


def test_a_layer_that_the_biLM_lacks_is_told(folder):
    change(folder, layer=2)
    with pytest.raises(ValueError, match="EL017.*layer"):
        search(folder)


@pytest.mark.parametrize("extra", [{}, {"parts": []}, {"version": 2, "parts": [], "x": 1}])
def test_other_json_is_told(tmp_path, extra):
    write_checked_json(tmp_path / "index.json", {"a": 1, **extra})
    with pytest.raises(ValueError, match="EL140"):
        search(tmp_path)
    srsly.write_json(tmp_path / "index.json", {"layer": 1, "parts": []})
    with pytest.raises(ValueError, match="EL140.*earlier version"):
        search(tmp_path)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((5, 3), "float32"),
        np.zeros((4, 4), "float32"),
        np.zeros((5, 4), "float64"),
        np.asfortranarray(np.ones((5, 4), "float32")),
        np.zeros(20, "float32"),
    ],
    ids=lambda a: f"{a.shape}{a.dtype}",
)
def test_vectors_are_what_they_should_be(folder, array):
    if array.flags.c_contiguous:
        parts = to_npy(array)
    else:
        np.save(folder.parent / "x.npy", array)
        parts = [(folder.parent / "x.npy").read_bytes()]
    change(folder, vectors=write_content(folder, "vectors", parts))

    with pytest.raises(ValueError, match="EL140.*vectors-"):
        search(folder)


@pytest.mark.parametrize(
    "kind, content",
    [
        ("vectors", b"\x93NUMPY\x01\x00\xff\xff"),
        ("vectors", b"\x93NUMPY\x03\x00"),
        ("vectors", b"PK\x03\x04"),
        ("words", b'["a"]\n' * 4),
        ("words", b'["a"]\n' * 4 + b"[" * 100_000),
        ("words", b'["a"]\n' * 4 + b'"abc"\n'),
        ("words", b'["a"]\n' * 4 + b"[1]\n"),
        ("words", b'["a"]\n' * 4 + b"\xff\n"),
        ("counts", b"[]"),
        ("counts", b'{"a": 0}'),
        ("counts", b'{"a": "b"}'),
        ("counts", b"{"),
        ("transform", b""),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value[-12:]),
)
def test_files_of_other_content_are_told(folder, kind, content):
    change(folder, **{kind: write_content(folder, kind, [content])})

    with pytest.raises(ValueError, match=f"EL140.*({kind}-|sentence)"):
        search(folder)


def test_a_transform_of_no_numbers_is_told(folder):
    X = np.full((5, 4), np.nan)
    change(folder, transform=write_content(folder, "transform", to_npy(X)))
    with pytest.raises(ValueError, match="EL140.*numbers"):
        search(folder)


@pytest.mark.parametrize(
    "mistake",
    [(b"'shape'", b"(shape'"), (b"}", b" "), (b"(5, 4)", b"(5,(4)"), (b"'<f4'", b"'<f4\0")],
    ids=["quote", "bracket", "tuple", "nul"],
)
def test_headers_that_python_cannot_read_are_told(folder, mistake):
    parts = [bytes(part).replace(*mistake) for part in to_npy(np.zeros((5, 4), "float32"))]
    change(folder, vectors=write_content(folder, "vectors", parts))

    with pytest.raises(ValueError, match=r"EL140.*vectors-\w+\.npy"):
        search(folder)


@pytest.mark.parametrize("shape", [b"(9000000000, 4)", b"(1 << 60, 4)"], ids=str)
def test_huge_shapes_cost_nothing(folder, shape):
    header, data = to_npy(np.zeros((5, 4), "float32"))
    content = header.replace(b"(5, 4)", shape), data
    change(folder, vectors=write_content(folder, "vectors", content))

    with pytest.raises(ValueError, match="EL140.*vectors-"):
        search(folder)
