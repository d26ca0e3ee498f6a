"""The text of a run and the words that it predicts."""

import json
import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ..checkpoints.formats import read_words, write_words
from ..errors import Errors, Warnings
from ..files import (
    digest,
    digest_file,
    digest_pieces,
    has_digest,
    read_checked_json,
    write_checked_json,
)
from ..language_model.evaluation import sample
from ..language_model.vocabulary import SPECIAL_WORDS, Vocabulary, WordCounter
from ..text.corpus import Corpus, cutter_maker, open_sources, read_all_sequences
from ..text.languages import StaticVectors, read_static_vectors
from ..text.text_files import get_format
from .checkpoints import find_words, has_checkpoints
from .config import CorpusSettings, RunConfig
from .processes import Processes


@dataclass(frozen=True)
class RunText:
    """All that a run reads.

    corpus (Corpus): to train on.
    dev (List[List[str]]): held-out sequences; none without held-out text.
    vectors (Optional[StaticVectors]): the table of `[bilm] input = "vectors"`; None for
        other inputs.
    description (Dict[str, Any]): what the words and their numbers depend on, in JSON's types.
    """

    corpus: Corpus
    dev: List[List[str]]
    vectors: Optional[StaticVectors]
    description: Dict[str, Any]


def open_text(config: RunConfig, output: Path, processes: Processes) -> RunText:
    """Open all that a run reads, which may fail, before words are counted for hours.

    config (RunConfig): the run.
    output (Path): where the standard input is saved.
    processes (Processes): the first one saves it, the others read what it saved.
    RETURNS (RunText): the text.
    RAISES (ValueError): as `open_corpus`, `read_dev` and `read_vectors`.
    """
    if not processes.is_first:
        processes.wait()
    corpus = open_corpus(config, output, spool=processes.is_first)
    if processes.is_first:
        processes.wait()
    vectors = read_vectors(config)
    return RunText(corpus, read_dev(config), vectors, describe_text(config, corpus))


def open_corpus(config: RunConfig, output: Path, *, spool: bool = True) -> Corpus:
    """config (RunConfig): the run. output (Path): where the standard input is saved. spool
    (bool): whether to save it; if not, it is saved already. RETURNS (Corpus): the text to
    train on. RAISES (ValueError): EL080, EL081, EL100, EL103, EL155 and EL157 for the text,
    EL089 for the tokenizer."""
    settings = config.corpus
    sources, weights = open_sources(
        settings.train, settings.sources, output, config.training.seed, spool=spool
    )
    make_cutter = _cutter_maker(config, settings.window_share)
    make_cutter()  # what is wrong with it is said now, not by a worker process
    return Corpus(sources, weights, make_cutter, n_workers=settings.n_workers)


def read_dev(config: RunConfig) -> List[List[str]]:
    """config (RunConfig): the run. RETURNS (List[List[str]]): the held-out sequences to
    measure on; none without held-out text. RAISES (ValueError): EL080 and EL081 for
    the path, EL094 for an empty text."""
    path, training = config.corpus.dev, config.training
    if not path:
        return []
    sequences = read_all_sequences(path, _cutter_maker(config, window_share=0.0))
    if not sequences:
        raise ValueError(Errors.EL094.format(path=path))
    return sample(sequences, training.eval_sequences, in_order=training.state_steps > 0)


def read_vectors(config: RunConfig) -> Optional[StaticVectors]:
    """config (RunConfig): the run. RETURNS (Optional[StaticVectors]): the table of `[bilm]
    input = "vectors"`; None for other inputs. RAISES (ValueError): EL087 without one."""
    if config.bilm.get("input") != "vectors":
        return None
    path = config.paths.get("vectors")
    if not path:
        raise ValueError(Errors.EL087.format(path=path, problem="set --paths.vectors"))
    return read_static_vectors(Path(path))


def describe_text(config: RunConfig, corpus: Corpus) -> Dict[str, Any]:
    """config (RunConfig): the run. corpus (Corpus): its text. RETURNS (Dict[str, Any]): all
    that the words and their numbers depend on, in JSON's types: of files what they hold, and not
    their folders. RAISES (ValueError): EL103 for a list of words that cannot be read. RAISES
    (OSError): if a text cannot be read."""
    settings = asdict(config.corpus)
    for key in ("train", "dev", "n_workers"):
        del settings[key]
    for key in ("vocabulary", "include"):
        settings[key] = settings[key] and _digest_words(Path(settings[key]))
    files = [file for source in corpus.sources.values() for file in source.files]
    description = {
        **settings,
        "sources": {name: s["weight"] for name, s in config.corpus.sources.items()},
        "nlp": config.nlp,
        "seed": config.training.seed,
        "files": [[file.name, file.stat().st_size, digest_pieces(file)] for file in files],
    }
    if settings["cut"] == "sentences" and any(get_format(file) != "txt" for file in files):
        # Sentences of docs end at line breaks, too: once they did not, and then a quotation mark
        # that opened the next line was taken for the end of the line before.
        description["breaks"] = 2
    return json.loads(json.dumps(description))


def _digest_words(path: Path) -> str:
    return digest("\n".join(read_words(path)).encode("utf-8"))


def _cutter_maker(config: RunConfig, window_share: float) -> Callable[[], Any]:
    return cutter_maker(
        config.nlp["lang"],
        config.nlp.get("tokenizer") or {},
        max_tokens=config.corpus.max_tokens,
        window_share=window_share,
        cut=config.corpus.cut,
        seed=config.training.seed,
    )


logger = logging.getLogger("spacy_elmo")

VOCAB_FILE = "vocab.txt"
COUNTS_FILE = "counts.json"
# What is longer is hardly a word in any language, but a clause in those without spaces.
_LONG_BYTES, _MANY = 48, 0.1
# In counts.json, the digest of vocab.txt.
_WORDS_KEY = "vocabulary"
# Of what counts.json has, one at least.
_COUNTS_KEYS = {"text", "n_tokens", _WORDS_KEY}


def count_words(corpus: Corpus) -> WordCounter:
    """corpus (Corpus): text. RETURNS (WordCounter): its words, each source read once; warnings
    tell if rare ones were forgotten (WL006), and if many are too long for words (WL070). RAISES
    (ValueError): EL094 if there are none."""
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
    """corpus (Corpus): text. most (int): where to stop. RETURNS (int): its tokens and ends of
    sequences, or `most` if there are more. RAISES (ValueError): as `Corpus.read_in_order`."""
    n_targets = 0
    for sequences in corpus.read_in_order():
        n_targets += sum(len(words) + 1 for words in sequences)
        if n_targets >= most:
            return most
    return n_targets


class GivenWords(NamedTuple):
    """What files say of the words to predict.

    vocabulary (Optional[Vocabulary]): all of them; None if they are to be counted.
    include (List[str]): words that must be among the counted ones.
    """

    vocabulary: Optional[Vocabulary]
    include: List[str]


def read_given_words(settings: CorpusSettings) -> GivenWords:
    """settings (CorpusSettings): with the paths. RETURNS (GivenWords): what the files say, to
    be read before hours of counting. RAISES (ValueError): EL103 and EL071 if one cannot be
    used."""
    if settings.vocabulary:
        return GivenWords(Vocabulary(read_words(Path(settings.vocabulary))), [])
    return GivenWords(None, read_words(Path(settings.include)) if settings.include else [])


def choose_vocabulary(
    counter: WordCounter, settings: CorpusSettings, given: GivenWords
) -> Vocabulary:
    """counter (WordCounter): counted words. settings (CorpusSettings): size and least count.
    given (GivenWords): from files. RETURNS (Vocabulary): the words to predict. RAISES
    (ValueError): EL077 if no word is left."""
    vocabulary = given.vocabulary or counter.make_vocabulary(
        settings.size, settings.min_count, given.include
    )
    if len(vocabulary) == len(SPECIAL_WORDS):
        raise ValueError(
            Errors.EL077.format(
                source=settings.vocabulary or "the text",
                size=settings.size,
                min_count=settings.min_count,
                most=max(counter.counts.values(), default=0),
            )
        )
    return vocabulary


def prepare_words(config: RunConfig, corpus: Corpus, output: Path, text: Dict[str, Any]) -> None:
    """Write vocab.txt and counts.json, unless they are there.

    config (RunConfig): the run.
    corpus (Corpus): its text.
    output (Path): the run's folder.
    text (Dict[str, Any]): from `describe_text`.
    RAISES (ValueError): as `read_given_words`, `count_words` and `choose_vocabulary`, and what
        reading a text raises.
    """
    if has_checkpoints(output):
        counts = _prepare_to_resume(config, corpus, output)
    else:
        counts = _prepare_to_start(config, corpus, output, text)
    write_checked_json(output / COUNTS_FILE, counts)


def _prepare_to_resume(config: RunConfig, corpus: Corpus, output: Path) -> Dict[str, Any]:
    """Keep the words of the checkpoints. The text is counted only if the length of the run
    follows from it and is not known."""
    counts = _read_whole_counts(output)
    if "n_tokens" not in counts and not config.training.max_steps:
        counts.update(_totals(count_words(corpus)))
    words = find_words(output)
    if words is not None:
        counts[_WORDS_KEY] = _write_vocabulary(output / VOCAB_FILE, words, is_trained=True)
    return counts


def _prepare_to_start(
    config: RunConfig, corpus: Corpus, output: Path, text: Dict[str, Any]
) -> Dict[str, Any]:
    """Choose the words. The text is not counted if both they and the number of steps are
    given; then each file is opened, so that training does not end in the middle at one that
    is no text."""
    before = _read_whole_counts(output)
    is_same = before.get("text") == text and _has_words(output, before)
    counts: Dict[str, Any] = before if is_same else {"text": text}
    given = read_given_words(config.corpus)
    is_given, is_counted = given.vocabulary is not None, "n_tokens" in counts
    counter = WordCounter()
    if not is_counted and not (is_given and config.training.max_steps):
        counter = count_words(corpus)
        counts.update(_totals(counter))
    else:
        for source in corpus.sources.values():
            source.require_readable()
    if is_given or not is_counted:
        words = choose_vocabulary(counter, config.corpus, given).words
        _require_own(output / VOCAB_FILE, words, before)
        counts[_WORDS_KEY] = _write_vocabulary(output / VOCAB_FILE, words, is_trained=False)
    return counts


def _totals(counter: WordCounter) -> Dict[str, Any]:
    return {"n_tokens": counter.n_tokens, "n_sequences": counter.n_sequences}


def read_vocabulary(output: Path) -> Vocabulary:
    """output (Path): a run's folder. RETURNS (Vocabulary): the words of vocab.txt. RAISES
    (ValueError): EL103 and EL071 if it cannot be used."""
    return Vocabulary(read_words(output / VOCAB_FILE))


def read_counts(output: Path) -> Dict[str, Any]:
    """output (Path): a run's folder. RETURNS (Dict[str, Any]): what is known of its text:
    "text", from `describe_text`; if it was counted, "n_tokens" and "n_sequences"; and the
    digest of vocab.txt. RAISES (ValueError): EL100 to EL103 and EL142 if it cannot be read."""
    return read_checked_json(output / COUNTS_FILE)


def _require_own(path: Path, words: List[str], counts: Dict[str, Any]) -> None:
    """RAISES (ValueError): EL333 for a vocab.txt that no run has begun with."""
    # One that was killed may have written its words and no counts.
    if path.exists() and not counts and _read_words(path) != words:
        raise ValueError(Errors.EL333.format(path=path))


def _read_whole_counts(output: Path) -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): What counts.json says; empty if there is none, or if it is damaged.
    RAISES (ValueError): EL333 if it is none of ours."""
    path = output / COUNTS_FILE
    if not path.exists():
        return {}
    try:
        counts = read_counts(output)
    except ValueError as err:
        if not has_digest(path) and not has_checkpoints(output):
            raise ValueError(Errors.EL333.format(path=path)) from err
        logger.warning(Warnings.WL027.format(path=path, problem=err))
        return {}
    # Those of older versions have no digest.
    if not counts.keys() & _COUNTS_KEYS and not has_checkpoints(output):
        raise ValueError(Errors.EL333.format(path=path))
    return counts


def _has_words(output: Path, counts: Dict[str, Any]) -> bool:
    """Whether vocab.txt is what was written together with the counts."""
    path = output / VOCAB_FILE
    if not path.exists():
        return False
    # None by an older version, which did not say.
    expected = counts.get(_WORDS_KEY)
    is_whole = expected is None or digest_file(path) == expected
    if not is_whole:
        logger.warning(Warnings.WL027.format(path=path, problem="its digest is another"))
    return is_whole


def _write_vocabulary(path: Path, words: List[str], is_trained: bool) -> str:
    """Write vocab.txt unless it is there. RETURNS (str): its digest."""
    if _read_words(path) != words:
        if is_trained:
            problem = "it is not that of the checkpoints"
            logger.warning(Warnings.WL027.format(path=path, problem=problem))
        write_words(path, words)
    return digest_file(path)


def _read_words(path: Path) -> Optional[List[str]]:
    """RETURNS (Optional[List[str]]): Of vocab.txt; None if there is none, or if it is damaged."""
    try:
        return read_words(path) if path.exists() else None
    except ValueError:
        return None
