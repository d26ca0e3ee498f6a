import catalogue
import pytest
import spacy
from spacy.tokens import DocBin
from srsly import msgpack

from spacy_elmo.utils import kept_hooks


@pytest.fixture
def asked(monkeypatch):
    """How often entry points were looked through."""
    times = []
    look = catalogue.Registry.get_entry_points
    monkeypatch.setattr(
        catalogue.Registry, "get_entry_points", lambda self: times.append(1) or look(self)
    )
    return times


def make_docs(n=20):
    nlp = spacy.blank("en")
    docs = list(nlp.pipe(f"Green eggs and ham {i}" for i in range(n)))
    for doc in docs:
        doc.spans["sc"] = [doc[:2], doc[3:]]
    return nlp, docs


def read_spans(nlp, content):
    docs = DocBin().from_bytes(content).get_docs(nlp.vocab)
    return [[(span.start, span.end) for span in doc.spans["sc"]] for doc in docs]


def test_docs_with_spans_are_the_same_and_nobody_is_asked_for_each(asked):
    nlp, docs = make_docs()
    expected = DocBin(docs=docs).to_bytes()
    n_before = len(asked)
    assert n_before >= len(docs)

    with kept_hooks():
        n_start = len(asked)
        content = DocBin(docs=docs).to_bytes()
        spans = read_spans(nlp, content)
        assert len(asked) == n_start

    assert content == expected and spans == read_spans(nlp, expected)


def test_srsly_looks_again_afterwards(asked):
    with pytest.raises(OSError, match="full"), kept_hooks():
        raise OSError("full")
    asked.clear()

    msgpack.loads(msgpack.dumps({"a": 1}))

    assert len(asked) == 2


def test_several_may_be_open(asked):
    first, second = kept_hooks(), kept_hooks()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)

    assert msgpack.loads(msgpack.dumps([1, 2])) == [1, 2]

    second.__exit__(None, None, None)
    registries = msgpack.msgpack_encoders, msgpack.msgpack_decoders
    assert not any("get_all" in vars(registry) for registry in registries)


def test_hooks_of_others_are_kept():
    calls = []

    def decode(obj, chain=None):
        calls.append(obj)
        return obj if chain is None else chain(obj)

    registry = msgpack.msgpack_decoders
    registry.register("own", func=decode)
    try:
        with kept_hooks():
            msgpack.loads(msgpack.dumps({"a": 1}))
    finally:
        catalogue.REGISTRY.pop((*registry.namespace, "own"))
    assert calls
