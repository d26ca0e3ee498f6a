"""Two texts in one Doc, and corpora that keep what components are given."""

import random
from functools import partial

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_elmo.tasks.shared.corpora import build_coref_corpus_v1, build_span_corpus_v1, copy_spans
from spacy_elmo.tasks.shared.text_pairs import find_matches, get_pair, make_pair

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
    # Word features read the norms: they are the same in training and prediction.
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


def test_docs_without_a_pair_have_none_and_half_ones_are_errors(nlp):
    doc = nlp("a b c")
    assert get_pair(doc, NAMES) is None

    doc.spans["premise"] = [doc[:2]]
    with pytest.raises(ValueError, match="EL195.*'premise': 1, 'hypothesis': 0"):
        get_pair(doc, NAMES)
    doc.spans["hypothesis"] = [doc[2:], doc[1:]]
    with pytest.raises(ValueError, match="EL195"):
        get_pair(doc, NAMES)


def test_docs_stay_whole(nlp, tmp_path):
    """Where spaCy's reader cuts them into sentences, which have no spans."""
    doc = make_pair(nlp, "Sam eats.", "Ham!", NAMES)
    long = make_pair(nlp, "Sam eats a lot.", "Ham!", NAMES)
    DocBin(docs=[doc, long]).to_disk(tmp_path / "x.spacy")
    options = {"gold_preproc": True, "max_length": len(long)}
    (eg,) = build_span_corpus_v1(tmp_path / "x.spacy", [*NAMES], **options)(nlp)

    for each in (eg.reference, eg.predicted):
        assert [each.spans[name][0].text for name in NAMES] == ["Sam eats.", "Ham!"]


def test_spans_inside_of_tokens_are_an_error(nlp):
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
