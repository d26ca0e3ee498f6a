"""Toy task data."""

import random

import spacy
from spacy.tokens import Doc


def make_docs(n_docs, seed=0):
    """Every word has its tag: "odd" or "even" by its number, and a numbered one is named."""
    vocab = spacy.blank("en").vocab
    rng = random.Random(seed)
    for _ in range(n_docs):
        numbers = [rng.randrange(20) for _ in range(rng.randrange(1, 6))]
        words = [f"w{number}" for number in numbers]
        yield Doc(vocab, words=words, tags=["odd" if n % 2 else "even" for n in numbers])
