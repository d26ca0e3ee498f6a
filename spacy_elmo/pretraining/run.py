"""`pretrain`: a config and a folder -> a trained biLM."""

import logging
import os
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import torch

from ..bilm.config import BiLMConfig
from ..checkpoints.checkpoint_files import CheckpointFiles
from ..checkpoints.formats import SoftmaxWeights, find_reader, read_words
from ..checkpoints.native import META_FILE, write_native
from ..errors import Errors, Warnings
from ..language_model.loading import copy_softmax_rows, pack_softmax, start_bilm
from ..language_model.objective import LanguageModel
from ..language_model.perplexity import Perplexity, Scorer, measure
from ..language_model.softmax import split_softmax
from ..language_model.vocabulary import Vocabulary
from ..text.static_vectors import StaticVectors
from ..util.atomic import find_folder
from ..util.digests import write_digests
from ..util.reading import read_json_object
from .loop import Hooks, Progress, Report, train
from .ranks import Processes, deterministic, join_processes
from .run_config import RunConfig
from .run_folder import RunFolder, has_checkpoints, set_aside
from .run_words import VOCAB_FILE, count_targets, prepare_words, read_counts
from .stream import BatchStream

logger = logging.getLogger("spacy_elmo")

LAST, BEST = "model-last", "model-best"
# Tokens of a pass over held-out text.
_DEV_TOKENS = 4096


class Run:
    """One run: everything that its config describes, ready to train.

    config (RunConfig): what to do.
    output (Path): the run's folder.
    resume (bool): whether to go on with what the folder holds.
    processes (Processes): who shares the work.
    RAISES (ValueError): EL095 if the folder holds a run and
        `resume` is false, EL096 if nothing can be gone on from, EL080 to EL087 for the
        corpus, EL097 if initial weights do not fit.
    """

    def __init__(
        self, config: RunConfig, output: Path, *, resume: bool, processes: Processes
    ) -> None:
        self.config = config
        self.output = output
        self.processes = processes
        has_run = _has_run(output, resume, processes)
        output.mkdir(parents=True, exist_ok=True)
        # One process reads the standard input, the others what it saved.
        if not processes.is_first:
            processes.wait()
        self.corpus = config.open_corpus(output, spool=processes.is_first)
        if processes.is_first:
            processes.wait()
        about_text = config.describe_text(self.corpus)
        # What else is read comes before the counting of words, which may take hours.
        vectors = config.read_vectors()
        self.dev = config.read_dev()
        self.init = None if has_run else config.find_init()
        if processes.is_first:
            prepare_words(config, self.corpus, output, about_text)
        processes.wait()
        self.vocabulary = Vocabulary(read_words(output / VOCAB_FILE))
        self.counts = read_counts(output)
        shape = config.make_shape(self.vocabulary, vectors)
        identity = config.identity(about_text, len(self.vocabulary), shape)
        self.folder = RunFolder(output, identity)
        self.checkpoint = self.folder.find_last() if resume else None
        if has_run and self.checkpoint is None:
            raise ValueError(Errors.EL096.format(path=output))
        processes.wait()
        if self.checkpoint is not None and processes.is_first:
            self.folder.set_aside_after(self.checkpoint.folder)
        if self.checkpoint is None and processes.is_first:
            config.warn_of_length(self._count_targets())
        self.n_tokens_before = self._read_n_tokens_before()
        self.model = self._make_model(shape, vectors).to(processes.device)

    @property
    def total_steps(self) -> int:
        """RETURNS (int): Length of the whole run."""
        return self.config.count_steps(
            self.counts.get("n_tokens", 0) + self.counts.get("n_sequences", 0)
        )

    def train(
        self, report: Callable[[Report, int], None], should_stop: Callable[[], bool]
    ) -> Progress:
        """Train to the end, or until somebody stops it; write `model-last` and
        `model-best`.

        report (Callable[[Report, int], None]): told about the run, and its length.
        should_stop (Callable[[], bool]): whether to end with a checkpoint.
        RETURNS (Progress): where it ended.
        """
        settings, processes, corpus = self.config.training, self.processes, self.corpus
        stream = BatchStream(
            corpus.read,
            self.vocabulary,
            batch_tokens=settings.batch_tokens,
            buffer_tokens=self.config.corpus.buffer_tokens,
            seed=settings.seed,
            rank=processes.rank,
            n_ranks=processes.n_ranks,
            n_pieces=settings.accumulate,
            n_steps=settings.state_steps,
            prefetch=self.config.corpus.n_workers > 0,
        )
        total_steps = self.total_steps

        def report_and_keep(about: Report) -> None:
            if about.is_best and processes.is_first:
                self._write(BEST, about.n_tokens, about.dev)
            report(about, total_steps)

        hooks = Hooks(
            save=self._save,
            report=report_and_keep,
            measure=self._measure if self.dev else None,
            should_stop=should_stop,
        )
        start = Progress(position=stream.start(corpus.start()))
        progress = train(
            self.model, stream, settings, total_steps, hooks, processes, start, self.checkpoint
        )
        if processes.is_first:
            self._write(LAST, progress.n_tokens, None)
        return progress

    def _make_model(self, shape: BiLMConfig, vectors: Optional[StaticVectors]) -> LanguageModel:
        model = self.config.make_model(shape, self.vocabulary, vectors)
        files = self.init
        if self.checkpoint is not None:
            files = CheckpointFiles(self.checkpoint.folder)
        if files is not None:
            start_bilm(model.bilm, files)
            stored = find_reader(files).read_softmax(files)
            n_words = 0
            if stored is not None:
                n_words = copy_softmax_rows(model.softmax, self.vocabulary.words, stored)
            logger.info("Started from %s, softmax rows of %d words", files, n_words)
        return model

    def _read_n_tokens_before(self) -> int:
        """What the weights that the run started from had read, as far as they tell."""
        if self.checkpoint is not None:
            return read_json_object(self.checkpoint.folder / META_FILE).get(
                "n_tokens_trained_before", 0
            )
        if self.init is None:
            return 0
        path = find_folder(self.init.path) / META_FILE
        meta = read_json_object(path) if path.exists() else {}
        counts = [meta.get(key) for key in ("n_tokens_trained", "n_tokens_trained_before")]
        return sum(count for count in counts if isinstance(count, int))

    def _count_targets(self) -> int:
        """Of the text, or of the part of it that a step reads if it was not counted."""
        if "n_tokens" in self.counts:
            return self.counts["n_tokens"] + self.counts["n_sequences"]
        return count_targets(self.corpus, self.config.training.batch_tokens)

    def _measure(self) -> Perplexity:
        p = self.processes
        scorer = Scorer(self.model, self.vocabulary)
        if self.config.training.state_steps:
            # In the text's order, which cannot be shared out.
            return measure(scorer, self.dev, stream=True, batch_tokens=_DEV_TOKENS)
        mine = measure(scorer, self.dev[p.rank :: p.n_ranks], batch_tokens=_DEV_TOKENS)
        sums = p.sum([float(value) for value in asdict(mine).values()])
        forward, backward, *counts = sums
        return Perplexity(forward, backward, *map(int, counts))

    def _save(self, progress: Progress, tensors: Dict[str, torch.Tensor]) -> None:
        if self.processes.is_first:
            meta = self._meta(progress.n_tokens, None)
            self.folder.save(
                self.model.bilm, self._softmax_weights(), asdict(progress), tensors, meta
            )
        self.processes.wait()  # none is ahead of a checkpoint

    def _write(self, name: str, n_tokens: int, dev: Optional[Perplexity]) -> None:
        meta = self._meta(n_tokens, dev)
        write_native(
            self.model.bilm,
            self.output / name,
            softmax=self._softmax_weights(),
            meta=meta,
            write_more=write_digests,
        )

    def _softmax_weights(self) -> SoftmaxWeights:
        kind, arguments = split_softmax(self.config.training.softmax)
        return pack_softmax(self.model.softmax, kind, arguments, self.vocabulary.words)

    def _meta(self, n_tokens: int, dev: Optional[Perplexity]) -> Dict[str, Any]:
        meta: Dict[str, Any] = {
            "lang": self.config.nlp["lang"],
            "tokenizer": self.config.nlp.get("tokenizer") or {},
            "spacy_elmo_version": version("spacy-elmo"),
            "n_tokens_trained": n_tokens,
            "n_tokens_trained_before": self.n_tokens_before,
            "n_tokens_of_text": self.counts.get("n_tokens"),
            "training": {**asdict(self.config.training), "teachers": self.config.teachers},
            # What `evaluate` takes by default.
            "evaluation": {
                "cut": self.config.corpus.cut,
                "max_tokens": self.config.corpus.max_tokens,
                "limit": self.config.training.eval_sequences,
                "stream": self.config.training.state_steps > 0,
            },
        }
        if dev is not None:
            forward, backward, mean = dev.perplexities
            meta["dev_perplexity"] = {
                "kind": "exact",
                "forward": forward,
                "backward": backward,
                "geometric_mean": mean,
                "n_sequences": dev.n_sequences,
                "n_predictions": dev.n_targets,
            }
        return meta


def _has_run(output: Path, resume: bool, processes: Processes) -> bool:
    """Whether there is a run to go on with. RAISES (ValueError): EL095 if there is one, and
    nobody said `resume`."""
    models = [name for name in (LAST, BEST) if find_folder(output / name).exists()]
    if (models or has_checkpoints(output)) and not resume:
        raise ValueError(Errors.EL095.format(path=output))
    # The last model is written after a checkpoint, the best one perhaps before the first.
    starts_over = models == [BEST] and not has_checkpoints(output)
    processes.wait()
    if starts_over and processes.is_first:
        kept = set_aside(find_folder(output / BEST))
        logger.warning(Warnings.WL030.format(path=output, kept=kept))
    return bool(models or has_checkpoints(output)) and not starts_over


def pretrain(
    config: Dict[str, Any],
    output: Path,
    *,
    resume: bool = False,
    device: str = "cpu",
    report: Callable[[Report, int], None] = lambda report, total_steps: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Progress:
    """Train a biLM on raw text. Under `torchrun`, call it in each process.

    config (Dict[str, Any]): see `configs/pretrain.cfg`, interpolated.
    output (Path): folder for checkpoints and models.
    resume (bool): go on with what the folder holds, if it holds something; always so
        when `torchrun` starts over after a failure.
    device (str): "cpu" or "cuda".
    report (Callable[[Report, int], None]): told about the run and its length in steps, in
        every process.
    should_stop (Callable[[], bool]): asked after every step.
    RETURNS (Progress): where it ended.
    RAISES (ValueError): EL090, EL091 and EL180 to EL182 for the config, as `Run`; EL093 if
        gradients stay infinite.
    """
    checked = RunConfig.check(config)
    checked.require_device(device)
    with join_processes(device) as processes, deterministic(checked.training.deterministic):
        resume = resume or int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) > 0
        run = Run(checked, Path(output), resume=resume, processes=processes)
        return run.train(report, should_stop)
