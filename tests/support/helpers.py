"""Helpers of several tests."""

import warnings
from pathlib import Path

import numpy as np
import spacy
from spacy.tokens import Doc

from spacy_elmo.checkpoints.loaders import build_random_loader_v1, load_embedder

from ..acceptance.toys import SHAPE

# The checkout, and files of our own making.
ROOT = Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared"

TEXTS = [
    "I like green eggs .",
    "",
    "Eat eggs",
    "Ham !",
    "  She   said : \n \n “ yes ” ",
    "I like ham , and blue ham , and no ham . Eat it or not . It is like eggs .",
]


def make_nlp(name="elmo", *, seed=0, lang="en", **model):
    """A pipeline with a tiny random elmo. Keys of the component's own may be mixed in."""
    nlp = spacy.blank(lang)
    add_elmo(nlp, name, seed=seed, **model)
    return nlp


def add_elmo(nlp, name="elmo", *, seed=0, **settings):
    own = ("store_layers", "vector_hooks", "learn_rate_factor")
    config = {key: settings.pop(key) for key in own if key in settings}
    model = {"@architectures": "spacy-elmo.Elmo.v2", **SHAPE, **settings}
    elmo = nlp.add_pipe("elmo", name=name, config={**config, "model": model})
    elmo.initialize(lambda: [example(nlp)], loader=build_random_loader_v1(seed))
    return elmo


def example(nlp, words=("a", "b")):
    from spacy.training import Example

    doc = Doc(nlp.vocab, words=list(words))
    return Example.from_dict(doc, {"words": list(words)})


def vectors(docs):
    return [doc.tensor.copy() for doc in docs]


def hash_of(weights):
    """Identify a biLM as result files do."""
    return load_embedder(weights).hash_weights().hex()[:16]


def assert_close(actual, expected, atol=1e-5):
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, atol=atol, rtol=0)


def silently(function, *args):
    """Call with spaCy's own warnings off, where they are not the point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


def tell(function, *args):
    """The warnings of a call, and what it returns."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        result = function(*args)
    # Not what old packages do that Python will not have any more.
    told = [warning for warning in record if issubclass(warning.category, UserWarning)]
    return [str(warning.message) for warning in told], result


def assert_gradient(compute, arrays, gradients, *, eps, atol, every=1):
    """Compare gradients with finite differences of `compute()` over its (changed) arrays, in each
    `every`-th place; -inf has none."""
    for X, dX in zip(arrays, gradients, strict=True):
        for place in list(np.ndindex(X.shape))[::every]:
            value, found = X[place], []
            if np.isfinite(value):
                for sign in (1, -1):
                    X[place] = value + sign * eps
                    found.append(compute())
                X[place] = value
            slope = (found[0] - found[1]) / (2 * eps) if found else 0
            np.testing.assert_allclose(dX[place], slope, atol=atol, rtol=0, err_msg=str(place))
