"""Parts of spaCy for a language: tokenizers and static vectors."""

import pkgutil
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import numpy as np
import spacy.lang
from numpy.typing import NDArray
from spacy.util import get_lang_class, registry
from spacy.vectors import Mode, Vectors
from spacy.vocab import Vocab
from thinc.util import to_numpy

from ..errors import Errors
from ..utils import show_reason

# The default for any language; it needs no other package.
TOKENIZER = {"@tokenizers": "spacy.Tokenizer.v1"}


def require_language(lang: str) -> None:
    """RAISES (ValueError): EL161 if neither spaCy nor another package has this language."""
    builtin = [module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg]
    known = {*builtin, *registry.languages.get_all()}
    if lang not in known:
        raise ValueError(Errors.EL161.format(lang=lang, known=", ".join(sorted(known))))


def is_tokenizer_block(block: Any) -> bool:
    """Whether a value from a file names a tokenizer with plain settings, and nothing else of
    spaCy's registries."""
    return isinstance(block, dict) and all(
        (key == "@tokenizers" or not key.startswith("@"))
        and (value is None or isinstance(value, (str, int, float)))
        for key, value in block.items()
    )


def make_tokenizer(lang: str, block: Dict[str, Any]) -> Any:
    """Make the tokenizer, str -> Doc, that a pipeline with this language and [nlp.tokenizer]
    (empty: the language's default) has. RAISES (ValueError): EL161 for an unknown language, EL089
    if the tokenizer cannot be made, such as without a package that it needs."""
    require_language(lang)
    try:
        cls = get_lang_class(lang)
        nlp = cls.from_config({"nlp": {"tokenizer": block}}) if block else cls()
    except Exception as err:  # tokenizers of other packages raise anything
        raise ValueError(Errors.EL089.format(lang=lang, error=err)) from err
    return nlp.tokenizer


class StaticVectors(NamedTuple):
    """Words and their vectors."""

    words: List[str]  # distinct
    vectors: NDArray  # shape (n_words, width), float32


def read_static_vectors(path: Path) -> StaticVectors:
    """Read the vectors of a pipeline, as `spacy init vectors` writes it, from its folder or the
    vocab folder in it. RAISES (ValueError): EL087 without vectors."""
    # Without the pipeline: its components are not needed.
    folder = path / "vocab" if (path / "config.cfg").exists() else path
    try:
        vocab = Vocab().from_disk(folder)
        words = [vocab.strings[key] for key in vocab.vectors.key2row]
        data = to_numpy(vocab.vectors.data)
        vectors = np.asarray(data, dtype="float32")[find_rows(vocab.vectors)]
        if vocab.vectors.mode == Mode.floret:
            raise ValueError("they are floret vectors, of parts of words")
        if not vectors.size:
            raise ValueError("the table is empty")
        if not np.isfinite(vectors).all():
            raise ValueError("some numbers are NaN or infinite")
    except Exception as err:  # files of another kind fail anywhere
        raise ValueError(Errors.EL087.format(path=path, problem=show_reason(err))) from err
    return StaticVectors(words, vectors)


def find_rows(vectors: Vectors) -> NDArray:
    """Read the row of each word, int32, shape (n_words,). A row below 0, which NumPy would count
    from the end, is a ValueError."""
    rows = np.fromiter(vectors.key2row.values(), dtype=np.int32)
    if rows.size and rows.min() < 0:
        raise ValueError("a row has a number below 0")
    return rows
