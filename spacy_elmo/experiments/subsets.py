"""Parts of a training corpus."""

import random
import shutil
from pathlib import Path

import spacy
from spacy.tokens import DocBin

from ..util.atomic import write_file


def write_subset(source: Path, path: Path, share: float, seed: int) -> int:
    """Write a random share of a file's docs. Of one seed, a smaller share lies inside a
    larger one.

    source (Path): a .spacy file.
    path (Path): file to write.
    share (float): above 0 and at most 1; at least one doc is written.
    seed (int): of the choice.
    RETURNS (int): docs written.
    """
    docs = DocBin().from_disk(source)
    if share >= 1:
        shutil.copyfile(source, path)
        return len(docs)
    order = random.Random(seed).sample(range(len(docs)), len(docs))
    chosen = sorted(order[: max(1, round(share * len(docs)))])
    kept = list(docs.get_docs(spacy.blank("xx").vocab))
    part = DocBin(attrs=docs.attrs, store_user_data=docs.store_user_data)
    for i in chosen:
        part.add(kept[i])
    write_file(path, part.to_bytes())
    return len(part)
