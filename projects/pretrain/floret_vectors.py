"""Train floret vectors on a text, the static vectors that know any word's parts: a teacher for
the word layer (`kind = "static_vectors"`), and what a biLM of the same text is compared with."""

from collections import Counter
from pathlib import Path
from typing import Optional

import floret
import numpy as np
import spacy
import typer
from spacy.training.initialize import convert_vectors
from spacy.vectors import Vectors
from tqdm import tqdm

from spacy_elmo.files import atomic_folder
from spacy_elmo.text.corpus import cutter_maker, read_sequences
from spacy_elmo.text.languages import TOKENIZER


def main(
    text: Path = typer.Argument(..., help="Folder with text"),
    output: Path = typer.Argument(..., help="Folder to write, for any word"),
    table: Optional[Path] = typer.Argument(
        None, help="Another, for the words of the text, as a teacher reads"
    ),
    lang: str = typer.Option("en", help="Language code"),
    epochs: int = typer.Option(10, help="Passes over the text"),
    dim: int = typer.Option(300, help="Width"),
    minn: int = typer.Option(2, help="Characters of the shortest parts"),
    maxn: int = typer.Option(3, help="Characters of the longest parts"),
    min_count: int = typer.Option(5, help="Of words that are learned as a whole"),
    bucket: int = typer.Option(50_000, help="Rows of the table"),
) -> None:
    """Write a pipeline with the vectors, and perhaps one with those of the text's words alone."""
    counts: Counter[str] = Counter()
    with atomic_folder(output) as folder:
        sentences = folder / "text.txt"
        with sentences.open("w", encoding="utf-8") as file:
            for words in tqdm(read_sequences(str(text), cutter_maker(lang, TOKENIZER))):
                counts.update(words)
                file.write(f"{' '.join(words)}\n")
        # As spaCy's own: words and parts share one table, at two places each.
        model = floret.train_unsupervised(
            str(sentences),
            model="cbow",
            mode="floret",
            hashCount=2,
            neg=10,
            lr=0.05,
            thread=1,
            epoch=epochs,
            dim=dim,
            minn=minn,
            maxn=maxn,
            minCount=min_count,
            bucket=bucket,
        )
        saved = folder / "vectors.floret"
        model.save_floret_vectors(str(saved))
        # Not `spacy init vectors`, which makes the language's own tokenizer: in Korean it needs
        # MeCab.
        nlp = spacy.blank(lang, config={"nlp": {"tokenizer": TOKENIZER}})
        convert_vectors(nlp, saved, truncate=0, prune=0, mode="floret")
        saved.unlink()
        sentences.unlink()
        nlp.to_disk(folder)
    if table is None:
        return
    # Of a word that came once, little is known but its parts.
    known = [word for word, count in counts.items() if count > 1]
    data = np.stack([np.asarray(nlp.vocab.get_vector(word)) for word in known])
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=known)
    with atomic_folder(table) as folder:
        nlp.to_disk(folder)


if __name__ == "__main__":
    typer.run(main)
