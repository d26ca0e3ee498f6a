"""Two texts in one Doc, and corpora that keep what components are given."""

import random
from functools import partial

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Example

from spacy_elmo.tasks.coref.coref_corpus import build_coref_corpus_v1
from spacy_elmo.tasks.shared.span_corpus import build_span_corpus_v1, copy_spans
from spacy_elmo.tasks.shared.text_pairs import get_pair, make_pair
from spacy_elmo.tasks.shared.word_matches import find_matches

NAMES = ("premise", "hypothesis")
TEXTS = [
    ("I like eggs.", "I don't  eat."),
    ("", "Ham!"),
    ("Ham!", ""),
    ("", ""),
    (" U.S.\n", "\tNo. "),
]


@pytest.fixture
def nlp():
    return spacy.blank("en")


def get_words(pair):
    return [[token.text for token in span] for span in pair]


@pytest.mark.parametrize("first, second", TEXTS)
def test_pairs_survive_docbin_and_the_corpus(nlp, tmp_path, first, second):
    doc = make_pair(nlp, first, second, NAMES)
    expected = [[t.text for t in nlp.make_doc(text.strip())] for text in (first, second)]
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")

    assert get_words(get_pair(doc, NAMES)) == expected
    # Word features read them: what is predicted has those of what was learned.
    assert [t.norm_ for t in doc] == [t.norm_ for t in nlp.make_doc(doc.text)]
    assert [span.label_ for span in get_pair(doc, NAMES)] == [*NAMES]
    corpus = build_span_corpus_v1(tmp_path / "x.spacy", [*NAMES], sentences=True)
    examples = list(corpus(nlp))
    # spaCy's reader leaves out docs without tokens.
    assert len(examples) == bool(len(doc))
    for eg in examples:
        assert eg.predicted.text == doc.text
        assert get_words(get_pair(eg.predicted, NAMES)) == expected
        assert [t.i for t in eg.predicted if t.is_sent_start] == sorted(
            {0, len(expected[0])} - {len(doc)}
        )


@pytest.mark.parametrize("first, second", TEXTS)
def test_pairs_can_be_copied(nlp, tmp_path, first, second):
    doc = make_pair(nlp, first, second, NAMES)
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")
    augmenter = spacy.registry.augmenters.get("spacy.lower_case.v1")(1.0)
    corpus = build_span_corpus_v1(tmp_path / "x.spacy", [*NAMES], augmenter=augmenter)
    copies = [doc.copy(), *(doc for eg in corpus(nlp) for doc in (eg.reference, eg.predicted))]
    for copied in copies:
        words = get_words(get_pair(copied, NAMES))
        assert [*map(bool, words)] == [*map(bool, get_words(get_pair(doc, NAMES)))]


def test_spans_without_tokens_of_older_files_are_empty_texts(nlp):
    doc = nlp.make_doc("Ham !")
    doc.spans["premise"] = [doc[:]]
    doc.spans["hypothesis"] = [Span(doc, 2, 2, label="hypothesis")]
    assert get_words(get_pair(doc, NAMES)) == [["Ham", "!"], []]
    example = Example(nlp.make_doc(doc.text), doc)
    for name in NAMES:
        copy_spans(example, name)
    assert get_words(get_pair(example.predicted.copy(), NAMES)) == [["Ham", "!"], []]


def test_attributes_of_groups_survive_an_augmenter(nlp, tmp_path):
    doc = nlp.make_doc("Paris is old .")
    doc.spans["answers"] = SpanGroup(doc, name="answers", spans=[], attrs={"texts": ["Rome"]})
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")
    augmenter = spacy.registry.augmenters.get("spacy.lower_case.v1")(1.0)
    (eg,) = build_span_corpus_v1(tmp_path / "x.spacy", [], augmenter=augmenter)(nlp)
    assert eg.reference.text == "paris is old ."
    assert eg.reference.spans["answers"].attrs == {"texts": ["Rome"]}


QUOTES = {"paired": [{"tags": ["``", "''"], "variants": [["``", "''"], ["“", "”"]]}], "single": []}


@pytest.mark.parametrize(
    "reader",
    [partial(build_span_corpus_v1, groups=["g"], gold_preproc=True), build_coref_corpus_v1],
)
def test_spans_stay_on_their_words_where_a_word_gets_longer(nlp, tmp_path, reader):
    words, tags = ["“", "No", "”", ",", "I", "I", "said"], ["``", "UH", "''", ",", "P", "P", "V"]
    doc = Doc(nlp.vocab, words=words, tags=tags)
    doc.spans["g"] = [Span(doc, 4, 5, label="A", span_id="i"), Span(doc, 5, 7, label="B")]
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")
    make = spacy.registry.augmenters.get("spacy.orth_variants.v1")
    augmenter = make(1.0, 0.0, QUOTES)
    lengths = set()
    for seed in range(20):
        random.seed(seed)
        for eg in reader(tmp_path / "x.spacy", augmenter=augmenter)(nlp):
            lengths.add(len(eg.reference.text))
            spans = eg.reference.spans["g"]
            found = [(s.start, s.end, s.label_, s.id_) for s in spans]
            assert found == [(4, 5, "A", "i"), (5, 7, "B", "")]
    assert len(lengths) > 1


def test_an_augmenter_that_changes_tokens_is_refused(nlp, tmp_path):
    doc = nlp.make_doc("I like ham")
    doc.spans["g"] = [doc[1:2]]
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")

    def augment(nlp, example):
        made = nlp.make_doc("I like green ham")
        yield Example(made.copy(), made)

    corpus = build_span_corpus_v1(tmp_path / "x.spacy", ["g"], augmenter=augment)
    with pytest.raises(ValueError, match="EL320.*4 tokens of the 3 of the doc 'I like ham'"):
        list(corpus(nlp))


def test_the_text_is_both_with_a_space(nlp):
    assert make_pair(nlp, "Eat eggs.", "Ham", NAMES).text == "Eat eggs. Ham"


def test_docs_without_a_pair_have_none_and_half_ones_are_errors(nlp):
    doc = nlp("a b c")
    assert get_pair(doc, NAMES) is None

    doc.spans["premise"] = [doc[:2]]
    with pytest.raises(ValueError, match="EL195.*'premise': 1, 'hypothesis': 0"):
        get_pair(doc, NAMES)
    doc.spans["hypothesis"] = [doc[2:], doc[1:]]
    with pytest.raises(ValueError, match="EL195"):
        get_pair(doc, NAMES)


def test_groups_that_are_not_named_stay_away(nlp, tmp_path):
    doc = make_pair(nlp, "a", "b", NAMES)
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")
    (eg,) = build_span_corpus_v1(tmp_path / "x.spacy", ["hypothesis", "other"])(nlp)

    assert [*eg.predicted.spans] == ["hypothesis"]
    assert not eg.predicted.has_annotation("SENT_START")


@pytest.mark.parametrize("gold_preproc", [False, True])
def test_docs_stay_whole(nlp, tmp_path, gold_preproc):
    """Where spaCy's reader cuts them into sentences, which have no spans."""
    doc = make_pair(nlp, "Sam eats.", "Ham!", NAMES)
    long = make_pair(nlp, "Sam eats a lot.", "Ham!", NAMES)
    DocBin(docs=[doc, long]).to_disk(tmp_path / "x.spacy")
    read = build_span_corpus_v1(
        tmp_path / "x.spacy", list(NAMES), gold_preproc=gold_preproc, max_length=len(long)
    )
    (eg,) = read(nlp)

    for each in (eg.reference, eg.predicted):
        assert [each.spans[name][0].text for name in NAMES] == ["Sam eats.", "Ham!"]


def test_docs_may_have_the_words_of_the_data(nlp, tmp_path):
    doc = Doc(nlp.vocab, words=["green", "eggs"], spaces=[False, False])
    doc.spans["x"] = [Span(doc, 0, 1)]
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")
    (eg,) = build_span_corpus_v1(tmp_path / "x.spacy", ["x"], gold_preproc=True)(nlp)

    assert [span.text for span in eg.predicted.spans["x"]] == ["green"]


def test_spans_inside_of_tokens_are_said(nlp):
    reference = Doc(nlp.vocab, words=["green", "eggs"], spaces=[False, False])
    reference.spans["x"] = [Span(reference, 0, 1)]
    with pytest.raises(ValueError, match="EL196.*'green'"):
        copy_spans(Example(nlp.make_doc("greeneggs"), reference), "x")


def test_words_of_both_texts(nlp):
    words = ["Who", "likes", "Ham", "?", " ", "ham", "is", "liked", "?", " ", "LIKES"]
    doc = Doc(nlp.vocab, words=words)
    places = doc, (0, 4), (5, 9)
    assert find_matches([places]) == [*[False, False, True, False], *[True, False, False, False]]
    # All first texts first; another second one has other words.
    expected = [False, True, False, False], [False, True]
    assert find_matches([places, (doc, (0, 4), (9, 11))]) == [
        *find_matches([places])[:4], *expected[0], *find_matches([places])[4:], *expected[1],
    ]  # fmt: skip
