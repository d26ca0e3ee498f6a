"""The text of a pretraining run: what its config names, opened."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from ..checkpoints.formats import read_words
from ..errors import Errors
from ..files import digest, digest_pieces
from ..language_model.evaluation import sample
from ..text.corpus import Corpus, cutter_maker, open_sources, read_all_sequences
from ..text.static_vectors import StaticVectors, read_static_vectors
from ..text.text_files import get_format
from .ranks import Processes
from .run_config import RunConfig


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
    train on. RAISES (ValueError): EL080 to EL085, EL101 and EL155 to EL157 for the text,
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
    measure on; none without held-out text. RAISES (ValueError): EL080, EL081 and EL088 for
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
    their folders. RAISES (ValueError): EL070 for a list of words that cannot be read. RAISES
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
