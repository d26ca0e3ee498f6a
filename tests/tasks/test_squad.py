"""SQuAD's format, its parts, and its scores."""

import json
import logging

import pytest
import spacy
from spacy.training import Example

from spacy_elmo.tasks.qa.answers import (
    Ranking,
    normalize_answer,
    score_exact,
    score_f1,
    score_qa,
    set_answers,
)
from spacy_elmo.tasks.qa.network import Ranked
from spacy_elmo.tasks.qa.squad import read_squad

CONTEXT = " In 1896 the games,\n  held in Athens, had 241 athletes."


def ask(text, *answers, context=CONTEXT, **more):
    found = [{"answer_start": context.find(each), "text": each} for each in answers]
    return {"id": text, "question": text, "answers": found, **more}


def make_file(tmp_path, *questions, context=CONTEXT, title="Games"):
    paragraph = {"context": context, "qas": list(questions)}
    return write(tmp_path, {"data": [{"title": title, "paragraphs": [paragraph]}]})


def write(tmp_path, data, name="squad.json"):
    path = tmp_path / name
    path.write_text(json.dumps(data), "utf-8")
    return path


def read(path, **options):
    return list(read_squad(spacy.blank("en"), path, **options))


def describe(doc):
    return [span.text for span in doc.spans["answers"]], doc.spans["answers"].attrs.get("texts")


def test_questions_become_docs(tmp_path):
    path = make_file(
        tmp_path,
        ask("When? ", "1896", "In 1896", "1896"),
        ask("Where?", "Athens"),
        ask("Why?", is_impossible=True, plausible_answers=[]),
        {"question": "Who?", "id": "x"},
    )
    docs = read(path)

    assert describe(docs[0]) == (["In 1896", "1896"], ["1896", "In 1896", "1896"])
    assert describe(docs[1]) == (["Athens"], ["Athens"])
    assert describe(docs[2]) == ([], [])
    assert "answers" not in docs[3].spans
    for doc in docs:
        (context,) = doc.spans["context"]
        assert doc.text[context.start_char :] == CONTEXT
        assert doc.spans["question"][0].text.endswith("?")


def test_answers_inside_of_tokens_are_counted(tmp_path, caplog):
    wrong_place = {"answer_start": 0, "text": "Athens"}
    path = make_file(
        tmp_path,
        ask("When?", "189", "1896"),
        {"id": "a", "question": "Where?", "answers": [wrong_place]},
        ask("Who?", "nobody"),
    )
    with caplog.at_level(logging.WARNING, "spacy_elmo"):
        docs = read(path)

    assert describe(docs[0]) == (["1896"], ["189", "1896"])
    assert describe(docs[1]) == (["Athens"], ["Athens"])
    assert describe(docs[2]) == ([], ["nobody"])
    (record,) = caplog.records
    assert "WL041" in record.message and "inside of a token: 1 (" in record.message
    assert "not in their context: 1 (" in record.message and "all answers: 4." in record.message


@pytest.mark.parametrize(
    "data, problem",
    [
        ([], "expected an object"),
        ({"data": [{"paragraphs": [{"qas": [], "context": 3}]}]}, "no 'context'.* paragraph 1"),
        ({"data": [{"paragraphs": [{"context": "", "qas": [{}]}]}]}, "no 'question'"),
    ],
)
def test_other_formats_are_errors(tmp_path, data, problem):
    with pytest.raises(ValueError, match=f"EL223.*{problem}"):
        read(write(tmp_path, data))


def make_articles(tmp_path, n=20):
    data = []
    for i in range(n):
        paragraphs = []
        for k in range(3):
            context, word = f"Paragraph {k} of {i}: word{k} green eggs{i * k} .", f"eggs{i * k}"
            question = ask(f"Which word{k} of {i}?", word, context=context, id=f"{i}-{k}")
            paragraphs.append({"context": context, "qas": [question]})
        data.append({"title": f"Article {i}", "paragraphs": paragraphs})
    return write(tmp_path, {"data": data})


def get_articles(docs):
    return {doc.text.split(" of ")[1].split("?")[0] for doc in docs}


def test_parts_have_whole_articles_and_all_of_them(tmp_path):
    path = make_articles(tmp_path)
    parts = [get_articles(read(path, part=part)) for part in ("train", "dev", "test")]

    assert [len(part) for part in parts] == [16, 2, 2]
    assert len(set.union(*parts)) == 20
    assert parts[2] == get_articles(read(path, part="test"))
    assert [len(read(path, part=p, parts="1,0,3")) for p in ("train", "dev", "test")] == [15, 0, 45]
    # The same everywhere, as data.
    assert sorted(parts[1], key=int) == ["1", "16"]


@pytest.mark.parametrize("parts", ["8,1", "8,1,x", "-1,1,1", "0,0,0", "nan,1,1"])
def test_impossible_shares_are_errors(tmp_path, parts):
    with pytest.raises(ValueError, match="EL012.*'8,1,1'"):
        read(make_articles(tmp_path), part="dev", parts=parts)


def test_contexts_of_another_file_are_left_out(tmp_path):
    path = make_articles(tmp_path)
    data = json.loads(path.read_text())
    other = {"data": [{**data["data"][0], "paragraphs": data["data"][0]["paragraphs"][:1]}]}
    other["data"][0]["paragraphs"][0]["context"] += "\n"
    other_path = write(tmp_path, other, "other.json")

    assert len(read(path)) == 60
    assert len(read(path, without=str(other_path))) == 59


def test_questions_are_asked_of_other_paragraphs(tmp_path):
    path = make_articles(tmp_path)
    docs = read(path, negatives=1.0)
    negatives = [doc for doc in docs if not doc.spans["answers"]]
    n_some = sum(not doc.spans["answers"] for doc in read(path, negatives=0.3))

    # An article whose paragraphs all have the answer has none: that of number 0.
    assert len(docs) == 60 + 57 and len(negatives) == 57
    assert 8 <= n_some <= 28
    for doc in negatives:
        asked, context = doc.spans["question"][0].text, doc.spans["context"][0].text
        # Of the same article, another paragraph.
        assert f" of {asked.split(' of ')[1][:-1]}:" in context
        assert asked.split()[1] not in context
    assert [doc.text for doc in docs] == [doc.text for doc in read(path, negatives=1.0)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("The  Cat, sat!", "cat sat"),
        ("U.S.", "us"),
        # Punctuation goes first: what it parted is one word.
        ("the-end", "theend"),
        # Only ASCII's.
        ("“yes”", "“yes”"),
        ("\u00a0x\ty\n", "x y"),
    ],
)
def test_answers_are_normalised_as_in_the_script(text, expected):
    assert normalize_answer(text) == expected


@pytest.mark.parametrize(
    "predicted, golds, exact, f1",
    [
        ("the cat", ["Cat."], 1, 1),
        ("black cat", ["cat"], 0, 2 / 3),
        ("cat cat dog", ["cat cat bird"], 0, 2 / 3),
        ("dog", ["cat", "dog house", "a dog"], 1, 1),
        ("big dog", ["dog house", "cat"], 0, 0.5),
        # Version 1.1 of the script: nothing in common, though the same.
        ("a", ["the"], 1, 0),
    ],
)
def test_answers_are_scored_as_in_the_script(predicted, golds, exact, f1):
    assert max(score_exact(predicted, gold) for gold in golds) == exact
    assert max(score_f1(predicted, gold) for gold in golds) == pytest.approx(f1)


def test_scores_are_means_over_questions(tmp_path):
    path = make_file(
        tmp_path, ask("When?", "189"), ask("Where?", "in Athens"), ask("Why?"), ask("Who?")
    )
    examples = [Example(doc.copy(), doc) for doc in read(path)]
    for example, word in zip(examples, ["1896", "Athens", "", "241"]):
        doc = example.predicted
        places = [Ranked(token.i, token.i + 1, 0.9) for token in doc if token.text == word]
        set_answers(doc, Ranking(places, 0.1 if word else 0.9), 0.5, "elmo_qa")
    scores = score_qa(examples)

    # "1896" is not "189", whatever the tokens are.
    assert scores == {
        "qa_em": 1 / 4,
        "qa_f1": pytest.approx((0 + 2 / 3 + 1 + 0) / 4),
        "qa_has_answer_em": 0,
        "qa_has_answer_f1": pytest.approx((2 / 3) / 2),
        "qa_no_answer_acc": 0.5,
    }
