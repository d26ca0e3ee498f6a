"""`Corpus`: all sources of a config as one stream of sequences."""

from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from spacy.util import get_lang_class

from ..errors import Errors
from .cutting import Cutter
from .languages import require_language
from .stdin import STDIN, spool_path, spool_stdin
from .texts import Chunk, TextSource
from .workers import cut_all

# For any language, with no other package: what a text is cut with unless it is said.
TOKENIZER = {"@tokenizers": "spacy.Tokenizer.v1"}


class Corpus:
    """Read sources side by side and cut their texts. The next chunk is of the source that is
    furthest behind its share of the characters.

    sources (Mapping[str, TextSource]): by their names.
    weights (Mapping[str, float]): share of the text that comes from each.
    make_cutter (Callable[[], Cutter]): makes what cuts texts; picklable.
    n_workers (int): processes that cut.
    """

    def __init__(
        self,
        sources: Mapping[str, TextSource],
        weights: Mapping[str, float],
        make_cutter: Callable[[], Cutter],
        *,
        n_workers: int = 0,
    ) -> None:
        self.sources = dict(sources)
        self.weights = {name: weights[name] for name in sources}
        self.make_cutter = make_cutter
        self.n_workers = n_workers

    def start(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): The position of the first text, in JSON's types."""
        return {
            "n_chunks": 0,
            "n_chars": dict.fromkeys(self.sources, 0),
            "sources": {name: source.start() for name, source in self.sources.items()},
        }

    def read(self, position: Dict[str, Any]) -> Iterator[Tuple[List[List[str]], Dict[str, Any]]]:
        """Read without end from a position on.

        position (Dict[str, Any]): what `start` or an earlier `read` gave.
        YIELDS (Tuple[List[List[str]], Dict[str, Any]]): sequences of words, and the
            position after them.
        RAISES (ValueError): what readers raise for damaged files.
        """
        return cut_all(self._chunks(position), self.make_cutter, self.n_workers)

    def read_once(self) -> Iterator[List[List[str]]]:
        """YIELDS (List[List[str]]): the sequences of all sources, each read once."""
        for source in self.sources.values():
            chunks = source.read(source.start(), endless=False)
            for sequences, _ in cut_all(chunks, self.make_cutter, self.n_workers):
                yield sequences

    def read_in_order(self) -> Iterator[List[List[str]]]:
        """YIELDS (List[List[str]]): the sequences of all sources, each read once, file
        after file."""
        for source in self.sources.values():
            yield from (s for s, _ in cut_all(source.read_in_order(), self.make_cutter, 0))

    def _chunks(self, position: Dict[str, Any]) -> Iterator[Tuple[Chunk, Dict[str, Any]]]:
        positions, n_chunks = dict(position["sources"]), position["n_chunks"]
        n_chars = dict(position["n_chars"])
        streams = {name: s.read(positions[name]) for name, s in self.sources.items()}
        while streams:
            name = min(streams, key=lambda name: n_chars[name] / self.weights[name])
            item = next(streams[name], None)
            if item is None:  # nothing but empty files
                raise ValueError(Errors.EL094.format(path=f"the source '{name}'"))
            chunk, positions[name] = item
            n_chars[name] += sum(len(text) + 1 for text in chunk.texts)
            # The number decides how a chunk is cut: one of all sources together.
            yield (
                Chunk(chunk.texts, n_chunks),
                {
                    "n_chunks": n_chunks + 1,
                    "n_chars": dict(n_chars),
                    "sources": dict(positions),
                },
            )
            n_chunks += 1


def open_sources(
    train: str,
    sources: Mapping[str, Mapping[str, Any]],
    run_folder: Optional[Path],
    seed: int,
    *,
    spool: bool = True,
) -> Tuple[Dict[str, TextSource], Dict[str, float]]:
    """Find the files of a corpus.

    train (str): a path, if there are no sources; "-" for the standard input.
    sources (Mapping[str, Mapping[str, Any]]): by name, each with "path" and "weight".
    run_folder (Optional[Path]): where the standard input is saved first, and whose files are
        no text else; None if there is none.
    seed (int): of the order.
    spool (bool): whether to save it; if not, it is saved already.
    RETURNS (Tuple[Dict[str, TextSource], Dict[str, float]]): sources, and their weights.
    RAISES (ValueError): EL080, EL081 or EL304 for paths, EL085 for a source without a
        weight, EL088 for the standard input where there is no folder.
    """
    if not sources and train == STDIN:
        if run_folder is None:
            raise ValueError(Errors.EL088)
        saved = (spool_stdin if spool else spool_path)(run_folder)
        return {"train": TextSource(str(saved), seed)}, {"train": 1.0}
    if not sources:
        return {"train": TextSource(train, seed, run_folder)}, {"train": 1.0}
    opened: Dict[str, TextSource] = {}
    weights: Dict[str, float] = {}
    for i, (name, source) in enumerate(sources.items()):
        is_block = isinstance(source, Mapping) and set(source) == {"path", "weight"}
        weight = source["weight"] if is_block else None
        if not isinstance(weight, (int, float)) or not 0 < weight < inf:
            raise ValueError(Errors.EL085.format(name=name, found=source))
        opened[name] = TextSource(str(source["path"]), seed + i, run_folder)
        weights[name] = float(weight)
    return opened, weights


def read_sequences(path: str, make_cutter: Callable[[], Cutter]) -> Iterator[List[str]]:
    """Read a text that is not trained on, once and in order.

    path (str): file, folder or glob.
    make_cutter (Callable[[], Cutter]): makes what cuts it.
    YIELDS (List[str]): words of each sequence.
    RAISES (ValueError): EL080 or EL081 for the path, EL088 for the standard input.
    """
    sources, weights = open_sources(path, {}, None, seed=0)
    for part in Corpus(sources, weights, make_cutter).read_in_order():
        yield from part


def read_all_sequences(path: str, make_cutter: Callable[[], Cutter]) -> List[List[str]]:
    """RETURNS (List[List[str]]): As `read_sequences` gives them, with one string for all
    occurrences of a word: some ten bytes a token."""
    texts: Dict[str, str] = {}
    return [
        [texts.setdefault(word, word) for word in words]
        for words in read_sequences(path, make_cutter)
    ]


def is_tokenizer_block(block: Any) -> bool:
    """block (Any): of a stranger. RETURNS (bool): Whether it names a tokenizer alone, not what else
    spaCy's registries could make."""
    return isinstance(block, dict) and all(
        (key == "@tokenizers" or not key.startswith("@"))
        and (value is None or isinstance(value, (str, int, float)))
        for key, value in block.items()
    )


def make_tokenizer(lang: str, block: Dict[str, Any]) -> Any:
    """Make spaCy's tokenizer of a config's [nlp], the one that a pipeline has.

    lang (str): language code.
    block (Dict[str, Any]): [nlp.tokenizer]; empty for the language's default.
    RETURNS (Any): str -> Doc.
    RAISES (ValueError): EL161 if there is no such language, EL089 if its tokenizer cannot be
        made, as without a package that it needs.
    """
    require_language(lang)
    try:
        cls = get_lang_class(lang)
        nlp = cls.from_config({"nlp": {"tokenizer": block}}) if block else cls()
    # A tokenizer of someone's own can fail in any way.
    except Exception as err:
        raise ValueError(Errors.EL089.format(lang=lang, error=err)) from err
    return nlp.tokenizer


def cutter_maker(lang: str, block: Dict[str, Any], **settings: Any) -> Callable[[], Cutter]:
    """lang (str): language code. block (Dict[str, Any]): [nlp.tokenizer]. settings (Any):
    arguments of `Cutter`. RETURNS (Callable[[], Cutter]): makes it; picklable."""
    return partial(Cutter, partial(make_tokenizer, lang, block), **settings)
