"""What each layer knows of a label: a linear probe on frozen vectors."""

from collections import Counter
from statistics import mean
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc, Token
from spacy.util import minibatch
from torch.nn import functional as F

from ..errors import Errors
from ..inference.embedder import Embedder
from ..utils import require_seed

_BATCH = 1024
_LEARN_RATE = 0.002
_PATIENCE = 3
_MOST_EPOCHS = 30
_N_DOCS = 512


class _Split(NamedTuple):
    """vectors (NDArray): float16, shape (n_tokens, n_layers, width). words, labels
    (List[str]): of each token."""

    vectors: NDArray
    words: List[str]
    labels: List[str]


def probe_layers(
    embedder: Embedder, splits: Mapping[str, Sequence[Doc]], attr: str, seeds: Sequence[int]
) -> Dict[str, Any]:
    """Train a linear classifier on each layer alone (Peters et al. 2018, table 6).

    embedder (Embedder): makes the vectors.
    splits (Dict[str, Sequence[Doc]]): "train", "dev" (ends the training) and perhaps "test".
    attr (str): of each token, such as "tag_"; tokens without one are left out.
    seeds (Sequence[int]): of the classifiers.
    RETURNS (Dict[str, Any]): "n_labels", "n_tokens", "splits" (which were scored),
        "frequent" (accuracy of the most frequent label of each word) and "layers" (of each
        layer), both split -> accuracies in percent; of the layers by seed.
    RAISES (ValueError): EL041 if no token of a split has a label, EL151 for a seed that is
        none.
    """
    for seed in seeds:
        require_seed(seed)
    data = _embed_splits(embedder, splits, attr)
    train = data["train"]
    labels = {label: i for i, label in enumerate(sorted(set(train.labels)))}
    targets = {
        # A label that is not in training is never right.
        name: torch.tensor([labels.get(label, -1) for label in split.labels])
        for name, split in data.items()
    }
    scored = [name for name in data if name != "train"]
    layers: List[Dict[str, List[float]]] = []
    for layer in range(train.vectors.shape[1]):
        X = _standardise({name: split.vectors[:, layer] for name, split in data.items()})
        by_seed = [_fit(X, targets, len(labels), seed) for seed in seeds]
        layers.append({name: [scores[name] for scores in by_seed] for name in scored})
    return {
        "n_labels": len(labels),
        "n_tokens": {name: len(split.labels) for name, split in data.items()},
        "seeds": list(seeds),
        "splits": scored,
        "frequent": {name: _score_frequent(train, data[name]) for name in scored},
        "layers": layers,
    }


def _embed_splits(
    embedder: Embedder, splits: Mapping[str, Sequence[Doc]], attr: str
) -> Dict[str, _Split]:
    if not hasattr(Token, attr):
        raise ValueError(Errors.EL041.format(split="train", attr=attr))
    data = {name: _embed(embedder, docs, attr) for name, docs in splits.items()}
    for name, split in data.items():
        if not split.labels:
            raise ValueError(Errors.EL041.format(split=name, attr=attr))
    return data


def _embed(embedder: Embedder, docs: Sequence[Doc], attr: str) -> _Split:
    vectors: List[NDArray] = []
    words: List[str] = []
    labels: List[str] = []
    for group in minibatch(docs, _N_DOCS):
        part = [[token for token in doc if not token.is_space] for doc in group]
        arrays = embedder.embed([[token.text for token in tokens] for tokens in part])
        for tokens, array in zip(part, arrays):
            # False is a label, too.
            kept = [i for i, token in enumerate(tokens) if getattr(token, attr) not in ("", None)]
            vectors.append(array[:, kept].transpose(1, 0, 2).astype("float16"))
            words += [tokens[i].text for i in kept]
            labels += [getattr(tokens[i], attr) for i in kept]
    shape = (0, embedder.bilm.config.n_layers, embedder.bilm.config.width)
    return _Split(np.concatenate([np.zeros(shape, "float16"), *vectors]), words, labels)


def _standardise(parts: Dict[str, NDArray]) -> Dict[str, torch.Tensor]:
    """Each number to mean 0 and variance 1 over the training tokens."""
    train = parts["train"].astype("float32")
    centre, scale = train.mean(axis=0), train.std(axis=0) + 1e-6
    return {
        name: torch.from_numpy((X.astype("float32") - centre) / scale) for name, X in parts.items()
    }


def _fit(
    X: Dict[str, torch.Tensor], targets: Dict[str, torch.Tensor], n_labels: int, seed: int
) -> Dict[str, float]:
    """RETURNS (Dict[str, float]): accuracies in percent, at the epoch that is best on dev."""
    generator = torch.Generator().manual_seed(seed)
    W = torch.zeros(n_labels, X["train"].shape[1], requires_grad=True)
    b = torch.zeros(n_labels, requires_grad=True)
    optimizer = torch.optim.Adam([W, b], lr=_LEARN_RATE)
    best: Dict[str, float] = {}
    n_worse = 0
    for _ in range(_MOST_EPOCHS):
        order = torch.randperm(len(targets["train"]), generator=generator)
        for batch in order.split(_BATCH):
            loss = F.cross_entropy(X["train"][batch] @ W.T + b, targets["train"][batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            scores = {
                name: 100 * float(((X[name] @ W.T + b).argmax(1) == targets[name]).float().mean())
                for name in X
                if name != "train"
            }
        n_worse = 0 if not best or scores["dev"] > best["dev"] else n_worse + 1
        if not n_worse:
            best = scores
        elif n_worse == _PATIENCE:
            break
    return best


def _score_frequent(train: _Split, split: _Split) -> float:
    """The most frequent label of each word; of unknown ones, of all tokens."""
    by_word: Dict[str, Counter] = {}
    for word, label in zip(train.words, train.labels):
        by_word.setdefault(word, Counter())[label] += 1
    overall = Counter(train.labels)
    pairs = zip(split.words, split.labels)
    return 100 * mean(
        by_word.get(word, overall).most_common(1)[0][0] == label for word, label in pairs
    )
