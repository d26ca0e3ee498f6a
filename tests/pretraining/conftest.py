import pytest

from spacy_elmo.text import corpus

from ..support.runs import share_tokenizer


@pytest.fixture(autouse=True)
def shared_tokenizer(monkeypatch):
    monkeypatch.setattr(corpus, "make_tokenizer", share_tokenizer)
