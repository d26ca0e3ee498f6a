import json
from collections import Counter

import numpy as np
import pytest

from spacy_elmo.pretraining.stream import BatchStream
from spacy_elmo.pretraining.vocabulary import SPECIAL_WORDS, Vocabulary

VOCABULARY = Vocabulary([*SPECIAL_WORDS, *(f"w{i}" for i in range(50))])


def read(position):
    """Numbered sequences of all lengths, a few at a time, without end."""
    i = position["i"]
    while True:
        yield [[f"w{i % 50}"] * (1 + i * 7 % 13), [f"w{(i + 1) % 50}"]], {"i": i + 2}
        i += 2


def make_stream(**changes):
    settings = {"batch_tokens": 60, "buffer_tokens": 400, "seed": 1, **changes}
    return BatchStream(read, VOCABULARY, **settings)


def take(stream, n=40, position=None):
    steps = stream.steps(position or stream.start({"i": 0}))
    return [step for _, step in zip(range(n), steps)]


def count(steps, *, all_pieces=True):
    """How often each word is predicted forward."""
    return Counter(
        target for step in steps for b in step.batches for target in b.forward.targets.tolist()
    )


@pytest.mark.parametrize("n_steps", [0, 4])
def test_going_on_from_any_step_gives_the_same_steps(n_steps):
    steps = take(make_stream(n_steps=n_steps))

    for i in (0, 5, 17, 30):
        position = json.loads(json.dumps(steps[i].position))
        rest = take(make_stream(n_steps=n_steps), 39 - i, position)
        for found, expected in zip(rest, steps[i + 1 :]):
            assert found.position == expected.position
            assert (found.n_targets, found.continues) == (expected.n_targets, expected.continues)
            for a, b in zip(found.batches, expected.batches):
                assert a.words == b.words
                np.testing.assert_array_equal(a.backward.targets, b.backward.targets)


def test_a_step_is_within_its_budget_and_holds_like_lengths():
    for step in take(make_stream()):
        (batch,) = step.batches
        assert batch.n_targets == step.n_targets <= 60
        lengths = np.bincount(np.repeat(np.arange(len(batch.batch_sizes)), batch.batch_sizes))
        assert lengths[0] == batch.batch_sizes[0]


def test_seeds_change_the_order_and_not_the_text():
    first, second = (take(make_stream(seed=seed), 8) for seed in (1, 2))

    words = [[b.words for s in steps for b in s.batches] for steps in (first, second)]
    assert words[0] != words[1]


@pytest.mark.parametrize("n_steps", [0, 4])
@pytest.mark.parametrize("n_ranks, n_pieces", [(2, 1), (1, 3), (2, 2)])
def test_processes_and_pieces_share_the_same_steps(n_steps, n_ranks, n_pieces):
    whole = take(make_stream(n_steps=n_steps))
    parts = [
        take(make_stream(n_steps=n_steps, rank=rank, n_ranks=n_ranks, n_pieces=n_pieces))
        for rank in range(n_ranks)
    ]

    for i, step in enumerate(whole):
        shares = [part[i] for part in parts]
        assert count(shares) == count([step])
        assert {s.n_targets for s in shares} == {step.n_targets}
        assert all(s.position == step.position for s in shares)


def test_rows_go_on_until_the_buffer_ends():
    steps = take(make_stream(n_steps=4), 60)

    starts = [i for i, step in enumerate(steps) if not step.continues]
    assert starts[0] == 0 and len(starts) > 2
    assert all(step.batches[0].batch_sizes[0] == 15 for step in steps)
