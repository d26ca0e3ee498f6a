"""spacy_elmo.utils: values in messages, batches, memory, msgpack hooks."""

import catalogue
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin
from srsly import msgpack

from spacy_elmo.utils import (
    count_things,
    group_by_length,
    kept_hooks,
    mark_word,
    show_name,
    show_names,
    show_reason,
    show_value,
    split_by_size,
)


def test_untrusted_values_are_short_and_printable():
    assert show_value({"a": [1]}) == '{"a": [1]}'
    assert show_value({1, 2}) == "(set)"
    assert show_name("a\nb\x1b[0m") == '"a\\nb\\u001b[0m"'
    assert len(show_name("x" * 1000)) == 80
    assert show_names("dcba") == "a, b, c, d" and show_names([]) == "none"
    assert show_names(map(str, range(20))).endswith(" and 12 more")
    assert show_reason(ValueError("a\n  b.")) == "a b" and show_reason(KeyError()) == "KeyError"


def test_a_word_is_marked_in_its_context():
    words = ["He", "sat", "by", "the", "bank", "of", "it"]
    assert mark_word(words, 4) == "He sat by the [bank] of it"
    assert mark_word(words, 4, str.upper, n_around=1) == "… the BANK of …"
    assert count_things(1, "file") == "1 file" and count_things(2000, "file") == "2,000 files"


@given(st.lists(st.integers(1, 20)), st.integers(1, 60))
def test_groups_and_batches_have_all_items_within_bounds(lengths, most):
    groups = list(group_by_length(lengths, lambda n, length: n * length <= most))
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    padded = [len(group) * max(lengths[i] for i in group) for group in groups]
    assert all(size <= most or len(group) == 1 for size, group in zip(padded, groups))
    batches = list(split_by_size(lengths, lambda n: n, most))
    assert [n for batch in batches for n in batch] == lengths
    assert all(sum(batch) <= most or len(batch) == 1 for batch in batches)


def test_msgpack_hooks_are_looked_up_once(monkeypatch):
    n_looked = []
    look = catalogue.Registry.get_entry_points
    monkeypatch.setattr(
        catalogue.Registry, "get_entry_points", lambda self: n_looked.append(1) or look(self)
    )
    nlp = spacy.blank("en")
    docs = list(nlp.pipe(f"Green eggs and ham {i}" for i in range(20)))
    for doc in docs:
        doc.spans["sc"] = [doc[:2], doc[3:]]
    expected = DocBin(docs=docs).to_bytes()
    assert len(n_looked) >= len(docs)

    with kept_hooks(), pytest.raises(OSError, match="full"), kept_hooks():
        n_start = len(n_looked)
        assert DocBin(docs=docs).to_bytes() == expected
        assert len(n_looked) == n_start
        raise OSError("full")

    n_looked.clear()
    msgpack.loads(msgpack.dumps({"a": 1}))
    assert len(n_looked) == 2
