"""The index on disk: what is added, found, replaced and removed; damage and kills."""

import json
import shutil

import numpy as np
import pytest

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.search import sentence_encoder
from spacy_elmo.search.search_index import SearchIndex, Source, open_index
from spacy_elmo.search.sentence_encoder import BACKENDS, WEIGHTINGS

from ..support.faults import kill_at_each_write
from ..support.helpers import SHAPE
from ..support.toy_embedder import ToyEmbedder

SENTENCES = [
    ["green", "eggs"],
    ["ham"],
    ["I", "like", "ham", "and", "eggs"],
    ["Ham", "ham"],
    ["the", "the", "river"],
]


def create(folder, embedder, **changes):
    settings = {"layer": 1, "weighting": "mean", "backend": "numpy", "lang": "en", **changes}
    return SearchIndex.create(folder, embedder, **settings)


def texts(hits):
    return [hit.words for hit in hits]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_a_sentence_finds_itself(embedder, tmp_path, backend, weighting):
    index = create(tmp_path / "x", embedder, backend=backend, weighting=weighting, layer=0)
    index.add("toy", SENTENCES)

    reopened = SearchIndex.open(tmp_path / "x", embedder)

    for i, words in enumerate(SENTENCES):
        first = reopened.search(words, n=2)[0]
        assert first.words == words and first.number == i + 1 and first.source == "toy"
        assert first.score == pytest.approx(1.0, abs=1e-4)
        assert 0 <= first.nearest < len(words)
        assert reopened.search(words, n=99) == index.search(words, n=99)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_sources_are_added_replaced_and_removed(tmp_path, weighting):
    index = create(tmp_path / "x", ToyEmbedder(), weighting=weighting)
    assert index.add("a", SENTENCES[:2], origin="1") == 2
    assert index.add("b", [[], *SENTENCES[2:]]) == 3
    assert index.has("a", "1") and not index.has("a", "2") and not index.has("c", "1")
    assert index.add("a", [["tea"]], origin="2") == 1

    index = create(tmp_path / "x", ToyEmbedder(), weighting=weighting)
    hits = index.search(["ham"], n=99)
    assert {hit.source for hit in hits} == {"a", "b"} and len(hits) == 4
    assert ["tea"] in texts(hits) and SENTENCES[0] not in texts(hits)
    index.remove("b")
    index.remove("unknown")
    assert texts(SearchIndex.open(tmp_path / "x", ToyEmbedder()).search(["ham"])) == [["tea"]]
    index.remove("a")
    assert SearchIndex.open(tmp_path / "x", ToyEmbedder()).search(["ham"]) == []


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_several_sources_are_as_one_after_the_other(tmp_path, weighting):
    sources = [
        Source("a", [["other"]]),
        Source("a", SENTENCES[:2]),
        Source("b", [[], *SENTENCES], "1" * 32),
        Source("empty", [[]]),
        Source("c", SENTENCES * 3),
    ]
    together, whole = (create(tmp_path / name, ToyEmbedder(), weighting=weighting) for name in "xy")
    encoded = []
    assert together.add_all(sources, on_encoded=encoded.append) == [0, 2, 5, 0, 15]
    assert sum(encoded) == 22
    whole.add_all([sources[1]])
    whole.add_all([sources[2], sources[4]])

    assert [part.source for part in together.meta.parts] == ["a", "b", "c"]
    for words in (["ham"], ["the", "river"]):
        hits, expected = together.search(words, n=99), whole.search(words, n=99)
        assert [hit[1:] for hit in hits] == [hit[1:] for hit in expected]
        scores = [[hit.score for hit in each] for each in (hits, expected)]
        np.testing.assert_allclose(*scores, atol=1e-5)


def test_layers_are_named_one_way(embedder, tmp_path):
    create(tmp_path / "x", embedder, layer=-1).add("a", SENTENCES)

    assert create(tmp_path / "x", embedder, layer=2).meta.layer == 2
    with pytest.raises(ValueError, match="EL012.*layer = 3"):
        create(tmp_path / "y", embedder, layer=3)


def test_what_is_added_later_is_weighed_as_before(embedder, tmp_path):
    index = create(tmp_path / "x", embedder, weighting="sif")
    index.add("a", SENTENCES)
    before = index.search(["ham"], n=1)[0]

    index.add("b", [["the"] * 50])

    assert index.encoder.counts["the"] == 2
    assert index.search(["ham"], n=1)[0] == before


@pytest.mark.parametrize("weighting", ["sif", "whitened"])
def test_a_small_first_source_decides_nothing(tmp_path, weighting):
    embedder = ToyEmbedder()
    many = [[f"w{i}", f"v{i % 7}"] for i in range(60)]
    grown, whole = (
        create(tmp_path / name, embedder, weighting=weighting, layer=0) for name in ("x", "y")
    )
    whole.add_all([Source("a", SENTENCES[:1]), Source("b", many)])

    grown.add("a", SENTENCES[:1])
    assert grown.search(SENTENCES[0], n=1)[0].score == pytest.approx(1.0, abs=1e-4)
    grown.add("b", many)

    assert grown.meta.n_fitted == whole.meta.n_fitted == 61
    for words in (SENTENCES[0], many[3]):
        assert grown.search(words, n=99) == whole.search(words, n=99)
    # More text of the same size changes nothing, and is all that is read.
    n_words = embedder.n_words
    grown.add("c", [["one", "more"]])
    assert embedder.n_words == n_words + 2 and grown.meta.n_fitted == 61


def test_another_process_may_add_meanwhile(embedder, tmp_path):
    one, other = create(tmp_path / "x", embedder), create(tmp_path / "x", embedder)
    reader = None
    for index, name in ((one, "a"), (other, "b"), (one, "c")):
        index.add(name, SENTENCES)
        reader = reader or SearchIndex.open(tmp_path / "x", embedder)

    assert [part.source for part in one.meta.parts] == ["a", "b", "c"]
    # An open index is that of the time when it was opened.
    assert {hit.source for hit in reader.search(["ham"], n=99)} == {"a"}
    different = create(tmp_path / "y", embedder)
    create(tmp_path / "y", embedder, layer=0).add("a", SENTENCES)
    with pytest.raises(ValueError, match="EL065.*layer"):
        different.add("b", [["tea"]])


def test_a_kill_at_any_moment_leaves_the_old_index_or_the_new(tmp_path):
    embedder = ToyEmbedder()
    create(tmp_path / "kept", embedder, weighting="sif").add("a", SENTENCES)
    counts = set()

    def work():
        create(tmp_path / "x", embedder, weighting="sif").add("b", [["tea"]])

    shutil.copytree(tmp_path / "kept", tmp_path / "x")
    for _ in kill_at_each_write(work, every=2):
        hits = SearchIndex.open(tmp_path / "x", embedder).search(["ham"], n=99)
        counts.add(len(hits))
        work()
        assert len(SearchIndex.open(tmp_path / "x", embedder).search(["ham"], n=99)) == 6
        shutil.rmtree(tmp_path / "x")
        shutil.rmtree(tmp_path / "x.previous", ignore_errors=True)
        shutil.copytree(tmp_path / "kept", tmp_path / "x")
    assert counts <= {5, 6} and 5 in counts


def test_other_files_are_left_alone(embedder, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    for folder in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(ValueError, match=r"EL141.*thesis\.tex"):
            create(folder, embedder)
    index = create(tmp_path / "x", embedder)
    index.add("a", SENTENCES)
    (tmp_path / "x" / "mine.npy").write_text("mine")
    with pytest.raises(ValueError, match=r"EL141.*mine\.npy"):
        index.add("b", [["tea"]])
    assert len(SearchIndex.open(tmp_path / "x", embedder).search(["ham"], n=99)) == 5


def test_an_index_of_an_older_format_is_to_be_made_anew(embedder, tmp_path):
    (tmp_path / "words-0123.jsonl").write_text('["ham"]\n')
    (tmp_path / "index.json").write_text('{"digest": "0", "version": 3, "layer": 1}')
    for function in (create, SearchIndex.open):
        with pytest.raises(ValueError, match="EL140.*another version.*make it again"):
            function(tmp_path, embedder)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 3}, {"layer": 7}, {"layer": "1"}, {"weighting": "best"}, {"backend": "x"},
        {"lang": "../en"}, {"tokenizer": {"@misc": "spacy-elmo.CheckpointLoader.v1"}},
        {"parts": [{"source": "a", "origin": None, "n_sentences": 99}]}, {"parts": [{}]},
        {"parts": [{"source": "a", "origin": None, "n_sentences": -1}]}, {"other": 1},
        {"weights": None},
    ],
    ids=str,
)  # fmt: skip
def test_an_index_with_other_content_is_refused(tmp_path, changes):
    create(tmp_path / "x", ToyEmbedder(), weighting="sif").add("a", SENTENCES)
    meta = json.loads((tmp_path / "x/index.json").read_text())
    (tmp_path / "x/index.json").write_text(json.dumps({**meta, **changes}))
    with pytest.raises(ValueError, match="EL140|EL012"):
        SearchIndex.open(tmp_path / "x", ToyEmbedder())


@pytest.mark.parametrize(
    "name, content",
    [
        ("index.json", b"{"), ("vectors.bin", b"x"), ("offsets.bin", b"\0" * 47 + b"\1"),
        ("sentences.jsonl", b"[]"), ("transform.bin", b"x"), ("counts.json", b'{"a": 0}'),
        ("transform.bin", np.full((9, 8), np.nan).tobytes()), ("offsets.bin", b"\xff" * 48),
    ],
)  # fmt: skip
def test_a_damaged_index_is_refused(tmp_path, name, content):
    create(tmp_path / "x", ToyEmbedder(), weighting="sif").add("a", SENTENCES)
    (tmp_path / "x" / name).write_bytes(content)
    with pytest.raises(ValueError, match="EL140"):
        SearchIndex.open(tmp_path / "x", ToyEmbedder())
    (tmp_path / "x" / name).unlink()
    if name not in ("transform.bin", "counts.json"):
        with pytest.raises(ValueError, match="EL140|EL043"):
            SearchIndex.open(tmp_path / "x", ToyEmbedder())


def test_sentences_that_are_not_words_are_refused(tmp_path):
    create(tmp_path / "x", ToyEmbedder()).add("a", SENTENCES)
    path = tmp_path / "x/sentences.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"ham"]\n', b"12345]\n"))
    with pytest.raises(ValueError, match="EL140.*line"):
        SearchIndex.open(tmp_path / "x", ToyEmbedder()).search(["ham"])


def test_mistakes_are_told(embedder, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="EL043"):
        SearchIndex.open(tmp_path, embedder)
    for changes in ({"weighting": "best"}, {"backend": "x"}, {"lang": "../en"}):
        with pytest.raises(ValueError, match=f"EL012.*{next(iter(changes))}"):
            create(tmp_path / "x", embedder, **changes)
    index = create(tmp_path / "x", embedder, weights=str(tmp_path / "gone"))
    with pytest.raises(ValueError, match="EL094"):
        index.add("a", [[]])
    for sentences in ([["ham"], "green eggs"], "green eggs"):
        with pytest.raises(ValueError, match="EL013"):
            index.add("a", sentences)
        with pytest.raises(ValueError, match="EL013"):
            index.add_all([Source("a", sentences)])
    assert not index.meta.parts
    index.add("a", SENTENCES)
    with pytest.raises(ValueError, match="query has no words"):
        index.search([])
    with pytest.raises(ValueError, match="EL012.*n = 0"):
        index.search(["ham"], 0)
    with pytest.raises(ValueError, match="EL065.*layer = 1, not 0"):
        create(tmp_path / "x", embedder, layer=0)
    with pytest.raises(ValueError, match="EL065.*biLM"):
        SearchIndex.open(tmp_path / "x", Embedder(BiLM(BiLMConfig(**SHAPE))))
    with pytest.raises(ValueError, match="weights in '.*gone'.*--weights"):
        open_index(tmp_path / "x")
    create(tmp_path / "z", embedder, backend="faiss").add("a", SENTENCES)
    monkeypatch.setattr(sentence_encoder, "faiss", None)
    with pytest.raises(ValueError, match="EL038.*faiss-cpu"):
        create(tmp_path / "y", embedder, backend="faiss")
    with pytest.raises(ValueError, match="EL038"):
        SearchIndex.open(tmp_path / "z", embedder).search(["ham"])
