"""The text of a run and the words that it predicts."""

import json
import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from ..checkpoints.formats import read_words, write_words
from ..errors import Errors, Warnings
from ..files import digest, digest_pieces, read_json_object, write_json
from ..language_model.evaluation import sample
from ..language_model.vocabulary import SPECIAL_WORDS, Vocabulary, WordCounter
from ..text.corpus import Corpus, cutter_maker, open_sources, read_all_sequences
from ..text.languages import StaticVectors, read_static_vectors
from .config import CorpusSettings, RunConfig
from .processes import Processes

logger = logging.getLogger("spacy_elmo")

VOCAB_FILE = "vocab.txt"
COUNTS_FILE = "counts.json"
# Many longer tokens suggest text without word boundaries.
_LONG_BYTES, _MANY = 48, 0.1


@dataclass(frozen=True)
class RunText:
    """All that a run reads: training text, held-out sequences, the table of `[bilm] input =
    "vectors"`, and a description of all that words and counts depend on, in JSON types."""

    corpus: Corpus
    dev: List[List[str]]
    vectors: Optional[StaticVectors]
    description: Dict[str, Any]


def open_text(config: RunConfig, output: Path, processes: Processes) -> RunText:
    """Open all that a run reads, before words are counted for hours. The first process saves the
    standard input, before the others open it."""
    if not processes.is_first:
        processes.wait()
    corpus = open_corpus(config, output, spool=processes.is_first)
    if processes.is_first:
        processes.wait()
    vectors = read_vectors(config)
    return RunText(corpus, read_dev(config), vectors, describe_text(config, corpus))


def open_corpus(config: RunConfig, output: Path, *, spool: bool = True) -> Corpus:
    """Open the text to train on. Standard input is saved to `output` first, if `spool`."""
    settings = config.corpus
    sources, weights = open_sources(
        settings.train, settings.sources, output, config.training.seed, spool=spool
    )
    make_cutter = _cutter_maker(config, settings.window_share)
    make_cutter()  # raises its errors here and not in a worker process
    return Corpus(sources, weights, make_cutter, n_workers=settings.n_workers)


def read_dev(config: RunConfig) -> List[List[str]]:
    """Read the held-out sequences to measure, if any (EL080, EL081, EL094)."""
    path, training = config.corpus.dev, config.training
    if not path:
        return []
    sequences = read_all_sequences(path, _cutter_maker(config, window_share=0.0))
    if not sequences:
        raise ValueError(Errors.EL094.format(path=path))
    return sample(sequences, training.eval_sequences, in_order=training.state_steps > 0)


def read_vectors(config: RunConfig) -> Optional[StaticVectors]:
    """Read the table of `[bilm] input = "vectors"` (EL087); None for other inputs."""
    if config.bilm.get("input") != "vectors":
        return None
    path = config.paths.get("vectors")
    if not path:
        raise ValueError(Errors.EL087.format(path=path, problem="set --paths.vectors"))
    return read_static_vectors(Path(path))


def describe_text(config: RunConfig, corpus: Corpus) -> Dict[str, Any]:
    """Describe all that words and counts depend on, in JSON types: contents of files, and not
    their folders."""
    settings = asdict(config.corpus)
    for key in ("train", "dev", "n_workers"):
        del settings[key]
    for key in ("vocabulary", "include"):
        if settings[key]:
            words = read_words(Path(settings[key]))
            settings[key] = digest("\n".join(words).encode("utf-8"))
    files = [file for source in corpus.sources.values() for file in source.files]
    description = {
        **settings,
        "sources": {name: s["weight"] for name, s in config.corpus.sources.items()},
        "nlp": config.nlp,
        "seed": config.training.seed,
        "files": [[file.name, file.stat().st_size, digest_pieces(file)] for file in files],
    }
    return json.loads(json.dumps(description))


def _cutter_maker(config: RunConfig, window_share: float) -> Callable[[], Any]:
    return cutter_maker(
        config.nlp["lang"],
        config.nlp.get("tokenizer") or {},
        max_tokens=config.corpus.max_tokens,
        window_share=window_share,
        cut=config.corpus.cut,
        seed=config.training.seed,
    )


def count_words(corpus: Corpus) -> WordCounter:
    """Count the words of a text. Warns if rare ones were forgotten (WL006), and if many tokens are
    too long for words (WL070)."""
    logger.info("Reading all of the text, to count its words")
    counter = WordCounter()
    started = time.monotonic()
    for sequences in corpus.read_once():
        counter.add(sequences)
    if not counter.n_tokens:
        raise ValueError(Errors.EL094.format(path="[corpus]"))
    if counter.pruned_below:
        logger.warning(
            Warnings.WL006.format(max_types=counter.max_types, n_times=counter.pruned_below)
        )
    n_long = counter.count_long(_LONG_BYTES)
    if n_long > _MANY * counter.n_tokens:
        share = f"{n_long / counter.n_tokens:.0%}"
        logger.warning(Warnings.WL070.format(share=share, n_bytes=_LONG_BYTES))
    logger.info("Counted %d tokens in %.0f s", counter.n_tokens, time.monotonic() - started)
    return counter


def count_targets(corpus: Corpus, most: int) -> int:
    """Count tokens and ends of sequences, at most `most`."""
    n_targets = 0
    for sequences in corpus.read_in_order():
        n_targets += sum(len(words) + 1 for words in sequences)
        if n_targets >= most:
            return most
    return n_targets


def choose_vocabulary(counter: Optional[WordCounter], settings: CorpusSettings) -> Vocabulary:
    """Choose the words to predict: a file's, or by the counts. EL077 if no word is left."""
    if settings.vocabulary or counter is None:
        vocabulary = Vocabulary(read_words(Path(settings.vocabulary)))
    else:
        include = read_words(Path(settings.include)) if settings.include else []
        vocabulary = counter.make_vocabulary(settings.size, settings.min_count, include)
    if len(vocabulary) == len(SPECIAL_WORDS):
        raise ValueError(
            Errors.EL077.format(
                source=settings.vocabulary or "the text",
                size=settings.size,
                min_count=settings.min_count,
                most=max(counter.counts.values(), default=0) if counter else 0,
            )
        )
    return vocabulary


def prepare_words(config: RunConfig, text: RunText, output: Path, *, is_resumed: bool) -> None:
    """Write vocab.txt and counts.json, unless they are there for this text. The text is counted
    only if words or length follow from it; a run with a checkpoint keeps its words."""
    counts, path = read_counts(output), output / VOCAB_FILE
    is_prepared = is_resumed or (counts.get("text") == text.description and path.exists())
    is_counted = is_prepared and "n_tokens" in counts
    needs_length = not is_counted and not config.training.max_steps
    if is_prepared and not needs_length:
        return
    words: Optional[List[str]] = None
    if not is_prepared:
        counts = {"text": text.description}
        if config.corpus.vocabulary:
            words = choose_vocabulary(None, config.corpus).words
    if needs_length or not (is_prepared or words):
        counter = count_words(text.corpus)
        counts.update(n_tokens=counter.n_tokens, n_sequences=counter.n_sequences)
        if not is_prepared and words is None:
            words = choose_vocabulary(counter, config.corpus).words
    else:
        for source in text.corpus.sources.values():
            source.require_readable()
    if words is not None:
        # A run that was killed may have written its words and no counts.
        if path.exists() and not (output / COUNTS_FILE).exists() and read_words(path) != words:
            raise ValueError(Errors.EL095.format(path=output))
        write_words(path, words)
    write_json(output / COUNTS_FILE, counts)


def read_counts(output: Path) -> Dict[str, Any]:
    """Read counts.json: "text", and if it was counted, "n_tokens" and "n_sequences"."""
    path = output / COUNTS_FILE
    return read_json_object(path) if path.exists() else {}
