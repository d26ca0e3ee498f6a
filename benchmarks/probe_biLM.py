"""What a biLM knows, in a few minutes: the probes by which recipes of pretraining are chosen.

Held-out perplexity in a fixed vocabulary, a linear classifier of parts of speech on each layer,
and entities by one small biLSTM on all layers: on three sets, so that nothing is tuned to one.
Everything is frozen and of dev: no test split is read.
"""

import lzma
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import numpy as np
import srsly
import torch
import typer
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import biluo_tags_to_spans, iob_to_biluo
from spacy.vocab import Vocab
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spacy_elmo.checkpoints.loaders import load_embedder
from spacy_elmo.experiments.layer_probe import probe_layers
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.language_model.evaluation import evaluate_checkpoint
from spacy_elmo.text.static_vectors import read_static_vectors

TAGS = "pos-dep/ud_english_ewt/en_ewt-ud-{split}.conllu"
# Name -> file, columns of word and tag.
ENTITIES = {
    "wnut17": (
        {"train": "ner/wnut17/wnut17train.conll", "dev": "ner/wnut17/emerging.dev.conll"},
        0,
    ),
    "gum": ({split: f"ner/gum_named/gum-named-{split}.conll" for split in ("train", "dev")}, 0),
    "uner_ewt": ({s: f"ner/uner_ewt/en_ewt-ud-{s}.iob2" for s in ("train", "dev")}, 1),
}
# What the tagger maps its inputs to, and cells of a direction.
INPUT, HIDDEN = 128, 100
DROPOUT = 0.5
LEARN_RATE = 0.002
BATCH = 32

Sentence = tuple[list[str], list[str]]
Span = tuple[int, int, str]


def main(
    checkpoint: Path = typer.Argument(..., help="Folder with a biLM, and its softmax"),
    tasks: Path = typer.Option(Path("../shared/data/tasks"), help="Folder with the task data"),
    heldout: Path = typer.Option(..., help="Folder with held-out text"),
    vocab: Path = typer.Option(..., help="File with the words to score"),
    vectors: Path = typer.Option(None, help="A pipeline with static vectors to put beside"),
    sentences: int = typer.Option(2000, help="Held-out sentences to score"),
    train_sentences: int = typer.Option(6000, help="Most training sentences of a task"),
    updates: int = typer.Option(800, help="Of the biLSTM, by 32 sentences"),
    seeds: int = typer.Option(3),
    name: str = typer.Option("", help="To print; the folder's if left out"),
    output: Path = typer.Option(None, help="JSON file to write"),
) -> None:
    """Print a line."""
    started = time.process_time()
    embedder = load_embedder(checkpoint)
    found: dict[str, Any] = {"name": name or checkpoint.parent.name, "updates": updates}
    found["operations"] = embedder.bilm.config.n_operations
    found["perplexity"] = score_text(checkpoint, heldout, vocab, sentences)
    found["xpos"] = probe_tags(embedder, tasks, train_sentences)
    table = None if vectors is None else read_table(vectors)
    for task in ENTITIES:
        data = {split: read_entities(tasks, task, split) for split in ("train", "dev")}
        data["train"] = data["train"][:train_sentences]
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


def probe_tags(embedder: Embedder, tasks: Path, n_sentences: int) -> list[float]:
    """RETURNS (list[float]): accuracy of a linear classifier on each layer, dev, percent."""
    vocab = Vocab()
    docs = {
        split: [Doc(vocab, words=words, tags=tags) for words, tags in read_tags(tasks, split)][
            : n_sentences if split == "train" else None
        ]
        for split in ("train", "dev")
    }
    layers = probe_layers(embedder, docs, "tag_", [0])["layers"]
    return [layer["dev"][0] for layer in layers]


def read_lines(path: Path) -> list[str]:
    """RETURNS (list[str]): lines of a file, or of the one of the same name with .xz."""
    packed = path.with_name(f"{path.name}.xz")
    data = lzma.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    return data.decode("utf-8").split("\n")


def read_tags(tasks: Path, split: str) -> Iterator[Sentence]:
    """YIELDS (Sentence): words and XPOS tags."""
    rows: list[list[str]] = []
    for line in read_lines(tasks / TAGS.format(split=split)):
        if line and line[0].isdigit():
            rows.append(line.split("\t"))
        elif not line and rows:
            words = [row for row in rows if row[0].isdigit()]
            yield [row[1] for row in words], [row[4] for row in words]
            rows = []


def read_entities(tasks: Path, task: str, split: str) -> list[Sentence]:
    """RETURNS (list[Sentence]): words and BIO tags."""
    files, column = ENTITIES[task]
    found: list[Sentence] = []
    words: list[str] = []
    tags: list[str] = []
    for line in [*read_lines(tasks / files[split]), ""]:
        cells = line.split("\t")
        if line.strip() and len(cells) > column + 1:
            words.append(cells[column])
            tags.append(cells[column + 1].strip())
        elif not line.strip() and words:
            found.append((words, tags))
            words, tags = [], []
    return found


def embed(embedder: Embedder, sentences: Sequence[Sentence]) -> list[NDArray]:
    """RETURNS (list[NDArray]): all layers of each token side by side, float16, shape
    (n_tokens, n_layers * width) for each sentence."""
    arrays = embedder.embed([words for words, _ in sentences])
    return [a.transpose(1, 0, 2).reshape(a.shape[1], -1).astype("float16") for a in arrays]


def read_table(path: Path) -> dict[str, NDArray]:
    """RETURNS (dict[str, NDArray]): static vectors by word."""
    words, vectors = read_static_vectors(path)
    return dict(zip(words, vectors, strict=True))


def add_vectors(
    inputs: list[NDArray], sentences: Sequence[Sentence], table: dict[str, NDArray]
) -> list[NDArray]:
    """RETURNS (list[NDArray]): the inputs and the words' static vectors, zeros if none."""
    zero = np.zeros_like(next(iter(table.values())))
    return [
        np.concatenate([X, np.stack([table.get(w, zero) for w in words])], axis=1).astype("float16")
        for X, (words, _) in zip(inputs, sentences, strict=True)
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
    data: dict[str, list[Sentence]],
    n_updates: int,
    n_seeds: int,
) -> list[float]:
    """RETURNS (list[float]): F1 of whole entities on dev by seed, percent."""
    labels = sorted({tag for _, tags in data["train"] for tag in tags})
    flat = np.concatenate(inputs["train"]).astype("float32")
    centre, scale = flat.mean(axis=0), flat.std(axis=0) + 1e-3
    found = []
    for seed in range(n_seeds):
        torch.manual_seed(seed)
        tagger = Tagger(torch.from_numpy(centre), torch.from_numpy(scale), len(labels))
        fit(tagger, inputs["train"], data["train"], labels, n_updates)
        found.append(score(predict(tagger, inputs["dev"], labels), data["dev"]))
    return found


def fit(
    tagger: Tagger,
    inputs: list[NDArray],
    sentences: list[Sentence],
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
        targets = [torch.tensor([ids[tag] for tag in sentences[i][1]]) for i in batch]
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


def score(predicted: list[list[str]], sentences: list[Sentence]) -> float:
    """RETURNS (float): F1 of whole entities, percent."""
    n_right = n_predicted = n_gold = 0
    for tags, (_, gold) in zip(predicted, sentences, strict=True):
        guessed, right = find_spans(tags), find_spans(gold)
        n_right += len(guessed & right)
        n_predicted += len(guessed)
        n_gold += len(right)
    return 200 * n_right / max(1, n_predicted + n_gold)


def find_spans(tags: list[str]) -> set[Span]:
    """RETURNS (set[Span]): start, end and label; an I without its B begins one."""
    doc = Doc(Vocab(), words=["x"] * len(tags))
    spans = biluo_tags_to_spans(doc, iob_to_biluo(repair(tags)))
    return {(span.start, span.end, span.label_) for span in spans}


def repair(tags: list[str]) -> list[str]:
    """RETURNS (list[str]): the same tags, each entity with a B at its start."""
    before = ["O", *tags[:-1]]
    return [
        f"B{tag[1:]}" if tag[0] == "I" and last[1:] != tag[1:] else tag
        for tag, last in zip(tags, before, strict=True)
    ]


def format_line(found: dict[str, Any]) -> str:
    """RETURNS (str): the figures of a checkpoint."""
    parts = [f"{found['name']}: perplexity {found['perplexity']:.1f}"]
    parts.append("xpos " + " ".join(f"{value:.2f}" for value in found["xpos"]))
    for task in ENTITIES:
        for key in (task, f"{task}_vectors"):
            if key in found:
                parts.append(f"{key} {mean(found[key]):.1f} ± {pstdev(found[key]):.1f}")
    return ", ".join(parts)


if __name__ == "__main__":
    typer.run(main)
