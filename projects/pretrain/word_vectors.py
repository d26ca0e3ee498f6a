"""Write a transformer's vectors of frequent words, each read alone, as a table of static vectors:
a teacher for the word layer (`kind = "static_vectors"`)."""

from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import spacy
import torch
import typer
from spacy.vectors import Vectors
from tqdm import tqdm

from spacy_elmo.pretraining.transformer_teacher import load_encoder
from spacy_elmo.text.corpus import cutter_maker, read_sequences
from spacy_elmo.text.languages import TOKENIZER

BATCH = 4096


def main(
    text: Path = typer.Argument(..., help="Folder with text"),
    transformer: Path = typer.Argument(..., help="Folder with a transformer"),
    output: Path = typer.Argument(..., help="Folder to write"),
    layer: int = typer.Option(2, help="Of the transformer"),
    size: int = typer.Option(250_000, help="Words"),
    every: int = typer.Option(6, help="Count one sequence of this many"),
) -> None:
    """Write a pipeline with the vectors."""
    words = count_words(text, size, every)
    encoder = load_encoder(str(transformer), layer)
    # Words of like length together: less padding.
    order = sorted(range(len(words)), key=lambda i: len(words[i]))
    table = np.zeros((len(words), encoder.width), dtype="float32")
    for start in tqdm(range(0, len(order), BATCH)):
        rows = np.array(order[start : start + BATCH])
        vectors, known = encoder.read([[words[i]] for i in rows], torch.device("cpu"))
        table[rows[known]] = vectors.numpy()
    nlp = spacy.blank("en")
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=table, keys=words)
    nlp.to_disk(output)
    print(f"{output}: {len(words)} words")


def count_words(text: Path, size: int, every: int) -> list[str]:
    """RETURNS (list[str]): the most frequent words."""
    counts: Counter[str] = Counter()
    sequences = read_sequences(str(text), cutter_maker("en", TOKENIZER))
    for sequence in tqdm(islice(sequences, 0, None, every)):
        counts.update(sequence)
    return [word for word, _ in counts.most_common(size)]


if __name__ == "__main__":
    typer.run(main)
