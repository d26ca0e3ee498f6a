"""`IndexMeta`: the content of index.json, which is checked before it is used."""

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

from ..errors import Errors
from ..files import read_checked_json, write_checked_json
from ..text.corpus import TOKENIZER, is_tokenizer_block
from .backends import BACKENDS
from .index_files import META_FILE, damaged, get_name
from .sentence_encoder import WEIGHTINGS

# 2 has no tokenizer: it was always this one.
_VERSION, _FORMER = 3, 2
_DIGEST = re.compile("[0-9a-f]{32}")
_LANG = re.compile("[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Part:
    """A source in the index.

    source (str): what it is called.
    origin (Optional[str]): digest of its file, if it came from one.
    n_sentences (int): at least 1.
    words (str), vectors (str): digests of the files of its sentences.
    """

    source: str
    origin: Optional[str]
    n_sentences: int
    words: str
    vectors: str


@dataclass(frozen=True)
class IndexMeta:
    """How an index was made, and which files are valid.

    layer (int): of the biLM, from 0.
    weighting (str): one of `WEIGHTINGS`.
    backend (str): one of `BACKENDS`.
    lang (str), tokenizer (Dict[str, Any]): what cuts texts and queries, see `make_tokenizer`.
    weights (str): folder of the biLM, where it was; "" for the bundled one.
    biLM (str): hash of its weights: which they are.
    transform (Optional[str]), counts (Optional[str]): digests of the encoder's files.
    n_fitted (int): sentences that the transform was fitted on; 0 if there is none.
    parts (Tuple[Part, ...]): the sources.
    """

    layer: int
    weighting: str
    backend: str
    lang: str
    tokenizer: Dict[str, Any]
    weights: str
    biLM: str
    transform: Optional[str] = None
    counts: Optional[str] = None
    n_fitted: int = 0
    parts: Tuple[Part, ...] = ()

    @property
    def n_sentences(self) -> int:
        """RETURNS (int): Of all sources."""
        return sum(part.n_sentences for part in self.parts)

    def find(self, source: str) -> Optional[Part]:
        """RETURNS (Optional[Part]): The source of that name."""
        return next((part for part in self.parts if part.source == source), None)

    def find_row(self, row: int) -> Tuple[Part, int]:
        """row (int): of the vectors of all sources. RETURNS (Tuple[Part, int]): the source,
        and the row in it."""
        for part in self.parts:
            if row < part.n_sentences:
                return part, row
            row -= part.n_sentences
        raise IndexError(row)

    def list_contents(self) -> List[Tuple[str, str]]:
        """RETURNS (List[Tuple[str, str]]): Kind and digest of each valid file."""
        encoder = [("transform", self.transform), ("counts", self.counts)]
        encoder_files = [(kind, digest) for kind, digest in encoder if digest is not None]
        sources = [(kind, getattr(p, kind)) for p in self.parts for kind in ("words", "vectors")]
        return encoder_files + sources

    def list_names(self) -> Set[str]:
        """RETURNS (Set[str]): Names of the valid files."""
        return {get_name(kind, digest) for kind, digest in self.list_contents()}

    def write(self, folder: Path) -> None:
        """folder (Path): of the index. RAISES (OSError): if it cannot be written."""
        parts = [vars(part) for part in self.parts]
        content = {"version": _VERSION, **vars(self), "parts": parts}
        write_checked_json(folder / META_FILE, content, indent=None)


def read_meta(folder: Path) -> IndexMeta:
    """Read index.json.

    folder (Path): of an index.
    RETURNS (IndexMeta): its content.
    RAISES (ValueError): EL043 if there is none, EL140 if it is damaged, or written by
        another version.
    """
    path = folder / META_FILE
    if not path.exists():
        raise ValueError(Errors.EL043.format(path=folder))
    try:
        content = read_checked_json(path, required=True)
    except ValueError as err:
        problem = f"{META_FILE} is not what was written, or of an earlier version"
        raise damaged(folder, problem) from err
    version = content.pop("version", None)
    if version == _FORMER:
        content["tokenizer"] = TOKENIZER
    elif version != _VERSION:
        raise damaged(folder, f"{META_FILE} is of another version")
    try:
        meta = _make(IndexMeta, content)
        return replace(meta, parts=tuple(_make(Part, part) for part in meta.parts))
    except (ValueError, TypeError) as err:
        raise damaged(folder, f"{META_FILE}: {err}") from err


def get_stamp(folder: Path) -> Tuple[int, ...]:
    """folder (Path): of an index. RETURNS (Tuple[int, ...]): a different one for each index.json
    that was written, even with the same content."""
    try:
        status = (folder / META_FILE).stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns


def require_lang(lang: str) -> None:
    """lang (str): a language code. RAISES (ValueError): EL017 if it is none."""
    if not _CHECKS["lang"](lang):
        known = "letters, digits, - and _, such as en"
        raise ValueError(Errors.EL017.format(key="lang", value=lang, known=known))


def _make(cls: Any, content: Dict[str, Any]) -> Any:
    names = [field.name for field in fields(cls)]
    if sorted(content) != sorted(names):
        raise ValueError(f"it has {sorted(content)}, expected {sorted(names)}")
    for name in names:
        if not _CHECKS[name](content[name]):
            raise ValueError(f"{name} = {content[name]!r} is not possible")
    return cls(**content)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 48


def _is_digest(value: Any) -> bool:
    return _is_text(value) and bool(_DIGEST.fullmatch(value))


def _is_digest_or_none(value: Any) -> bool:
    return value is None or _is_digest(value)


_CHECKS = {
    "layer": _is_count,
    "weighting": WEIGHTINGS.__contains__,
    "backend": BACKENDS.__contains__,
    "lang": lambda value: _is_text(value) and bool(_LANG.fullmatch(value)),
    "tokenizer": is_tokenizer_block,
    "weights": _is_text,
    "biLM": _is_digest,
    "n_fitted": _is_count,
    "parts": lambda value: isinstance(value, list),
    "source": _is_text,
    "origin": _is_digest_or_none,
    "n_sentences": lambda value: _is_count(value) and value > 0,
    **dict.fromkeys(("transform", "counts"), _is_digest_or_none),
    **dict.fromkeys(("words", "vectors"), _is_digest),
}
