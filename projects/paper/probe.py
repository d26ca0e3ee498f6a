"""Train a linear classifier on each layer of a biLM alone (Peters et al. 2018, table 6)."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import spacy
import torch
import typer
from numpy.typing import NDArray
from spacy.tokens import Doc, DocBin
from spacy.util import minibatch
from torch import Tensor
from torch.nn import functional as F

from spacy_elmo import Embedder, load_embedder
from spacy_elmo.experiments.contexts import name_layers
from spacy_elmo.experiments.results import format_scores, get_effort, write_result

BATCH, LEARN_RATE, PATIENCE, MOST_EPOCHS = 1024, 0.002, 3, 30
# Docs that are embedded at a time.
N_DOCS = 512


class Split(NamedTuple):
    """vectors (NDArray): float16, shape (n_tokens, n_layers, width). words, labels (list[str]): of
    each token."""

    vectors: NDArray
    words: list[str]
    labels: list[str]


def main(
    corpus: Path = typer.Argument(..., help="Folder with train.spacy, dev.spacy, test.spacy"),
    output: Path = typer.Argument(..., help="JSON file to write"),
    weights: str = typer.Option("", help="Folder of a biLM; the bundled one if left out"),
    attr: str = typer.Option("tag_", help="Attribute of the tokens to predict"),
    title: str = typer.Option("", help="Name of the data; the folder's if left out"),
    seeds: str = typer.Option("0,1,2", help="Seeds, with commas"),
    limit: int = typer.Option(0, help="Docs of each file to read, 0 for all"),
) -> None:
    """Print a table and write OUTPUT."""
    start = time.perf_counter()
    docs = {}
    for split in ("train", "dev", "test"):
        path = corpus / f"{split}.spacy"
        if path.exists() or split != "test":
            read = DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)
            docs[split] = list(read)[: limit or None]
    embedder = load_embedder(weights or None)
    numbers = [int(seed) for seed in seeds.split(",")]
    report = {"attr": attr, **probe_layers(embedder, docs, attr, numbers)}
    report.update(get_effort(start, embedder.hash_weights()))
    write_result(output, "probe", title or corpus.resolve().name, report)
    for name, scores in zip(name_layers(len(report["layers"])), report["layers"]):
        shown = ", ".join(f"{split} {format_scores(values)}" for split, values in scores.items())
        print(f"{name}: {shown}")


def probe_layers(
    embedder: Embedder, splits: Mapping[str, Sequence[Doc]], attr: str, seeds: Sequence[int]
) -> dict[str, Any]:
    """Train a linear classifier on each layer alone.

    embedder (Embedder): makes the vectors.
    splits (Mapping[str, Sequence[Doc]]): "train", "dev" (ends the training) and perhaps "test".
    attr (str): of each token, such as "tag_"; tokens without one are left out.
    seeds (Sequence[int]): of the classifiers.
    RETURNS (dict[str, Any]): "n_labels", "n_tokens", "splits" (that were scored), "frequent"
        (accuracy of the most frequent label of each word) and "layers" (for each layer), both
        split -> accuracies in percent, of the layers by seed.
    """
    data = {name: embed(embedder, docs, attr) for name, docs in splits.items()}
    for name, split in data.items():
        if not split.labels:
            raise ValueError(f"No token of the {name} docs has '{attr}'")
    train = data["train"]
    labels = {label: i for i, label in enumerate(sorted(set(train.labels)))}
    targets = {
        # A label that is not in training is never right.
        name: torch.tensor([labels.get(label, -1) for label in split.labels])
        for name, split in data.items()
    }
    scored = [name for name in data if name != "train"]
    layers: list[dict[str, list[float]]] = []
    for layer in range(train.vectors.shape[1]):
        X = standardise({name: split.vectors[:, layer] for name, split in data.items()})
        by_seed = [fit(X, targets, len(labels), seed) for seed in seeds]
        layers.append({name: [scores[name] for scores in by_seed] for name in scored})
    return {
        "n_labels": len(labels),
        "n_tokens": {name: len(split.labels) for name, split in data.items()},
        "seeds": list(seeds),
        "splits": scored,
        "frequent": {name: score_frequent(train, data[name]) for name in scored},
        "layers": layers,
    }


def embed(embedder: Embedder, docs: Sequence[Doc], attr: str) -> Split:
    """Embed the tokens that have a label."""
    vectors: list[NDArray] = []
    words: list[str] = []
    labels: list[str] = []
    for group in minibatch(docs, N_DOCS):
        part = [[token for token in doc if not token.is_space] for doc in group]
        arrays = embedder.embed([[token.text for token in tokens] for tokens in part])
        for tokens, array in zip(part, arrays):
            # False is a label, too.
            kept = [i for i, token in enumerate(tokens) if getattr(token, attr) not in ("", None)]
            vectors.append(array[:, kept].transpose(1, 0, 2).astype("float16"))
            words += [tokens[i].text for i in kept]
            labels += [getattr(tokens[i], attr) for i in kept]
    shape = (0, embedder.bilm.config.n_layers, embedder.bilm.config.width)
    return Split(np.concatenate([np.zeros(shape, "float16"), *vectors]), words, labels)


def standardise(parts: dict[str, NDArray]) -> dict[str, Tensor]:
    """Scale each dimension to mean 0 and variance 1 over the training tokens."""
    train = parts["train"].astype("float32")
    centre, scale = train.mean(axis=0), train.std(axis=0) + 1e-6
    return {
        name: torch.from_numpy((X.astype("float32") - centre) / scale) for name, X in parts.items()
    }


def fit(
    X: dict[str, Tensor], targets: dict[str, Tensor], n_labels: int, seed: int
) -> dict[str, float]:
    """RETURNS (dict[str, float]): accuracies in percent, at the epoch that is best on dev."""
    generator = torch.Generator().manual_seed(seed)
    W = torch.zeros(n_labels, X["train"].shape[1], requires_grad=True)
    b = torch.zeros(n_labels, requires_grad=True)
    optimizer = torch.optim.Adam([W, b], lr=LEARN_RATE)
    best: dict[str, float] = {}
    n_worse = 0
    for _ in range(MOST_EPOCHS):
        order = torch.randperm(len(targets["train"]), generator=generator)
        for batch in order.split(BATCH):
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
        elif n_worse == PATIENCE:
            break
    return best


def score_frequent(train: Split, split: Split) -> float:
    """RETURNS (float): accuracy of the most frequent label of each word; for unknown words, of all
    tokens."""
    by_word: dict[str, Counter] = {}
    for word, label in zip(train.words, train.labels):
        by_word.setdefault(word, Counter())[label] += 1
    overall = Counter(train.labels)
    return 100 * mean(
        by_word.get(word, overall).most_common(1)[0][0] == label
        for word, label in zip(split.words, split.labels)
    )


if __name__ == "__main__":
    typer.run(main)
