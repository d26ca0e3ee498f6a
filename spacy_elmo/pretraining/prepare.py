"""Prepare a pretraining run: its text, words, checkpoint and model."""

import json
import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import usual_numbers
from ..checkpoints.formats import CheckpointFiles, find_reader, read_words, write_words
from ..checkpoints.native import read_meta
from ..errors import Errors, Warnings
from ..files import digest, digest_pieces, read_json_object, write_json
from ..language_model.evaluation import sample
from ..language_model.loading import copy_softmax_rows, require_same_shape, start_bilm
from ..language_model.objective import LanguageModel
from ..language_model.softmax import make_softmax, split_softmax
from ..language_model.vocabulary import SPECIAL_WORDS, Vocabulary, WordCounter
from ..text.corpus import Corpus, cutter_maker, open_sources, read_all_sequences
from ..text.languages import StaticVectors, read_static_vectors
from .checkpoints import Checkpoint, RunFolder, list_checkpoints
from .config import CorpusSettings, RunConfig, TrainingSettings, make_shape
from .processes import Processes
from .teachers import TeacherContext, make_teachers

logger = logging.getLogger("spacy_elmo")

# The models of a run.
LAST, BEST = "model-last", "model-best"
VOCAB_FILE = "vocab.txt"
COUNTS_FILE = "counts.json"
# Many longer tokens suggest text without word boundaries.
_LONG_BYTES, _MANY = 48, 0.1


@dataclass(frozen=True)
class PretrainingRun:
    """All that training needs. The weights of the model, which is on its device, change in place.
    `counts` is the content of counts.json; `n_tokens_before` were trained on before this run."""

    config: RunConfig
    output: Path
    processes: Processes
    corpus: Corpus
    dev: List[List[str]]
    vocabulary: Vocabulary
    counts: Dict[str, Any]
    model: LanguageModel
    folder: RunFolder
    checkpoint: Optional[Checkpoint]
    n_tokens_before: int

    @property
    def total_steps(self) -> int:
        """RETURNS (int): Length of the whole run."""
        n_targets = self.counts.get("n_tokens", 0) + self.counts.get("n_sequences", 0)
        return self.config.count_steps(n_targets)


def prepare(
    config: RunConfig, output: Path, *, resume: bool, processes: Processes
) -> PretrainingRun:
    """Open the text, find the checkpoint, count words and make the model. EL095 if the folder holds
    a run that is not to be resumed, EL096 if no checkpoint of it can be used."""
    config.training.require_rows(processes.n_ranks)
    # The best model may have been written before the first checkpoint: then the run starts over.
    holds_run = bool(list_checkpoints(output)) or (output / LAST).exists()
    if (holds_run or (output / BEST).exists()) and not resume:
        raise ValueError(Errors.EL095.format(path=output))
    output.mkdir(parents=True, exist_ok=True)
    # The first process saves the standard input, before the others open it.
    if not processes.is_first:
        processes.wait()
    corpus = open_corpus(config, output, spool=processes.is_first)
    if processes.is_first:
        processes.wait()
    # All that may be wrong is read before words are counted for hours.
    vectors, dev = read_vectors(config), read_dev(config)
    description = describe_text(config, corpus)
    shape = make_shape(config.bilm, len(SPECIAL_WORDS), vectors)
    folder = RunFolder(output, config.identity(description, shape))
    checkpoint = folder.find_last() if resume else None
    if holds_run and checkpoint is None:
        raise ValueError(Errors.EL096.format(path=output))
    start = find_init(config) if checkpoint is None else CheckpointFiles(checkpoint.folder)
    if processes.is_first:
        prepare_words(config, corpus, description, output, is_resumed=checkpoint is not None)
    processes.wait()
    counts = read_counts(output)
    words_folder = output if checkpoint is None else checkpoint.folder
    vocabulary = Vocabulary(read_words(words_folder / VOCAB_FILE))
    shape = make_shape(config.bilm, len(vocabulary), vectors)
    meta = {} if start is None else read_meta(start.path)
    before = [meta.get("n_tokens_trained_before", 0)]
    if checkpoint is None:
        before.append(meta.get("n_tokens_trained", 0))
        if processes.is_first:
            config.warn_of_length(_count_targets(config, corpus, counts))
    return PretrainingRun(
        config=config,
        output=output,
        processes=processes,
        corpus=corpus,
        dev=dev,
        vocabulary=vocabulary,
        counts=counts,
        model=make_model(config.training, shape, vocabulary, vectors, start).to(processes.device),
        folder=folder,
        checkpoint=checkpoint,
        # Weights of others may have any meta.json.
        n_tokens_before=sum(count for count in before if isinstance(count, int)),
    )


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


def _cutter_maker(config: RunConfig, window_share: float) -> Callable[[], Any]:
    return cutter_maker(
        config.nlp["lang"],
        config.nlp.get("tokenizer") or {},
        max_tokens=config.corpus.max_tokens,
        window_share=window_share,
        cut=config.corpus.cut,
        seed=config.training.seed,
    )


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
        text = Warnings.WL006.format(max_types=counter.max_types, n_times=counter.pruned_below)
        logger.warning(text)
    n_long = counter.count_long(_LONG_BYTES)
    if n_long > _MANY * counter.n_tokens:
        share = f"{n_long / counter.n_tokens:.0%}"
        logger.warning(Warnings.WL070.format(share=share, n_bytes=_LONG_BYTES))
    logger.info("Counted %d tokens in %.0f s", counter.n_tokens, time.monotonic() - started)
    return counter


def choose_vocabulary(counter: Optional[WordCounter], settings: CorpusSettings) -> Vocabulary:
    """Choose the words to predict: a file's, or by the counts. EL077 if no word is left."""
    if settings.vocabulary or counter is None:
        vocabulary = Vocabulary(read_words(Path(settings.vocabulary)))
    else:
        include = read_words(Path(settings.include)) if settings.include else []
        vocabulary = counter.make_vocabulary(settings.size, settings.min_count, include)
    if len(vocabulary) == len(SPECIAL_WORDS):
        most = max(counter.counts.values(), default=0) if counter else 0
        limits = {"size": settings.size, "min_count": settings.min_count, "most": most}
        source = settings.vocabulary or "the text"
        raise ValueError(Errors.EL077.format(source=source, **limits))
    return vocabulary


def prepare_words(
    config: RunConfig, corpus: Corpus, text: Dict[str, Any], output: Path, *, is_resumed: bool
) -> None:
    """Write vocab.txt and counts.json, unless they are there for this text (`describe_text`). The
    text is counted only if words or length follow from it; a run with a checkpoint keeps its
    words."""
    counts, path = read_counts(output), output / VOCAB_FILE
    is_prepared = is_resumed or (counts.get("text") == text and path.exists())
    needs_length = not config.training.max_steps and not (is_prepared and "n_tokens" in counts)
    if is_prepared and not needs_length:
        return
    words: Optional[List[str]] = None
    if not is_prepared:
        counts = {"text": text}
        if config.corpus.vocabulary:
            words = choose_vocabulary(None, config.corpus).words
    if needs_length or not (is_prepared or words):
        counter = count_words(corpus)
        counts.update(n_tokens=counter.n_tokens, n_sequences=counter.n_sequences)
        if not is_prepared and words is None:
            words = choose_vocabulary(counter, config.corpus).words
    else:
        for source in corpus.sources.values():
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


def _count_targets(config: RunConfig, corpus: Corpus, counts: Dict[str, Any]) -> int:
    """Count tokens and ends of sequences; if words were not counted, at most those of a step."""
    if "n_tokens" in counts:
        return counts["n_tokens"] + counts["n_sequences"]
    n_targets, most = 0, config.training.batch_tokens
    for sequences in corpus.read_in_order():
        n_targets += sum(len(words) + 1 for words in sequences)
        if n_targets >= most:
            break
    return min(n_targets, most)


def find_init(config: RunConfig) -> Optional[CheckpointFiles]:
    """Find the weights to start from, if any, and compare their shape (EL097)."""
    if not config.paths.get("init"):
        return None
    files = CheckpointFiles.of(config.paths["init"], config.paths.get("init_weights"))
    require_same_shape(make_shape(config.bilm, len(SPECIAL_WORDS)), files)
    return files


@usual_numbers()
def make_model(
    training: TrainingSettings,
    shape: BiLMConfig,
    vocabulary: Vocabulary,
    vectors: Optional[StaticVectors],
    start: Optional[CheckpointFiles] = None,
) -> LanguageModel:
    """Make the model with random weights, always the same ones, or with those of `start` and its
    softmax rows of common words."""
    torch.manual_seed(training.seed)
    bilm = BiLM(shape)
    if vectors is not None:
        bilm.word_table.fill(vectors.words, torch.from_numpy(vectors.vectors))
    elif shape.input == "words":
        bilm.word_table.fill(vocabulary.words[len(SPECIAL_WORDS) :])
    kind, arguments = split_softmax(training.softmax)
    softmax = make_softmax(kind, shape.direction_width, len(vocabulary), **arguments)
    context = TeacherContext(shape, vocabulary, training.batch_tokens, training.state_steps)
    teachers = make_teachers(training.teachers, context)
    model = LanguageModel(bilm, softmax, training.dropout, teachers)
    if start is not None:
        start_bilm(bilm, start)
        stored = find_reader(start).read_softmax(start)
        n_words = 0 if stored is None else copy_softmax_rows(softmax, vocabulary.words, stored)
        logger.info("Started from %s, softmax rows of %d words", start, n_words)
    return model
