"""Read WordNet (extra "senses") as an inventory.

nltk imports scikit-learn and pandas, so only commands import this file, not the component.
"""

import io
import warnings
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Dict, List, Tuple

from ..errors import Errors
from .inventory import PARTS_OF_SPEECH, Inventory

try:
    import nltk
    from nltk.corpus.reader import WordNetCorpusReader
except ImportError:
    nltk = None
    WordNetCorpusReader = object

_EXCEPTIONS = {"n": "noun.exc", "v": "verb.exc", "a": "adj.exc", "r": "adv.exc"}
_N_LEXICOGRAPHER_FILES = 45


def require_wordnet(folder: Path) -> None:
    """Check that nltk is there, and that a folder has data.noun and so on."""
    if nltk is None:
        raise ValueError(Errors.EL038.format(purpose="WordNet", package="nltk", extra="senses"))
    if not (folder / "data.noun").is_file():
        error = "it has no data.noun; give the folder dict of WordNet"
        raise ValueError(Errors.EL103.format(path=folder, error=error))


def read_wordnet(folder: Path) -> Inventory:
    """Read all lemmas, senses, glosses and irregular forms of WordNet's folder."""
    require_wordnet(folder)
    # Newer versions of nltk only open files in known folders.
    nltk.data.path.append(str(folder.resolve()))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The multilingual functions", UserWarning)
            with ExitStack() as streams:
                return _make_inventory(_Reader(str(folder.resolve()), streams))
    except Exception as err:  # nltk's reader raises errors of all kinds
        error = f"{type(err).__name__}: {err}"
        raise ValueError(Errors.EL103.format(path=folder, error=error)) from err
    finally:
        nltk.data.path.remove(str(folder.resolve()))


def _make_inventory(reader: Any) -> Inventory:
    senses: Dict[str, List[Tuple[str, int]]] = {}
    glosses: Dict[str, str] = {}
    exceptions: Dict[str, List[str]] = {}
    for pos in PARTS_OF_SPEECH:
        for name in reader.all_lemma_names(pos):
            # A dict: satellite adjectives are listed twice.
            lemmas_by_key = {lemma.key(): lemma for lemma in reader.lemmas(name, pos)}
            senses[f"{name}|{pos}"] = [(key, lemma.count()) for key, lemma in lemmas_by_key.items()]
            glosses.update(
                (key, lemma.synset().definition()) for key, lemma in lemmas_by_key.items()
            )
        with reader.open(_EXCEPTIONS[pos]) as lines:
            for line in lines:
                form, *lemmas = line.split()
                exceptions[f"{form}|{pos}"] = lemmas
    endings = {pos: list(reader.MORPHOLOGICAL_SUBSTITUTIONS[pos]) for pos in PARTS_OF_SPEECH}
    return Inventory(senses, glosses, exceptions, endings)


class _Reader(WordNetCorpusReader):
    """Reads WordNet alone, of any version, from a folder that may lack the names of the
    lexicographer files (they are in no sense key, only their numbers are)."""

    def __init__(self, root: str, streams: ExitStack) -> None:
        # The base class leaves them open.
        self._streams = streams
        super().__init__(root, None)

    def open(self, file: str) -> Any:
        if file == "lexnames":
            names = (f"{i:02} {i:02} 0\n" for i in range(_N_LEXICOGRAPHER_FILES))
            return io.StringIO("".join(names))
        return self._streams.enter_context(closing(super().open(file)))

    def map_wn(self, version: str = "wordnet") -> None:
        """Do nothing: no other version is needed."""
