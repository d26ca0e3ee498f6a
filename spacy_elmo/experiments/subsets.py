"""The files of a training corpus, and parts of them."""

import random
import shutil
from pathlib import Path
from typing import Dict

import spacy
from spacy.tokens import DocBin

from ..errors import Errors
from ..files import write_file
from ..text.docbins import load_docbin

_SPLITS = ("train", "dev", "test")


def find_splits(corpus: Path) -> Dict[str, Path]:
    """corpus (Path): a folder. RETURNS (Dict[str, Path]): files of "train", "dev" and, if
    there is one, "test". RAISES (ValueError): EL066 if one of the first two is missing."""
    paths = {split: corpus / f"{split}.spacy" for split in _SPLITS}
    for split in ("train", "dev"):
        if not paths[split].is_file():
            raise ValueError(Errors.EL066.format(path=paths[split]))
    return {split: path for split, path in paths.items() if path.is_file()}


def find_further(corpus: Path) -> Dict[str, Path]:
    """corpus (Path): a folder. RETURNS (Dict[str, Path]): its other .spacy files, by name: further
    test sets, such as of another domain. Hidden ones are left out: systems write such beside
    files that are copied."""
    paths = {path.stem: path for path in sorted(corpus.glob("[!.]*.spacy")) if path.is_file()}
    return {name: path for name, path in paths.items() if name not in _SPLITS}


def read_docs(path: Path) -> DocBin:
    """path (Path): a .spacy file. RETURNS (DocBin): its docs, at least one. RAISES
    (ValueError): EL148 if there is none, or the file cannot be read."""
    try:
        docs = load_docbin(path)
    except Exception as err:  # msgpack, NumPy and spaCy each have their own
        raise ValueError(Errors.EL148.format(path=path, error=err)) from err
    if len(docs) == 0:
        raise ValueError(Errors.EL148.format(path=path, error="it has no docs"))
    return docs


def write_subset(source: Path, path: Path, share: float, seed: int) -> int:
    """Write a random share of a file's docs. Of one seed, a smaller share lies inside a
    larger one.

    source (Path): a .spacy file.
    path (Path): file to write.
    share (float): above 0 and at most 1; at least one doc is written.
    seed (int): of the choice.
    RETURNS (int): docs written.
    RAISES (ValueError): EL148 as `read_docs`.
    """
    docs = read_docs(source)
    if share >= 1:
        shutil.copyfile(source, path)
        return len(docs)
    order = random.Random(seed).sample(range(len(docs)), len(docs))
    chosen = sorted(order[: max(1, round(share * len(docs)))])
    kept = list(docs.get_docs(spacy.blank("xx").vocab))
    # A DocBin that was read has them, and does not say so.
    has_user_data = any(data is not None for data in docs.user_data)
    part = DocBin(attrs=docs.attrs, store_user_data=has_user_data)
    for i in chosen:
        part.add(kept[i])
    write_file(path, part.to_bytes())
    return len(part)
