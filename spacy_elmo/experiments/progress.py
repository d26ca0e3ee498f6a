"""What a run tells while it trains: where it stands, and its curve."""

import time
from typing import IO, Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from spacy import registry
from spacy.language import Language

# For the configs of runs alone, so not an entry point.
LOGGER = "spacy-elmo.RunLog.v1"
# Seconds between two reports.
_INTERVAL = 0.5


class Progress(NamedTuple):
    """run (str): which it is. step (int): updates so far. score (Optional[float]): of the
    last look at dev, from 0 to 1; None before the first. is_new (bool): whether the look was
    at this step."""

    run: str
    step: int
    score: Optional[float] = None
    is_new: bool = False


Tell = Callable[[Progress], None]


class RunLog:
    """A logger of spaCy's training loop.

    run (str): which it is.
    score (str): the key of the score.
    tell (Callable[[Progress], None]): called at the start, at each look at dev, and in
        between twice a second.
    curve (List[Dict[str, Any]]): of each look at dev "step", "epoch" and "score".
    """

    def __init__(self, run: str, score: str, tell: Tell) -> None:
        self.run = run
        self.score = score
        self.curve: List[Dict[str, Any]] = []
        self._tell = tell
        self._last = Progress(run, 0)
        self._time = time.monotonic()
        tell(self._last)

    def __call__(
        self, nlp: Language, stdout: Optional[IO] = None, stderr: Optional[IO] = None
    ) -> Tuple[Callable[[Optional[Dict[str, Any]]], None], Callable[[], None]]:
        """As spaCy calls a logger. RETURNS (Tuple[Callable, Callable]): what is called with
        each update, and at the end."""
        return self._log, _do_nothing

    def _log(self, info: Optional[Dict[str, Any]]) -> None:
        """info (Optional[Dict[str, Any]]): at a look at dev; None otherwise."""
        if info is not None:
            self._look(info)
        else:
            self._last = self._last._replace(step=self._last.step + 1, is_new=False)
        if info is not None or time.monotonic() - self._time > _INTERVAL:
            self._time = time.monotonic()
            self._tell(self._last)

    def _look(self, info: Dict[str, Any]) -> None:
        score = info["other_scores"].get(self.score)
        self._last = Progress(self.run, info["step"], score, is_new=True)
        # A dev set without labels has none.
        if score is not None:
            self.curve.append({"step": info["step"], "epoch": info["epoch"], "score": score})

    def register(self) -> Dict[str, str]:
        """Have a config find this log, in place of an earlier one. RETURNS (Dict[str, str]):
        its [training.logger]."""
        registry.loggers.register(LOGGER, func=lambda: self)
        return {"@loggers": LOGGER}


def _do_nothing() -> None:
    """Stand for an end at which there is nothing to do."""
