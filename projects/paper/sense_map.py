"""A map of a word's contexts, coloured by their senses: ELMo beside the word alone."""

import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from spacy_elmo.checkpoints.loaders import load_embedder
from spacy_elmo.experiments.results import get_effort, write_result
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.senses.annotated import SenseSentence, read_sentences
from spacy_elmo.senses.wordnet import read_wordnet
from spacy_elmo.utils import normalise

# Perplexity of t-SNE: about the number of neighbours that count.
_PERPLEXITY = 30.0


class Use(NamedTuple):
    """words (list[str]): a sentence. position (int): of the word. sense (str): its key."""

    words: list[str]
    position: int
    sense: str


def main(
    corpus: Path = typer.Argument(..., help="Sense-annotated sentences (.jsonl)"),
    wordnet: Path = typer.Argument(..., help="WordNet's folder dict"),
    output: Path = typer.Argument(..., help="Folder for a JSON file of each word"),
    lemmas: str = typer.Option(..., help="The words; with commas"),
    pos: str = typer.Option("n", help="Their part of speech: n, v, a or r"),
    least: int = typer.Option(10, help="Contexts of a sense that is shown"),
    weights: str = typer.Option("", help="Folder of a biLM; the bundled one if left out"),
) -> None:
    """Write the maps, and how often the nearest other context has the same sense, by layer."""
    glosses = read_wordnet(wordnet).glosses
    sentences = list(read_sentences(corpus))
    embedder = load_embedder(weights or "en_small")
    for lemma in lemmas.split(","):
        start = time.perf_counter()
        uses = find_uses(sentences, lemma, pos, least)
        report = {"lemma": lemma, **make_map(embedder, uses, glosses)}
        report.update(get_effort(start, embedder.hash_weights()))
        write_result(output / f"sense_map_{lemma}.json", "sense_map", f"{lemma}, in SemCor", report)
        print(f"{lemma}: {len(uses)} contexts of {len(report['senses'])} senses")


def make_map(embedder: Embedder, uses: list[Use], glosses: dict[str, str]) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): what `plot_senses` draws; "neighbors", shares by layer; and
    "most_frequent", the share of the most frequent sense."""
    arrays = embedder.embed([use.words for use in uses])
    # (n_layers, n_uses, width), each vector of length 1
    layers = normalise(np.stack([X[:, use.position] for X, use in zip(arrays, uses)], axis=1))
    senses = [use.sense for use in uses]
    counts = Counter(senses).most_common()
    places = {key: i for i, (key, _) in enumerate(counts)}
    shares = [share_of_neighbors(X, senses) for X in layers]
    # Which layer: the LSTM layer where neighbours agree most.
    layer = int(np.argmax(shares[1:])) + 1
    perplexity = min(_PERPLEXITY, len(uses) / 4)
    tsne = TSNE(metric="cosine", init="pca", random_state=0, perplexity=perplexity)
    return {
        "senses": [{"gloss": glosses.get(key, key), "count": count} for key, count in counts],
        "layer": layer,
        "points": tsne.fit_transform(layers[layer]).tolist(),
        "sense_of_point": [places[sense] for sense in senses],
        "neighbors": shares,
        "most_frequent": counts[0][1] / len(senses),
    }


def find_uses(sentences: list[SenseSentence], lemma: str, pos: str, least: int) -> list[Use]:
    """RETURNS (list[Use]): in the sentences, of senses with enough contexts."""
    uses = [
        Use(sentence.words, instance.start, instance.keys[0])
        for sentence in sentences
        for instance in sentence.instances
        if (instance.lemma, instance.pos) == (lemma, pos) and instance.end == instance.start + 1
    ]
    counts = Counter(use.sense for use in uses)
    kept = [use for use in uses if counts[use.sense] >= least]
    if len({use.sense for use in kept}) < 2:
        raise typer.BadParameter(f"{lemma!r} has no two senses with {least} contexts")
    return kept


def share_of_neighbors(X: NDArray, senses: list[str]) -> float:
    """X (NDArray): shape (n_uses, width). RETURNS (float): how many have a nearest other
    context of the same sense."""
    neighbors = NearestNeighbors(n_neighbors=2, metric="cosine").fit(X)
    # The first is the context itself, or an equal one.
    places = neighbors.kneighbors(X, return_distance=False)  # (n_uses, 2)
    others = [pair[pair != i][0] for i, pair in enumerate(places)]
    return float(np.mean([senses[i] == senses[j] for i, j in enumerate(others)]))


if __name__ == "__main__":
    typer.run(main)
