"""What a biLM knows, in a few minutes: the probes by which recipes of pretraining are chosen.

Held-out perplexity in a fixed vocabulary, a linear classifier of parts of speech on each layer,
and entities by one small biLSTM on all layers: on three sets, so that nothing is tuned to one.
Everything is frozen and of dev: no test split is read.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import srsly
import torch
import typer
from common import show_mean
from numpy.typing import NDArray
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spacy_elmo.checkpoints.loaders import load_embedder
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.language_model.evaluation import evaluate_checkpoint
from spacy_elmo.tasks.shared.annotations import LabelledSpan, read_tags
from spacy_elmo.text.languages import read_static_vectors

sys.path.append(str(Path(__file__).parents[1] / "projects" / "paper"))
from probe import probe_layers

TAGS = "ewt"
ENTITIES = ("wnut17", "gum", "uner_ewt")
# What the tagger maps its inputs to, and cells of a direction.
INPUT, HIDDEN = 128, 100
DROPOUT = 0.5
LEARN_RATE = 0.002
BATCH = 32


def main(
    checkpoint: Path = typer.Argument(..., help="Folder with a biLM, and its softmax"),
    corpora: Path = typer.Option(..., help="Folder of projects/tasks/convert.py"),
    heldout: Path = typer.Option(..., help="Folder with held-out text"),
    vocab: Path = typer.Option(..., help="File with the words to score"),
    vectors: Path = typer.Option(None, help="A pipeline with static vectors to put beside"),
    sentences: int = typer.Option(2000, help="Held-out sentences to score"),
    train_sentences: int = typer.Option(6000, help="Most training sentences of a task"),
    updates: int = typer.Option(800, help="Of the biLSTM, by 32 sentences"),
    seeds: int = typer.Option(3, help="Of the biLSTM; 0: no entities"),
    name: str = typer.Option("", help="To print; the folder's if left out"),
    output: Path = typer.Option(None, help="JSON file to write"),
) -> None:
    """Print a line."""
    started = time.process_time()
    embedder = load_embedder(checkpoint)
    found: dict[str, Any] = {"name": name or checkpoint.parent.name, "updates": updates}
    found["operations"] = embedder.bilm.config.n_operations
    found["perplexity"] = score_text(checkpoint, heldout, vocab, sentences)
    found["xpos"] = probe_tags(embedder, corpora, train_sentences)
    table = None if vectors is None else read_table(vectors)
    for task in ENTITIES if seeds else ():
        data = read_docs(corpora, task, train_sentences)
        inputs = {split: embed(embedder, part) for split, part in data.items()}
        found[task] = fit_all(inputs, data, updates, seeds)
        if table is not None:
            inputs = {split: add_vectors(X, data[split], table) for split, X in inputs.items()}
            found[f"{task}_vectors"] = fit_all(inputs, data, updates, seeds)
    found["cpu_seconds"] = time.process_time() - started
    if output is not None:
        srsly.write_json(output, found)
    print(format_line(found), flush=True)


def score_text(checkpoint: Path, heldout: Path, vocab: Path, n_sentences: int) -> float:
    """RETURNS (float): exact perplexity, geometric mean of both directions, of sentences
    from all over the text."""
    scores = evaluate_checkpoint(
        checkpoint, str(heldout), vocab=vocab, cut="sentences", max_tokens=128, stream=False,
        limit=n_sentences,
    )  # fmt: skip
    return scores["geometric_mean"]


def probe_tags(embedder: Embedder, corpora: Path, n_sentences: int) -> list[float]:
    """RETURNS (list[float]): accuracy of a linear classifier on each layer, dev, percent."""
    docs = read_docs(corpora, TAGS, n_sentences)
    layers = probe_layers(embedder, docs, "tag_", [0])["layers"]
    return [layer["dev"][0] for layer in layers]


def read_docs(
    corpora: Path, task: str, n_train: int | None, splits: Sequence[str] = ("train", "dev")
) -> dict[str, list[Doc]]:
    """RETURNS (dict[str, list[Doc]]): the sentences of the splits, of "train" so many at most."""
    vocab = Vocab()
    return {
        split: [*DocBin().from_disk(corpora / task / f"{split}.spacy").get_docs(vocab)][
            : n_train if split == "train" else None
        ]
        for split in splits
    }


def embed(embedder: Embedder, docs: Sequence[Doc]) -> list[NDArray]:
    """RETURNS (list[NDArray]): all layers of each token side by side, float16, shape
    (n_tokens, n_layers * width) for each sentence."""
    arrays = embedder.embed([[token.text for token in doc] for doc in docs])
    return [a.transpose(1, 0, 2).reshape(a.shape[1], -1).astype("float16") for a in arrays]


def read_table(path: Path) -> dict[str, NDArray]:
    """RETURNS (dict[str, NDArray]): static vectors by word."""
    words, vectors = read_static_vectors(path)
    return dict(zip(words, vectors, strict=True))


def add_vectors(
    inputs: list[NDArray], docs: Sequence[Doc], table: dict[str, NDArray]
) -> list[NDArray]:
    """RETURNS (list[NDArray]): the inputs and the words' static vectors, zeros if none."""
    zero = np.zeros_like(next(iter(table.values())))
    return [
        np.concatenate([X, np.stack([table.get(t.text, zero) for t in doc])], axis=1).astype(
            "float16"
        )
        for X, doc in zip(inputs, docs, strict=True)
    ]


class Tagger(nn.Module):
    """A linear map of standardised inputs, a biLSTM and a linear layer."""

    def __init__(self, centre: Tensor, scale: Tensor, n_labels: int) -> None:
        super().__init__()
        self.centre, self.scale = centre, scale
        self.dropout = nn.Dropout(DROPOUT)
        self.input = nn.Linear(len(centre), INPUT)
        self.lstm = nn.LSTM(INPUT, HIDDEN, bidirectional=True, batch_first=True)
        self.linear = nn.Linear(2 * HIDDEN, n_labels)

    def forward(self, X: Tensor, lengths: list[int]) -> Tensor:
        """X (Tensor): padded, shape (n_seqs, seq_len, n_in). RETURNS (Tensor): logits, shape
        (n_seqs, seq_len, n_labels)."""
        X = self.dropout(self.input(self.dropout((X.float() - self.centre) / self.scale)))
        packed = pack_padded_sequence(X, lengths, batch_first=True, enforce_sorted=False)
        Y, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.linear(self.dropout(Y))


def fit_all(
    inputs: dict[str, list[NDArray]],
    data: dict[str, list[Doc]],
    n_updates: int,
    n_seeds: int,
) -> list[float]:
    """RETURNS (list[float]): F1 of whole entities on dev by seed, percent."""
    return [fit_and_score(inputs, data, n_updates, seed)["dev"] for seed in range(n_seeds)]


def fit_and_score(
    inputs: dict[str, list[NDArray]], data: dict[str, list[Doc]], n_updates: int, seed: int
) -> dict[str, float]:
    """RETURNS (dict[str, float]): F1 of whole entities, percent, of each split but "train"."""
    labels = sorted({tag for doc in data["train"] for tag in get_tags(doc)})
    flat = np.concatenate(inputs["train"]).astype("float32")
    centre, scale = flat.mean(axis=0), flat.std(axis=0) + 1e-3
    torch.manual_seed(seed)
    tagger = Tagger(torch.from_numpy(centre), torch.from_numpy(scale), len(labels))
    fit(tagger, inputs["train"], data["train"], labels, n_updates)
    return {
        split: score(predict(tagger, inputs[split], labels), docs)
        for split, docs in data.items()
        if split != "train"
    }


def fit(
    tagger: Tagger,
    inputs: list[NDArray],
    docs: list[Doc],
    labels: list[str],
    n_updates: int,
) -> None:
    """Train with a rate that falls to zero, so that no step has to be chosen."""
    ids = {label: i for i, label in enumerate(labels)}
    optimizer = torch.optim.Adam(tagger.parameters(), lr=LEARN_RATE)
    order: list[int] = []
    for update in range(n_updates):
        if len(order) < BATCH:
            order += torch.randperm(len(inputs)).tolist()
        batch, order = order[:BATCH], order[BATCH:]
        lengths = [len(inputs[i]) for i in batch]
        X = nn.utils.rnn.pad_sequence([torch.from_numpy(inputs[i]) for i in batch], True)
        targets = [torch.tensor([ids[tag] for tag in get_tags(docs[i])]) for i in batch]
        Y = nn.utils.rnn.pad_sequence(targets, True, -100)
        loss = nn.functional.cross_entropy(tagger(X, lengths).flatten(0, 1), Y.flatten())
        optimizer.param_groups[0]["lr"] = LEARN_RATE * (1 - update / n_updates)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(tagger.parameters(), 1.0)
        optimizer.step()


@torch.no_grad()
def predict(tagger: Tagger, inputs: list[NDArray], labels: list[str]) -> list[list[str]]:
    """RETURNS (list[list[str]]): a tag for each token."""
    tagger.eval()
    found = []
    for X in inputs:
        best = tagger(torch.from_numpy(X)[None], [len(X)])[0].argmax(dim=1)
        found.append([labels[i] for i in best])
    return found


def get_tags(doc: Doc) -> list[str]:
    """RETURNS (list[str]): BIO tags of the entities."""
    return [f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in doc]


def score(predicted: list[list[str]], docs: list[Doc]) -> float:
    """RETURNS (float): F1 of whole entities, percent."""
    n_right = n_predicted = n_gold = 0
    for tags, doc in zip(predicted, docs, strict=True):
        guessed = {*read_tags(tags)}
        right = {LabelledSpan(ent.start, ent.end, ent.label_) for ent in doc.ents}
        n_right += len(guessed & right)
        n_predicted += len(guessed)
        n_gold += len(right)
    return 200 * n_right / max(1, n_predicted + n_gold)


def format_line(found: dict[str, Any]) -> str:
    """RETURNS (str): the figures of a checkpoint."""
    parts = [f"{found['name']}: perplexity {found['perplexity']:.1f}"]
    parts.append("xpos " + " ".join(f"{value:.2f}" for value in found["xpos"]))
    for task in ENTITIES:
        for key in (task, f"{task}_vectors"):
            if key in found:
                parts.append(f"{key} {show_mean(found[key])}")
    return ", ".join(parts)


if __name__ == "__main__":
    typer.run(main)
