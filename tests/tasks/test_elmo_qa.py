"""The component "elmo_qa"."""

import random

import pytest
import spacy
from spacy.tokens import Span

from spacy_elmo.tasks.qa.answers import set_gold
from spacy_elmo.tasks.qa.network import choose_windows, read_doc

from ..support.toy_tasks import HASHED, MODELS, QA, make_examples, make_gold, make_task

# Odd whitespace: all characters of the context count.
CONTEXTS = [
    "eggs like Sam ham",
    "  \n eggs  like\tSam \n\n ham  ",
    "\u00a0eggs like Sam\u2003ham\u00a0",
    "Sam",
    " Sam",
]


@pytest.fixture(scope="module")
def nlp():
    return make_task("elmo_qa", n_updates=70)


@pytest.fixture
def pipe(nlp):
    return nlp.get_pipe("elmo_qa")


@pytest.mark.parametrize("context", CONTEXTS)
def test_answers_have_characters_of_the_context(nlp, pipe, context):
    answers = pipe.top_answers(nlp, " Sam ", context)

    assert 1 <= len(answers) <= 5
    for answer in answers:
        assert context[answer.start : answer.end] == answer.text == answer.span.text
        assert answer.text == answer.text.strip() != ""
    ranked = [answer.probability for answer in answers]
    assert ranked == sorted(ranked, reverse=True)
    assert sum(ranked) + answers[0].no_answer <= 1 + 1e-5


def find_learned(nlp, has_answer):
    """The doc of the training data with one answer, or none, that the component is most certain of
    (how well a toy learns each one depends on the processor): question, context and gold."""
    pipe = nlp.get_pipe("elmo_qa")
    found = [
        (gold.spans["question"][0].text, gold.spans["context"][0].text, gold)
        for gold in make_gold(nlp, "elmo_qa")
        if len(gold.spans["answers"]) == has_answer
    ]
    field = "probability" if has_answer else "no_answer"
    return max(found, key=lambda pair: getattr(pipe.answer(nlp, *pair[:2]), field))


def test_what_was_learned_is_answered(nlp, pipe):
    question, context, gold = find_learned(nlp, True)
    answer = pipe.answer(nlp, question, context)
    assert answer.text == gold.spans["answers"][0].text == context[answer.start : answer.end]
    assert answer.probability > 0.5 > answer.no_answer
    assert isinstance(answer.span, Span) and answer.span.label_ == "answer"

    other_question, other_context, _ = find_learned(nlp, False)
    none = pipe.answer(nlp, other_question, other_context)
    assert none.span is None and (none.text, none.start, none.end) == ("", 0, 0)
    assert none.probability == none.no_answer > 0.5
    pairs = [(question, context), (other_question, other_context)]
    for one, other in zip(pipe.answers(nlp, pairs, batch_size=1), [answer, none]):
        assert one[1:4] == other[1:4] and one[4:] == pytest.approx(other[4:], abs=1e-5)


def make_example(nlp, context, answer, question="Sam"):
    gold = nlp.get_pipe("elmo_qa").make_pair(nlp, question, context)
    start = gold.text.index(answer, gold.spans["context"][0].start_char)
    set_gold(gold, [gold.char_span(start, start + len(answer))])
    (example,) = make_examples(nlp, [gold])
    return example


def test_answers_that_are_too_long_are_not_learned():
    nlp = make_task("elmo_qa")
    pipe = nlp.get_pipe("elmo_qa")
    pipe.max_answer = 2
    long = make_example(nlp, "eggs ham Sam green", "ham Sam green")
    assert nlp.update([long])["elmo_qa"] == 0
    short = make_example(nlp, "eggs ham Sam green", "Sam green")
    none = make_examples(nlp, [no_answer(nlp)])
    with pytest.warns(UserWarning, match="WL042.*`max_answer = 2`: 1 of 2"):
        pipe.initialize(lambda: [long, short, *none])


def no_answer(nlp):
    doc = nlp.get_pipe("elmo_qa").make_pair(nlp, "Sam", "eggs")
    set_gold(doc, [])
    return doc


def test_gold_outside_of_the_context_is_an_error(nlp):
    example = make_example(nlp, "eggs ham", "ham")
    doc = example.reference
    doc.spans["answers"] = [doc[0:1]]
    with pytest.raises(ValueError, match="EL196.*'Sam'.*outside of the context"):
        nlp.update([example])


def add(nlp, **settings):
    return nlp.add_pipe("elmo_qa", config={"model": {**QA, "tok2vec": HASHED}, **settings})


def test_training_data_that_cannot_be_learned_is_reported():
    nlp = spacy.blank("en")
    pipe = add(nlp, max_answer=2)
    docs = [nlp.make_doc("a"), pipe.make_pair(nlp, "a", "b"), no_answer(nlp)]
    with pytest.raises(ValueError, match="EL194.*docs: 3, .*context: 2.*convert-data squad"):
        pipe.initialize(lambda: make_examples(nlp, docs))
    long = make_example(nlp, "eggs ham Sam green", "ham Sam green")
    with pytest.raises(ValueError, match="EL194.*'elmo_qa'.*`max_answer = 2`.*questions: 1"):
        pipe.initialize(lambda: [long])
    with pytest.warns(UserWarning, match="WL040.*--negatives"):
        pipe.initialize(lambda: [make_example(nlp, "eggs ham", "ham")])


def test_a_pipeline_without_the_component_is_an_error(nlp, pipe):
    with pytest.raises(ValueError, match="EL227.*'elmo_qa'.* no components"):
        pipe.answer(spacy.blank("en"), "a", "b")
    with nlp.select_pipes(disable="elmo_qa"), pytest.raises(ValueError, match="EL227.*runs elmo"):
        pipe.top_answers(nlp, "a", "b")


def test_an_answer_of_another_component_is_an_error():
    nlp = make_task("elmo_qa", n_updates=1)
    pipe = nlp.get_pipe("elmo_qa")
    second = nlp.add_pipe("elmo_qa", name="second", config={"model": MODELS["elmo_qa"]})
    second.from_bytes(pipe.to_bytes())

    assert second.answer(nlp, "Who ?", "Sam likes ham .").no_answer
    with pytest.raises(ValueError, match="EL227.*'elmo_qa'"):
        pipe.answer(nlp, "Who ?", "Sam likes ham .")


# ---- contexts longer than the window


@pytest.fixture
def short(pipe, monkeypatch):
    """With windows of 6 tokens."""
    for key, value in {"window": 6, "stride": 4, "max_answer": 3, "n_best": 200}.items():
        monkeypatch.setattr(pipe, key, value)
    return pipe


def make_long(n, seed=0):
    rng = random.Random(seed)
    return " ".join(rng.choice(["green", "eggs", "ham", "and"]) for _ in range(n))


def test_probabilities_are_those_of_the_whole_context(nlp, short):
    answers = short.top_answers(nlp, "Sam", make_long(40))
    places = [(answer.start, answer.end) for answer in answers]
    # Spans of 1 to 3 tokens, each once though windows overlap.
    assert len({*places}) == len(places) == 40 + 39 + 38
    assert sum(a.probability for a in answers) + answers[0].no_answer == pytest.approx(1, abs=1e-4)


def test_long_contexts_in_batches_change_nothing(nlp, short, monkeypatch):
    pairs = [("Sam", make_long(n, seed=n)) for n in (3, 50, 1, 20)]
    expected = list(short.answers(nlp, pairs))
    monkeypatch.setattr("spacy_elmo.tasks.shared.attention.MOST_PADDED", 12)
    monkeypatch.setattr("spacy_elmo.tasks.qa.elmo_qa._N_DOCS", 3)
    for settings in ({}, {"batch_size": 1}):
        for answer, other in zip(short.answers(nlp, pairs, **settings), expected):
            assert answer[1:4] == other[1:4]
            assert answer[4:] == pytest.approx(other[4:], abs=1e-5)


def test_training_reads_some_windows():
    nlp = spacy.blank("en")
    pipe = add(nlp)
    doc = pipe.make_pair(nlp, "Sam", make_long(100))
    reading = read_doc(doc, 10, 6)
    answers = [(50, 52), (53, 54)]
    for _ in range(20):
        chosen = choose_windows(reading, answers, 3).windows
        assert len({*chosen}) == 3 and chosen == sorted(chosen)
        assert {*chosen} <= {*reading.windows}
        assert any(a <= start and end <= b for a, b in chosen for start, end in answers)
    assert len(choose_windows(reading, [], 3).windows) == 3
    assert len(choose_windows(reading, answers, 1).windows) == 1
    assert choose_windows(reading, answers, 99) == reading
