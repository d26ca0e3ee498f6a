"""The content of an index's files: sentences, and the fitted parts of their encoder."""

import json
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .index_files import damaged, get_path, map_npy, to_npy, write_content
from .index_meta import IndexMeta, Part
from .sentence_encoder import SentenceEncoder, Transform


def to_jsonl(sentences: Iterable[Sequence[str]]) -> bytes:
    """sentences (Iterable[Sequence[str]]): words of each. RETURNS (bytes): a line for each."""
    lines = (json.dumps(list(words), ensure_ascii=False) for words in sentences)
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def read_sentences(folder: Path, part: Part, *, start: int = 0) -> Iterator[List[str]]:
    """Read the sentences of a source.

    folder (Path): of the index.
    part (Part): the source; its file was checked.
    start (int): the first to read; the lines before it are passed over, not parsed.
    YIELDS (List[str]): words of each.
    RAISES (ValueError): EL140 if there are more or fewer, or other things than words.
    RAISES (FileNotFoundError): if the file is gone.
    """
    path = get_path(folder, "words", part.words)
    n_read = start
    with path.open("rb") as lines:
        for line in islice(lines, start, None):
            n_read += 1
            yield _parse(line, path)
    if n_read != part.n_sentences:
        counts = f"{n_read}, expected {part.n_sentences}"
        raise damaged(folder, f"sentences of {path.name}: {counts}")


def _parse(line: bytes, path: Path) -> List[str]:
    try:
        words: Any = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as err:
        raise damaged(path.parent, f"{path.name}: {err}") from err
    if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
        raise damaged(path.parent, f"{path.name} holds something else than lists of words")
    return words


def read_sentence(folder: Path, part: Part, row: int) -> List[str]:
    """row (int): from 0. RETURNS (List[str]): the words of a sentence. RAISES: as
    `read_sentences`."""
    for words in read_sentences(folder, part, start=row):
        return words
    raise damaged(folder, f"it has no sentence {row + 1} of '{part.source}'")


def write_encoder(folder: Path, encoder: SentenceEncoder) -> Tuple[Optional[str], Optional[str]]:
    """folder (Path): of the index. encoder (SentenceEncoder): fitted, or not. RETURNS
    (Tuple[Optional[str], Optional[str]]): digests of its transform and of its counts.
    RAISES (OSError): if they cannot be written."""
    transform = counts = None
    if encoder.transform is not None:
        centre, matrix = encoder.transform
        X = np.concatenate([centre[None], matrix]).astype("<f8")
        transform = write_content(folder, "transform", to_npy(X))
    if encoder.counts is not None:
        content = json.dumps(encoder.counts, ensure_ascii=False)
        counts = write_content(folder, "counts", [content.encode("utf-8", "surrogatepass")])
    return transform, counts


def read_encoder(folder: Path, meta: IndexMeta, encoder: SentenceEncoder) -> SentenceEncoder:
    """Read the encoder of an index.

    folder (Path): of the index; its files were checked.
    meta (IndexMeta): content of index.json.
    encoder (SentenceEncoder): any of the same biLM.
    RETURNS (SentenceEncoder): the one that encoded its sentences.
    RAISES (ValueError): EL140 for other content.
    RAISES (FileNotFoundError): if a file is gone.
    """
    transform, counts = None, None
    width = encoder.embedder.bilm.config.width
    if meta.transform is not None:
        path = get_path(folder, "transform", meta.transform)
        X = np.array(map_npy(path, "<f8", 1 + width, width))
        if not np.isfinite(X).all():
            raise damaged(folder, f"{path.name} holds something else than numbers")
        transform = Transform(X[0], X[1:])
    if meta.counts is not None:
        counts = _read_counts(get_path(folder, "counts", meta.counts))
    return SentenceEncoder(encoder.embedder, meta.layer, counts, transform)


def _read_counts(path: Path) -> Dict[str, int]:
    content = path.read_bytes()
    try:
        counts: Any = json.loads(content.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as err:
        raise damaged(path.parent, f"{path.name}: {err}") from err
    values = counts.values() if isinstance(counts, dict) else [0]
    if not all(type(value) is int and value > 0 for value in values):
        raise damaged(path.parent, f"{path.name} holds something else than counts of words")
    return counts
