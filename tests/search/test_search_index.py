"""The index on disk: what is added, found, replaced and removed."""

import resource

import pytest

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.search import backends
from spacy_elmo.search.index_meta import read_meta
from spacy_elmo.search.index_versions import Source
from spacy_elmo.search.search_index import SearchIndex
from spacy_elmo.search.sentence_encoder import WEIGHTINGS

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


@pytest.mark.parametrize("backend", backends.BACKENDS)
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
def test_several_sources_are_as_one_after_the_other(tmp_path, weighting):
    sources = [
        Source("a", SENTENCES[:2]),
        Source("b", SENTENCES, "1" * 32),
        Source("a", [["ham"], [], ["tea"]]),
        Source("c", SENTENCES, "2" * 32),
        Source("b", SENTENCES, "3" * 32),
    ]
    together, one_by_one = (create(tmp_path / x, ToyEmbedder(), weighting=weighting) for x in "xy")
    counts = [one_by_one.add(*source[:2], origin=source.origin) for source in sources]

    assert together.add_all(sources) == counts == [2, 5, 2, 5, 0]
    for index in (together, SearchIndex.open(tmp_path / "x", ToyEmbedder())):
        assert index.meta == one_by_one.meta
        assert index.search(["ham"], n=99) == one_by_one.search(["ham"], n=99)
    before = sorted(path.name for path in (tmp_path / "x").iterdir())
    with pytest.raises(ValueError, match="EL094.* in e:"):
        together.add_all([Source("d", [["eggs"]]), Source("e", [[]])])
    assert together.meta == one_by_one.meta
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == before
    assert together.add_all([]) == []


def test_both_backends_rank_alike(embedder, tmp_path):
    one, other = (create(tmp_path / name, embedder, backend=name) for name in backends.BACKENDS)
    for index in (one, other):
        index.add("a", SENTENCES[:2])
        index.add("b", SENTENCES[2:])

    assert texts(one.search(["ham", "eggs"])) == texts(other.search(["ham", "eggs"]))


@pytest.mark.parametrize("backend", backends.BACKENDS)
def test_sources_are_added_passed_over_and_replaced(embedder, tmp_path, backend):
    index = create(tmp_path / "x", embedder, backend=backend)

    assert index.add("a", SENTENCES[:2]) == 2
    assert index.add("b", [[], *SENTENCES[2:]]) == 3
    assert index.add("a", SENTENCES[:2]) == 0
    assert len(index.search(["ham"], n=99)) == 5
    assert index.add("a", [["tea"]]) == 1

    index = create(tmp_path / "x", embedder, backend=backend)
    assert {hit.source for hit in index.search(["ham"], n=99)} == {"a", "b"}
    assert ["tea"] in texts(index.search(["ham"], n=99))
    assert SENTENCES[0] not in texts(index.search(["ham"], n=99))
    # Files of what was replaced are gone.
    assert len(list((tmp_path / "x").glob("*.npy"))) == 2


@pytest.mark.parametrize("backend", backends.BACKENDS)
def test_files_of_others_stay_and_sources_can_go(embedder, tmp_path, backend):
    index = create(tmp_path, embedder, backend=backend)
    index.add("a", SENTENCES)
    mine = ["corpus.jsonl", "mine.npy", "words-mine.jsonl", "vectors-0.npy"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    index.add("b", [["tea"]])

    index.remove("a")
    index.remove("unknown")

    assert texts(SearchIndex.open(tmp_path, embedder).search(["ham"])) == [["tea"]]
    index.remove("b")
    assert SearchIndex.open(tmp_path, embedder).search(["ham"]) == []
    assert all((tmp_path / name).read_text() == "mine" for name in mine)
    assert {path.name for path in tmp_path.iterdir()} == {*mine, "index.json", ".lock"}


def test_layers_are_named_one_way(embedder, tmp_path):
    create(tmp_path / "x", embedder, layer=-1).add("a", SENTENCES)

    assert create(tmp_path / "x", embedder, layer=2).meta.layer == 2
    with pytest.raises(ValueError, match="EL017.*layer = 3"):
        create(tmp_path / "y", embedder, layer=3)


def test_what_is_added_later_is_weighed_as_before(embedder, tmp_path):
    index = create(tmp_path / "x", embedder, weighting="sif")
    index.add("a", SENTENCES)
    before = index.search(["ham"], n=1)[0]

    index.add("b", [["the"] * 50])

    assert index.encoder.counts["the"] == 2
    assert index.search(["ham"], n=1)[0] == before


@pytest.mark.parametrize("backend", backends.BACKENDS)
def test_a_broken_run_leaves_the_index_as_it_was(embedder, tmp_path, monkeypatch, backend):
    index = create(tmp_path / "x", embedder, backend=backend)
    index.add("a", SENTENCES)
    expected = index.search(["ham"], n=99)

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr("spacy_elmo.search.index_meta.write_checked_json", fail)
    with pytest.raises(OSError, match="disk full"):
        index.add("b", [["tea"]])

    assert SearchIndex.open(tmp_path / "x", embedder).search(["ham"], n=99) == expected
    assert index.search(["ham"], n=99) == expected
    assert len(list((tmp_path / "x").glob("*-*"))) == 2


def test_equal_content_of_another_source_is_stored_once_and_left_alone(embedder, tmp_path):
    index = create(tmp_path / "x", embedder)
    index.add("a", SENTENCES)
    before = {path: path.stat() for path in (tmp_path / "x").glob("*-*")}

    assert index.add("b", SENTENCES) == 5

    after = {path: path.stat() for path in (tmp_path / "x").glob("*-*")}
    assert {p: (s.st_ino, s.st_mtime_ns) for p, s in before.items()} == {
        p: (s.st_ino, s.st_mtime_ns) for p, s in after.items()
    }
    assert len(index.search(["ham"], n=99)) == 10
    index.remove("a")
    assert {hit.source for hit in SearchIndex.open(tmp_path / "x", embedder).search(["ham"])} == {
        "b"
    }


@pytest.mark.parametrize("weighting", ["sif", "whitened"])
def test_a_small_first_source_decides_nothing(tmp_path, weighting):
    embedder = ToyEmbedder()
    many = [[f"w{i}", f"v{i % 7}"] for i in range(60)]
    grown, whole = (
        create(tmp_path / name, embedder, weighting=weighting, layer=0) for name in ("x", "y")
    )
    whole.prepare([SENTENCES[0], *many])
    whole.add("a", SENTENCES[:1])
    whole.add("b", many)

    grown.add("a", SENTENCES[:1])
    assert grown.search(SENTENCES[0], n=1)[0].score == pytest.approx(1.0, abs=1e-4)
    grown.add("b", many)

    assert grown.meta.n_fitted == whole.meta.n_fitted == 61
    for index in (grown, SearchIndex.open(tmp_path / "x", embedder)):
        for words in (SENTENCES[0], many[3]):
            assert index.search(words, n=99) == whole.search(words, n=99)
    # Much text is fitted to once.
    n_words = embedder.n_words
    grown.add("c", [["one", "more"]])
    assert embedder.n_words == n_words + 2 and grown.meta.n_fitted == 61


def test_a_file_that_has_not_changed_need_not_be_read(embedder, tmp_path):
    index = create(tmp_path / "x", embedder)
    index.add("a", SENTENCES, origin="0" * 32)

    index = SearchIndex.open(tmp_path / "x", embedder)
    assert index.has("a", "0" * 32)
    assert not index.has("a", "1" * 32) and not index.has("b", "0" * 32)
    # Other bytes, the same sentences.
    assert index.add("a", SENTENCES, origin="1" * 32) == 0
    assert SearchIndex.open(tmp_path / "x", embedder).has("a", "1" * 32)


def test_there_may_be_more_sources_than_open_files(tmp_path):
    embedder = ToyEmbedder()
    index = create(tmp_path / "x", embedder)
    for i in range(150):
        index.add(f"s{i}", [[f"w{i}"]])
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, before[1]))
    try:
        hits = SearchIndex.open(tmp_path / "x", embedder).search(["w7"], n=999)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert len(hits) == 150 and hits[0].source == "s7"


def test_a_folder_of_other_things_is_left_alone(embedder, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"EL141.*thesis\.tex"):
        create(tmp_path, embedder)
    with pytest.raises(ValueError, match=r"EL141.*thesis\.tex"):
        create(tmp_path / "thesis.tex", embedder)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".gitkeep").touch()
    assert create(tmp_path / "empty", embedder).add("a", SENTENCES) == 5


@pytest.mark.parametrize("changes", [{"layer": 0}, {"weighting": "sif"}, {"lang": "de"}])
def test_another_writer_s_settings_hold(embedder, tmp_path, changes):
    one, other = create(tmp_path, embedder), create(tmp_path, embedder, **changes)
    one.add("a", SENTENCES)

    with pytest.raises(ValueError, match=f"EL044.*{next(iter(changes))}"):
        other.add("b", [["tea"]])
    assert len(SearchIndex.open(tmp_path, embedder).search(["ham"], n=99)) == 5


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_a_string_is_not_added_letter_by_letter(tmp_path, weighting):
    # In the narrow one, few sentences are enough to fit to.
    embedder = ToyEmbedder()
    index = create(tmp_path, embedder, weighting=weighting, layer=0)
    with pytest.raises(ValueError, match="EL013.*Sentence 1 .*green eggs"):
        index.add("a", [["ham"], "green eggs"])
    with pytest.raises(ValueError, match="EL013"):
        index.add("a", "green eggs")
    if weighting != "mean":
        with pytest.raises(ValueError, match="EL013.*Sentence 100 "):
            index.prepare([*SENTENCES * 20, "green eggs"])
    assert not index.meta.parts and index.meta.n_fitted == 0
    with pytest.raises(ValueError, match="EL012.*n = 0"):
        index.search(["ham"], 0)


def test_what_cannot_be_searched_is_said(embedder, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="EL043"):
        read_meta(tmp_path)
    with pytest.raises(ValueError, match="EL017.*weighting"):
        create(tmp_path / "x", embedder, weighting="best")
    index = create(tmp_path / "x", embedder)
    with pytest.raises(ValueError, match="EL094"):
        index.add("a", [[]])
    index.add("a", SENTENCES)
    with pytest.raises(ValueError, match="EL046"):
        index.search([])
    with pytest.raises(ValueError, match="EL044.*layer = 1, not 0"):
        create(tmp_path / "x", embedder, layer=0)
    with pytest.raises(ValueError, match="EL044.*biLM"):
        SearchIndex.open(tmp_path / "x", Embedder(BiLM(BiLMConfig(**SHAPE))))
    with pytest.raises(ValueError, match="EL017.*lang"):
        create(tmp_path / "y", embedder, lang="../en")
    create(tmp_path / "z", embedder, backend="faiss").add("a", SENTENCES)
    monkeypatch.setattr(backends, "faiss", None)
    with pytest.raises(ValueError, match="EL045"):
        create(tmp_path / "y", embedder, backend="faiss")
    with pytest.raises(ValueError, match="EL045"):
        SearchIndex.open(tmp_path / "z", embedder).search(["ham"])
