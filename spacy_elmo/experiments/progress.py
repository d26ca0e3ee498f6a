"""What a run reports while it trains: its progress, and its learning curve."""

import time
from typing import IO, Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from spacy import registry
from spacy.language import Language

from ..utils import release_memory

# For the configs of runs alone, so not an entry point.
LOGGER = "spacy-elmo.RunLog.v1"
# Seconds between two reports.
_INTERVAL = 0.5


class RunProgress(NamedTuple):
    """run (str): title of the run. step (int): updates so far. score (Optional[float]): of the
    last evaluation on dev, from 0 to 1; None before the first. is_new (bool): whether that
    evaluation was at this step."""

    run: str
    step: int
    score: Optional[float] = None
    is_new: bool = False


OnProgress = Callable[[RunProgress], None]


class RunLog:
    """A logger of spaCy's training loop.

    run (str): title of the run.
    score (str): the key of the score.
    report (Callable[[RunProgress], None]): called at the start, at each evaluation on dev, and
        in between twice a second.
    curve (List[Dict[str, Any]]): of each evaluation on dev "step", "epoch" and "score".
    """

    def __init__(self, run: str, score: str, report: OnProgress) -> None:
        self.run = run
        self.score = score
        self.curve: List[Dict[str, Any]] = []
        self._report = report
        self._last = RunProgress(run, 0)
        self._time = time.monotonic()
        report(self._last)

    def __call__(
        self, nlp: Language, stdout: Optional[IO] = None, stderr: Optional[IO] = None
    ) -> Tuple[Callable[[Optional[Dict[str, Any]]], None], Callable[[], None]]:
        """As spaCy calls a logger. RETURNS (Tuple[Callable, Callable]): what is called with
        each update, and at the end."""
        return self._log, _do_nothing

    def _log(self, info: Optional[Dict[str, Any]]) -> None:
        """info (Optional[Dict[str, Any]]): of an evaluation on dev; None if there was none."""
        if info is not None:
            self._evaluate(info)
            # Batches differ in size: in hours a run would come to several times what it needs.
            release_memory()
        else:
            self._last = self._last._replace(step=self._last.step + 1, is_new=False)
        if info is not None or time.monotonic() - self._time > _INTERVAL:
            self._time = time.monotonic()
            self._report(self._last)

    def _evaluate(self, info: Dict[str, Any]) -> None:
        score = info["other_scores"].get(self.score)
        self._last = RunProgress(self.run, info["step"], score, is_new=True)
        # A dev set without labels has none.
        if score is not None:
            self.curve.append({"step": info["step"], "epoch": info["epoch"], "score": score})

    def register(self) -> Dict[str, str]:
        """Register this log for a config, replacing an earlier one. RETURNS (Dict[str, str]):
        its [training.logger]."""
        registry.loggers.register(LOGGER, func=lambda: self)
        return {"@loggers": LOGGER}


def _do_nothing() -> None:
    """The end of training needs no log."""
