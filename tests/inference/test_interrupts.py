"""Ctrl-C at random points leaves everything as it should be: the standing check."""

import copy
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.build_lock import BUILD_LOCK
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference import threads as parallel
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.inference.threads import CACHE_LOCK

from ..support.helpers import SHAPE, assert_close, make_nlp
from ..support.interrupts import interrupt_at_random

pytestmark = [
    pytest.mark.skipif(
        sys.gettrace() is not None,
        reason="what traces has locks of Python's own, which an interrupt leaves taken",
    ),
    # The timer of the signals is the process's own.
    pytest.mark.timeout(300, method="thread"),
    # An interrupt that comes while an object is being thrown away is lost: so Python does it.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

FEW, MANY = 200, 3_000
often = pytest.mark.parametrize(
    "n_times", [FEW, pytest.param(MANY, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)


def make_bilm(seed=0):
    torch.manual_seed(seed)
    return BiLM(BiLMConfig(**SHAPE))


def make_texts():
    """Sentences whose words come and go, so that a small cache always changes."""
    rng = random.Random(0)
    words = [f"w{i}" for i in range(60)]
    return [[rng.sample(words, 6) for _ in range(5)] for _ in range(16)]


def require_untouched(n_threads):
    """Locks are free, and the thread's settings as they were."""
    free = []

    def look():
        for lock in (BUILD_LOCK, CACHE_LOCK, parallel._lock):
            free.append(lock.acquire(timeout=10))
            lock.release()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(30)
    assert free == [True] * 3
    assert torch.is_grad_enabled() and torch.get_num_threads() == n_threads


@often
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_forward_pass_leaves_the_next_one_exact(n_times, n_threads):
    bilm, texts = make_bilm(), make_texts()
    expected = [Embedder(bilm, word_cache=0).embed(text) for text in texts]
    embedder = Embedder(bilm, word_cache=40, batch_tokens=20, n_threads=n_threads)
    before, n, n_interrupted = torch.get_num_threads(), 0, 0

    def work():
        embedder.embed(texts[n % len(texts)])

    for n, was_interrupted in enumerate(interrupt_at_random(work, n_times)):
        n_interrupted += was_interrupted
        i = (n + 1) % len(texts)
        assert_close(embedder.embed(texts[i]), expected[i], 1e-6)
        if n % 100 == 0:
            require_untouched(before)
    assert n_interrupted > n_times / 3
    require_untouched(before)


@often
def test_a_pipeline_goes_on(n_times):
    nlp = make_nlp(word_cache=30)
    texts = [" ".join(word for words in text for word in words) for text in make_texts()]
    expected = [doc.tensor.copy() for doc in nlp.pipe(texts)]

    for n, _ in enumerate(interrupt_at_random(lambda: list(nlp.pipe(texts)), n_times // 10)):
        assert torch.is_grad_enabled()
        i = n % len(texts)
        assert_close([nlp(texts[i]).tensor], [expected[i]], 1e-6)


@often
def test_loading_takes_place_or_not(n_times):
    """What a biLM holds, and what it computes, are the old weights or the new ones."""
    bilms = [make_bilm(seed) for seed in (0, 1)]
    states = [bilm.state_dict() for bilm in bilms]
    words = [["a", "b", "c"]]
    expected = [Embedder(bilm).embed(words)[0] for bilm in bilms]
    embedder = Embedder(copy.deepcopy(bilms[0]))
    seen = set()

    def load():
        embedder.embed(words)
        embedder.bilm.load_state_dict(states[n % 2])
        embedder.set_ready()

    n = 0
    for n, _ in enumerate(interrupt_at_random(load, n_times // 5), 1):
        assert torch.is_grad_enabled()
        held = embedder.bilm.state_dict()
        which = [all(torch.equal(held[k], state[k]) for k in held) for state in states].index(True)
        np.testing.assert_allclose(embedder.embed(words)[0], expected[which], atol=1e-6)
        seen.add(which == n % 2)
    assert seen == {True, False}


def test_an_interrupt_in_torch_s_own_loading_leaves_gradients_as_they_were(monkeypatch):
    bilm = make_bilm()

    def load(*_):
        # As where it comes between the two steps of torch's `no_grad`.
        torch.set_grad_enabled(False)
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.nn.Module, "load_state_dict", load)
    with pytest.raises(KeyboardInterrupt):
        bilm.load_state_dict(bilm.state_dict())
    assert torch.is_grad_enabled()


def test_the_first_use_is_begun_again():
    bilm = make_bilm()
    expected = Embedder(bilm).embed([["a", "b"]])
    embedders, bilms = [None], [make_bilm(1) for _ in range(40)]

    def work():
        embedders[0] = Embedder(bilms.pop(), loader=lambda b: b.load_state_dict(bilm.state_dict()))
        embedders[0].embed([["a"]])

    for _ in interrupt_at_random(work, 20):
        assert torch.is_grad_enabled()
        if embedders[0] is not None:
            assert_close(embedders[0].embed([["a", "b"]]), expected, 1e-6)


def test_no_task_goes_on_behind_the_callers_back():
    running, begun = set(), threading.Event()

    def task(i):
        running.add(i)
        begun.set()
        try:
            while True:
                parallel.raise_if_stopped()
                time.sleep(0.001)
        finally:
            running.discard(i)

    def interrupt_when_begun():
        begun.wait()
        while running:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(5)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt_when_begun).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            parallel.run_parallel([lambda i=i: task(i) for i in range(9)], 3)
    finally:
        signal.signal(signal.SIGINT, before)

    assert not running
    assert parallel.run_parallel([lambda i=i: i for i in range(9)], 3) == list(range(9))
