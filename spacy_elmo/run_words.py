"""The words that a pretraining run predicts, counted or given, and what its folder keeps of
them."""

import logging
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

import srsly

from .checkpoints.reader import read_words, write_words
from .corpora.corpus import Corpus
from .errors import Errors, Warnings
from .pretraining.run_folder import has_checkpoints
from .pretraining.settings import CorpusSettings
from .pretraining.vocabulary import SPECIAL_WORDS, Vocabulary, WordCounter
from .run_parts import RunConfig
from .util.atomic import write_file

logger = logging.getLogger("spacy_elmo")

VOCAB_FILE = "vocab.txt"
COUNTS_FILE = "counts.json"


def count_words(corpus: Corpus) -> WordCounter:
    """corpus (Corpus): text. RETURNS (WordCounter): its words, each source read once; a
    warning WL006 tells if rare ones were forgotten. RAISES (ValueError): EL094 if there
    are none."""
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
    logger.info("Counted %d tokens in %.0f s", counter.n_tokens, time.monotonic() - started)
    return counter


class GivenWords(NamedTuple):
    """What files say of the words to predict.

    vocabulary (Optional[Vocabulary]): all of them; None if they are to be counted.
    include (List[str]): words that must be among the counted ones.
    """

    vocabulary: Optional[Vocabulary]
    include: List[str]


def read_given_words(settings: CorpusSettings) -> GivenWords:
    """settings (CorpusSettings): with the paths. RETURNS (GivenWords): what the files say, to
    be read before hours of counting. RAISES (ValueError): EL070 and EL071 if one cannot be
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
    """Write vocab.txt and counts.json, unless they are there. The text is counted where
    something follows from it: not if both vocabulary and number of steps are given.

    config (RunConfig): the run.
    corpus (Corpus): its text.
    output (Path): the run's folder; one that a run goes on in keeps its words.
    text (Dict[str, Any]): from `describe_text`.
    RAISES (ValueError): as `read_given_words`, `count_words` and `choose_vocabulary`.
    """
    path = output / COUNTS_FILE
    counts = srsly.read_json(path) if path.exists() else {}
    goes_on, is_given = has_checkpoints(output), bool(config.corpus.vocabulary)
    if not goes_on and counts.get("text") != text:
        counts = {"text": text}
    lacks_length = "n_tokens" not in counts and not config.training.max_steps
    lacks_words = not goes_on and not is_given and "n_tokens" not in counts
    given = GivenWords(None, []) if goes_on else read_given_words(config.corpus)
    counter = WordCounter()
    if lacks_length or lacks_words:
        counter = count_words(corpus)
        counts.update({"n_tokens": counter.n_tokens, "n_sequences": counter.n_sequences})
    if lacks_words or (is_given and not goes_on):
        words = choose_vocabulary(counter, config.corpus, given).words
        write_words(output / VOCAB_FILE, words)
    write_file(path, srsly.json_dumps(counts).encode("utf-8"))
