"""A small corpus: the preset of Kim et al. 2016 against a word-level LSTM of the same size.

Both read the same words in the same order (lines, the state carried on), with the same
vocabulary, optimizer, schedule, dropout and number of steps, and predict them forward;
both are scored exactly, with the state carried across lines. The word model is torch's
own nn.LSTM; it learns the forward direction alone, ours both.
"""

import itertools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import spacy
import torch
import typer
from common import describe_machine, print_table
from spacy.language import Language
from spacy.tokens import Doc
from torch import Tensor, nn

from spacy_elmo.language_model.evaluation import evaluate_checkpoint
from spacy_elmo.language_model.vocabulary import Vocabulary
from spacy_elmo.pretraining.config import RunConfig
from spacy_elmo.pretraining.config_files import load_config, make_pretraining_config
from spacy_elmo.pretraining.prepare import make_shape
from spacy_elmo.pretraining.run import pretrain
from spacy_elmo.text.cutting import split_words

# Lines stay whole.
MAX_TOKENS = 10_000
N_TOKENS = {"train": 930_000, "dev": 74_000, "test": 82_000}  # as the Penn Treebank's


@spacy.registry.tokenizers("benchmark.SplitAtSpaces")
def make_splitter() -> Callable[[Language], Callable[[str], Doc]]:
    """RETURNS: makes a tokenizer for text that is tokenized."""

    def make(nlp: Language) -> Callable[[str], Doc]:
        return lambda text: Doc(nlp.vocab, words=text.split())

    return make


def write_text(source: Path, folder: Path) -> None:
    """Write train, dev and test: lower case, numbers as N, tokens with spaces between."""
    tokenizer = spacy.blank("en").tokenizer
    with source.open(encoding="utf-8") as file:
        lines = iter(file)
        for split, n_tokens in N_TOKENS.items():
            written: list[str] = []
            while n_tokens > 0:
                words = split_words(tokenizer, next(lines).strip().lower())
                words = ["N" if re.fullmatch(r"[\d.,]*\d[\d.,]*", w) else w for w in words]
                if words:
                    written.append(" ".join(words))
                    n_tokens -= len(words)
            (folder / split).mkdir(parents=True, exist_ok=True)
            (folder / split / "text.txt").write_text("\n".join(written), encoding="utf-8")


class WordLM(nn.Module):
    """An LSTM language model over words, forward."""

    def __init__(self, n_words: int, width: int, depth: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, width)
        self.lstm = nn.LSTM(width, width, depth, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.softmax = nn.Linear(width, n_words)
        nn.init.normal_(self.embedding.weight, std=0.05)

    def forward(
        self, words: Tensor, state: "tuple[Tensor, Tensor] | None"
    ) -> "tuple[Tensor, tuple[Tensor, Tensor]]":
        """words: (n_steps, n_rows). RETURNS: logits (n_steps, n_rows, n_words), state."""
        Y, state = self.lstm(self.dropout(self.embedding(words)), state)
        return self.softmax(self.dropout(Y)), state


def main(
    source: Path = typer.Argument(..., help="wikinews-en.txt"),
    work: Path = typer.Argument(..., help="Folder for text and runs; ours go on where they were"),
    preset: str = typer.Option("kim_5m", help="kim_5m or kim_19m"),
    epochs: float = typer.Option(0.0, help="0: the preset's"),
    precision: str = typer.Option("fp32", help="Of our products; the word model's are fp32"),
) -> None:
    """Train both and print their test perplexities."""
    print(describe_machine())
    if not (work / "text" / "test").exists():
        write_text(source, work / "text")
    config_path = work / f"{preset}.cfg"
    config = make_pretraining_config(preset)
    config["nlp"] = {"lang": "xx", "tokenizer": {"@tokenizers": "benchmark.SplitAtSpaces"}}
    config["corpus"]["max_tokens"] = MAX_TOKENS
    config["paths"].update({"train": str(work / "text/train"), "dev": str(work / "text/dev")})
    config["training"].update({"eval_sequences": 500, "precision": precision})
    if epochs:
        config["training"]["max_epochs"] = epochs
    config.to_disk(config_path, interpolate=False)
    checked = load_config(config_path)
    output = work / f"{preset}_{precision}"

    def report(line: object, total: int) -> None:
        print("ours", line, total, flush=True)

    progress = pretrain(checked, output, resume=True, on_report=report)
    ours = evaluate_checkpoint(
        output / "model-last",
        str(work / "text/test"),
        cut="lines",
        stream=True,
        max_tokens=MAX_TOKENS,
        limit=0,
    )
    theirs, n_parameters = train_word_model(RunConfig.check(checked), output, progress.step, work)
    rows = [
        [preset, f"{ours['forward']:.1f}", f"{ours['backward']:.1f}"],
        [f"nn.LSTM over words, {n_parameters / 1e6:.1f} M", f"{theirs:.1f}", ""],
    ]
    print_table(["model", "test perplexity, forward", "backward"], rows)


def read_lines(folder: Path) -> list[list[str]]:
    """RETURNS (list[list[str]]): words of each line."""
    text = (folder / "text.txt").read_text("utf-8")
    return [line.split(" ") for line in text.splitlines()]


def train_word_model(
    config: RunConfig, output: Path, n_steps: int, work: Path
) -> "tuple[float, int]":
    """RETURNS: test perplexity, and the number of parameters."""
    t = config.training
    vocabulary = Vocabulary((output / "vocab.txt").read_text("utf-8").splitlines())
    depth = config.bilm["depth"]
    # As many parameters as our forward direction has, in the same depth.
    target = count_forward(config, vocabulary)
    width = min(
        range(50, 1500, 2),
        key=lambda w: abs(2 * len(vocabulary) * w + depth * 8 * w * w - target),
    )
    torch.manual_seed(t.seed)
    model = WordLM(len(vocabulary), width, depth, t.dropout)
    n_parameters = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.Adam(model.parameters())
    lines = read_lines(work / "text/train")
    n_rows = t.batch_tokens // t.state_steps
    ids = [i for words in lines for i in (*vocabulary.encode(words), 1)]
    length = len(ids) // n_rows
    data = torch.tensor(ids[: n_rows * length]).reshape(n_rows, length).t()
    state = None
    starts = itertools.cycle(range(0, length - 1, t.state_steps))
    for step, start in enumerate(itertools.islice(starts, n_steps)):
        if start == 0:
            state = None
        model.train()
        words = data[start : start + t.state_steps]
        targets = data[start + 1 : start + 1 + t.state_steps]
        logits, state = model(words[: len(targets)], state)
        state = (state[0].detach(), state[1].detach())
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.param_groups[0]["lr"] = t.learn_rate * t.learn_rate_factor(step, n_steps)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), t.clip)
        optimizer.step()
        if step % 100 == 0:
            print("words", step, json.dumps(math.exp(loss.item())), flush=True)
    return score_word_model(model, vocabulary, read_lines(work / "text/test")), n_parameters


def count_forward(config: RunConfig, vocabulary: Vocabulary) -> int:
    """RETURNS (int): parameters of our forward direction with the softmax."""
    from spacy_elmo.bilm.model import BiLM

    bilm = BiLM(make_shape(config.bilm, len(vocabulary)))
    n = sum(p.numel() for p in bilm.parameters())
    n -= sum(p.numel() for p in bilm.backward_lstm.parameters())
    return n + len(vocabulary) * (bilm.config.direction_width + 1)


@torch.no_grad()
def score_word_model(model: WordLM, vocabulary: Vocabulary, lines: list[list[str]]) -> float:
    """RETURNS (float): exact perplexity, the end of each line counted."""
    model.eval()
    # A line's end is read too, so that nothing but the begin of the text is unknown.
    ids = torch.tensor([1, *(i for words in lines for i in (*vocabulary.encode(words), 1))])
    state, nats = None, 0.0
    for start in range(0, len(ids) - 1, 500):
        words, targets = ids[start : start + 500], ids[start + 1 : start + 501]
        logits, state = model(words[: len(targets), None], state)
        nats += float(nn.functional.cross_entropy(logits[:, 0], targets, reduction="sum"))
    return math.exp(nats / (len(ids) - 1))


if __name__ == "__main__":
    typer.run(main)
