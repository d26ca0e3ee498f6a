from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.batch import make_batch, plan_batches

words = st.sampled_from(["a", "b", "c", "<S>", "</S>", ""])
sequences = st.lists(st.lists(words, min_size=1, max_size=6), min_size=1, max_size=6)


@given(sequences)
def test_make_batch_spells_the_sequences(sequences):
    batch = make_batch(sequences)

    spelled = [batch.words[i] for i in batch.word_ids]
    assert spelled == [w for words in sequences for w in ["<S>", *words, "</S>"]]
    assert batch.lengths.tolist() == [len(words) + 2 for words in sequences]


@given(sequences)
def test_make_batch_holds_each_word_once(sequences):
    words = make_batch(sequences).words

    assert len(set(words)) == len(words)
    assert words[:2] == ["<S>", "</S>"]


@given(st.lists(st.integers(0, 20), max_size=20), st.integers(1, 50))
def test_plan_batches_keeps_the_budget_and_every_sequence(lengths, budget):
    groups = list(plan_batches(lengths, budget))

    assert sorted(i for group in groups for i in group) == [i for i, n in enumerate(lengths) if n]
    for group in groups:
        assert len(group) == 1 or sum(lengths[i] + 2 for i in group) <= budget
