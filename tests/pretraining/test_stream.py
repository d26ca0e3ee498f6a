import json
from collections import Counter

import numpy as np
import pytest
import torch

from spacy_elmo.language_model.vocabulary import SPECIAL_WORDS, Vocabulary
from spacy_elmo.pretraining.config import TrainingSettings
from spacy_elmo.pretraining.processes import Processes
from spacy_elmo.pretraining.stream import BatchStream, read_ahead

VOCABULARY = Vocabulary([*SPECIAL_WORDS, *(f"w{i}" for i in range(50))])


def read(position):
    """Numbered sequences of all lengths, a few at a time, without end."""
    i = position["i"]
    while True:
        yield [[f"w{i % 50}"] * (1 + i * 7 % 13), [f"w{(i + 1) % 50}"]], {"i": i + 2}
        i += 2


def make_stream(rank=0, n_ranks=1, buffer_tokens=400, prefetch=False, **changes):
    settings = TrainingSettings(**{"batch_tokens": 60, "seed": 1, **changes})
    processes = Processes(rank, n_ranks, torch.device("cpu"))
    sizes = {"buffer_tokens": buffer_tokens, "prefetch": prefetch}
    return BatchStream(read, VOCABULARY, settings, processes, **sizes)


def take(stream, n=40, position=None):
    steps = stream.steps(position or stream.start({"i": 0}))
    return [step for _, step in zip(range(n), steps)]


def count(steps):
    """How often each word is predicted forward."""
    return Counter(
        target for step in steps for b in step.batches for target in b.forward.targets.tolist()
    )


@pytest.mark.parametrize("state_steps", [0, 4])
def test_going_on_from_any_step_gives_the_same_steps(state_steps):
    steps = take(make_stream(state_steps=state_steps))

    for i in (0, 5, 17, 30):
        position = json.loads(json.dumps(steps[i].position))
        rest = take(make_stream(state_steps=state_steps), 39 - i, position)
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
        lengths = [len(step) for step in rows_of(batch)]
        # Sorted before they were cut into batches: no row is much shorter than another.
        assert max(lengths) - min(lengths) <= 6


def rows_of(batch):
    """The words that each row reads."""
    starts = np.cumsum([0, *batch.batch_sizes[:-1]])
    words, steps = np.array(batch.words)[batch.forward.inputs], list(zip(starts, batch.batch_sizes))
    return [[words[s + r] for s, n in steps if r < n] for r in range(batch.batch_sizes[0])]


def test_reading_ahead_changes_nothing_and_passes_errors_on():
    expected = [step.position for step in take(make_stream())]
    assert [step.position for step in take(make_stream(prefetch=True))] == expected

    def broken():
        yield 1
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(read_ahead(broken()))


@pytest.mark.parametrize("n_rows", [1, 2, 7, 15])
def test_rows_leave_next_to_nothing_out(n_rows):
    """However long the sequences are, beside what a row has."""
    steps = take(make_stream(state_steps=4, batch_tokens=4 * n_rows), 200)
    parts = [rows_of(step.batches[0]) for step in steps if step.position["buffer"] == 0]
    rows = [[w for part in row for w in part if w != "<S>"] for row in zip(*parts)]
    assert len(rows) == n_rows
    text = []
    for sequences, _ in read({"i": 0}):
        text += [word for words in sequences for word in words]
        if len(text) >= 400:
            break
    # Each row begins where the one before ends, except for the words that were cut off there.
    start = 0
    for row in rows:
        start = next(i for i in range(start, start + 3) if text[i : i + len(row)] == row)
        start += len(row)
    assert len(text) - 3 * n_rows <= start


def test_fewer_sequences_than_rows_make_fewer_rows():
    stream = make_stream(state_steps=2, buffer_tokens=20)
    assert all(0 < len(rows_of(step.batches[0])) < 30 for step in take(stream, 9))
    with pytest.raises(ValueError, match="EL091.*buffer_tokens = 20.*50 sequences"):
        take(make_stream(state_steps=2, buffer_tokens=20, n_ranks=50))


@pytest.mark.parametrize("state_steps", [0, 4])
@pytest.mark.parametrize("n_ranks, n_pieces", [(2, 1), (1, 3), (2, 2)])
def test_processes_and_pieces_share_the_same_steps(state_steps, n_ranks, n_pieces):
    whole = take(make_stream(state_steps=state_steps))
    parts = [
        take(make_stream(state_steps=state_steps, rank=rank, n_ranks=n_ranks, accumulate=n_pieces))
        for rank in range(n_ranks)
    ]

    for i, step in enumerate(whole):
        shares = [part[i] for part in parts]
        assert count(shares) == count([step])
        assert {s.n_targets for s in shares} == {step.n_targets}
        assert all(s.position == step.position for s in shares)


def test_rows_go_on_until_the_buffer_ends():
    steps = take(make_stream(state_steps=4), 60)

    starts = [i for i, step in enumerate(steps) if not step.continues]
    assert starts[0] == 0 and len(starts) > 2
    assert all(step.batches[0].batch_sizes[0] == 15 for step in steps)
