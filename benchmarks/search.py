"""Semantic search against BM25: SQuAD's questions, the paragraphs that answer them.

Settings are chosen on the first articles, and measured once on the others.
"""

import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

import bm25s
import numpy as np
import spacy
import typer

from spacy_elmo.checkpoints.loaders import load_embedder
from spacy_elmo.experiments.results import get_effort, write_result
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.search.sentence_encoder import WEIGHTINGS, SentenceEncoder, fit_transform
from spacy_elmo.text.cutting import cut_sentences, split_words
from spacy_elmo.text.text_files import open_binary

Words = List[str]
_RANKS = (1, 5, 10)


def main(
    squad: Path = typer.Argument(..., help="SQuAD's JSON, plain or .xz"),
    output: Path = typer.Argument(..., help="JSON file to write"),
    n_tune: int = typer.Option(12, help="Articles to choose settings on"),
    limit: int = typer.Option(0, help="Articles to read, 0 for all"),
    weights: str = typer.Option("", help="Folder of a biLM; the bundled one if left out"),
) -> None:
    """Rank all paragraphs of the articles for each of their questions."""
    start = time.perf_counter()
    articles = read_articles(squad)[: limit or None]
    if len(articles) <= n_tune:
        raise typer.BadParameter(f"more than {n_tune} articles are needed")
    tune, test = Data.read(articles[:n_tune]), Data.read(articles[n_tune:])
    embedder = load_embedder(weights or None)
    settings = [
        {"layer": layer, "weighting": weighting, "unit": unit}
        for layer in range(embedder.bilm.config.n_layers)
        for weighting in WEIGHTINGS
        for unit in ("sentence", "paragraph")
    ]
    tuned = [
        {**each, **tune.measure(partial(rank_elmo, embedder=embedder, **each))} for each in settings
    ]
    best = max(tuned, key=lambda row: row["mrr"])
    chosen = {key: best[key] for key in ("layer", "weighting", "unit")}
    ranked = {
        "bm25": test.measure(rank_bm25),
        "elmo": test.measure(partial(rank_elmo, embedder=embedder, **chosen)),
    }
    result = {
        "n_paragraphs": len(test.paragraphs),
        "n_questions": len(test.questions),
        "chosen": chosen,
        "tune": tuned,
        **ranked,
    }
    effort = get_effort(start, embedder.hash_weights())
    write_result(output, "search", "SQuAD 1.1, dev articles", {**result, **effort})
    for name, measured in ranked.items():
        print(name, {key: round(value, 3) for key, value in measured.items()})
    print(chosen)


def read_articles(path: Path) -> List[Any]:
    """RETURNS (List[Any]): SQuAD's articles."""
    with open_binary(path) as content:
        return json.load(content)["data"]


class Data:
    """paragraphs (List[List[Words]]): sentences of each. questions (List[Words]): each with
    the number of its paragraph in `answers`."""

    def __init__(
        self, paragraphs: List[List[Words]], questions: List[Words], answers: List[int]
    ) -> None:
        self.paragraphs = paragraphs
        self.questions = questions
        self.answers = np.array(answers)

    @classmethod
    def read(cls, articles: Sequence[Any]) -> "Data":
        """RETURNS (Data): tokenized."""
        tokenizer = spacy.blank("en").tokenizer
        paragraphs: List[List[Words]] = []
        questions: List[Words] = []
        answers: List[int] = []
        for paragraph in (p for article in articles for p in article["paragraphs"]):
            words = split_words(tokenizer, paragraph["context"])
            for question in paragraph["qas"]:
                questions.append(split_words(tokenizer, question["question"]))
                answers.append(len(paragraphs))
            paragraphs.append(list(cut_sentences(words)))
        return cls(paragraphs, questions, answers)

    def measure(self, rank: Callable[["Data"], np.ndarray]) -> Dict[str, float]:
        """rank (Callable): scores of all paragraphs, shape (n_questions, n_paragraphs).
        RETURNS (Dict[str, float]): share of questions whose paragraph is among the first
        ones, mean reciprocal rank, and seconds."""
        start = time.perf_counter()
        scores = rank(self)
        seconds = time.perf_counter() - start
        own = scores[np.arange(len(scores)), self.answers]
        # The worst place among equals.
        ranks = (scores >= own[:, None]).sum(axis=1)
        found = {f"at_{n}": float((ranks <= n).mean()) for n in _RANKS}
        return {**found, "mrr": float((1 / ranks).mean()), "seconds": seconds}


def rank_bm25(data: Data) -> np.ndarray:
    """RETURNS (np.ndarray): BM25 scores, words in lower case."""
    retriever = bm25s.BM25()
    lower = [[w.lower() for words in p for w in words] for p in data.paragraphs]
    retriever.index(lower, show_progress=False)
    return np.stack([retriever.get_scores([w.lower() for w in q]) for q in data.questions])


def rank_elmo(
    data: Data, *, embedder: Embedder, layer: int, weighting: str, unit: str
) -> np.ndarray:
    """RETURNS (np.ndarray): cosines with the paragraph, or with its nearest sentence."""
    sentences, owners = cut_units(data, unit)
    encoder = SentenceEncoder(embedder, layer)
    if weighting == "sif":
        words, counts = np.unique(
            [word.lower() for sentence in sentences for word in sentence], return_counts=True
        )
        encoder = replace(encoder, counts=dict(zip(words.tolist(), counts.tolist())))
    transform = fit_transform(encoder.average(sentences), weighting)
    encoder = replace(encoder, transform=transform)
    Q, X = encoder.encode(data.questions), encoder.encode(sentences)
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    return np.maximum.reduceat(Q @ X.T, starts, axis=1)


def cut_units(data: Data, unit: str) -> Tuple[List[Words], np.ndarray]:
    """RETURNS (Tuple[List[Words], np.ndarray]): what has a vector, and its paragraph."""
    if unit == "paragraph":
        joined = [[word for words in p for word in words] for p in data.paragraphs]
        return joined, np.arange(len(joined))
    sentences = [words for p in data.paragraphs for words in p]
    return sentences, np.repeat(np.arange(len(data.paragraphs)), [len(p) for p in data.paragraphs])


if __name__ == "__main__":
    typer.run(main)
