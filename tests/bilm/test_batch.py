"""Words as character ids, batches of sequences, and their layout in time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.batch import (
    count_truncated,
    encode_words,
    make_batch,
    pack,
    plan_batches,
    unpack_rows,
)

from ..support.oracle import character_ids

BOW, EOW, PAD = 258, 259, 260
WORDS = {
    "empty": ("", [BOW, EOW]),
    "two bytes": ("é", [BOW, 0xC3, 0xA9, EOW]),
    "NUL": ("\0", [BOW, 0, EOW]),
    "begin of sentence": ("<S>", [BOW, 256, EOW]),
    "end of sentence": ("</S>", [BOW, 257, EOW]),
    "lone surrogate": ("a\ud800b", [BOW, 97, 98, EOW]),
    "fits exactly": ("x" * 6, [BOW, *[120] * 6, EOW]),
    "cut inside a character": ("xxxxx😀", [BOW, *[120] * 5, 0xF0, EOW]),
    "very long": ("x" * 10_000, [BOW, *[120] * 6, EOW]),
}
words = st.sampled_from(["a", "b", "c", "<S>", "</S>", ""])
sequences = st.lists(st.lists(words, min_size=1, max_size=6), min_size=1, max_size=6)


@pytest.mark.parametrize("word, expected", WORDS.values(), ids=WORDS)
def test_encode_words_follows_the_format(word, expected):
    ids, lengths = encode_words([word], 8)

    assert lengths.tolist() == [len(expected)]
    assert ids[0].tolist() == expected + [PAD] * (8 - len(expected))


@given(st.lists(st.text(st.characters(exclude_categories=[])), max_size=5), st.integers(3, 60))
def test_encode_words_equals_the_oracle_on_any_text(words, max_chars):
    ids, _ = encode_words(words, max_chars)

    assert ids.shape == (len(words), max_chars)
    assert ids.tolist() == [character_ids(word, max_chars) for word in words]


def test_count_truncated_counts_words_by_bytes():
    assert count_truncated(["x" * 6, "x" * 7, "x" * 7, "é" * 3, "é" * 4, "a"], 8) == 3


@given(sequences)
def test_make_batch_spells_the_sequences_with_distinct_words(sequences):
    batch = make_batch(sequences)

    spelled = [batch.words[i] for i in batch.word_ids]
    assert spelled == [w for words in sequences for w in ["<S>", *words, "</S>"]]
    assert batch.lengths.tolist() == [len(words) + 2 for words in sequences]
    assert len(set(batch.words)) == len(batch.words)
    assert batch.words[:2] == ["<S>", "</S>"]


@given(st.lists(st.integers(0, 20), max_size=20), st.integers(1, 50))
def test_plan_batches_keeps_the_budget_and_every_sequence(lengths, budget):
    groups = list(plan_batches(lengths, budget))

    assert sorted(i for group in groups for i in group) == [i for i, n in enumerate(lengths) if n]
    for group in groups:
        assert len(group) == 1 or sum(lengths[i] + 2 for i in group) <= budget


@given(st.lists(st.integers(2, 7), min_size=1, max_size=6), st.booleans())
def test_pack_visits_each_position_once_and_in_time(lengths, read_last):
    lengths = np.array(lengths)
    packing = pack(lengths, read_last=read_last)

    starts = np.cumsum(lengths) - lengths
    steps = lengths - (0 if read_last else 1)
    assert sum(packing.batch_sizes) == steps.sum() == len(packing.forward)
    for packed, first, step in (
        (packing.forward, starts, 1),
        (packing.backward, starts + lengths - 1, -1),
    ):
        for start, n in zip(first, steps):
            positions = start + step * np.arange(n)
            rows = unpack_rows(packed, positions)
            assert (np.diff(rows) > 0).all()
            assert (packed[rows] == positions).all()
