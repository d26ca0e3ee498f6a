"""The mixes that the tasks learned (Peters et al. 2018, figure 2), read and logged."""

import sys
from pathlib import Path
from typing import IO, Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import srsly
from spacy.language import Language
from spacy.training.loggers import console_logger_v3
from thinc.api import Model

from ..errors import Errors
from ..layers.elmo_layers import LAYERS_NAME
from ..layers.elmo_tok2vec import PLACE
from ..layers.scalar_mix import get_gamma, get_shares

# spaCy's types: called with the scores of a step, and at the end.
LogStep = Callable[[Optional[Dict[str, Any]]], None]
SetupLogger = Callable[[Language, IO, IO], Tuple[LogStep, Callable[[], None]]]


class LayerWeights(NamedTuple):
    """One learned mix.

    component (str): name of the pipe that it belongs to.
    place (str): "shared" for the mix that spaCy's own listeners read; "input", "output" in
        an `ElmoTok2Vec`; else "alone".
    shares (List[float]): share of each layer, the word layer first; their sum is 1, or
        each is 1 with `output = "all"`.
    gamma (float): the scale.
    """

    component: str
    place: str
    shares: List[float]
    gamma: float


def collect_weights(nlp: Language) -> List[LayerWeights]:
    """Find the mixes of a pipeline, in its order, also after `nlp.replace_listeners`.

    nlp (Language): the pipeline.
    RETURNS (List[LayerWeights]): the mixes.
    RAISES (ValueError): EL063 without mixes.
    EXAMPLE:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> elmo = nlp.add_pipe("elmo")
        >>> [(mix.place, [round(share, 2) for share in mix.shares]) for mix in collect_weights(nlp)]
        [('shared', [0.33, 0.33, 0.33])]
    """
    mixes: List[LayerWeights] = []
    for name, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        found = []
        for node in model.walk() if isinstance(model, Model) else ():
            # A mix stands at the end of a chain: behind a listener, or behind the biLM.
            if len(node.layers) == 2 and node.layers[1].name == "scalar_mix":
                source, mix = node.layers
                is_shared = source.name == LAYERS_NAME and node is model
                place = "shared" if is_shared else node.attrs.get(PLACE, "alone")
                found.append(LayerWeights(name, place, get_shares(mix), get_gamma(mix)))
        mixes += sorted(found, key=lambda each: each.place)
    if not mixes:
        names = ", ".join(nlp.pipe_names) or "no components"
        raise ValueError(Errors.EL063.format(names=names))
    return mixes


def build_weights_logger_v1(
    logger: Optional[SetupLogger] = None, path: Optional[str] = None
) -> SetupLogger:
    """Log the mixes at each evaluation of `spacy train`. If the optimizer has `use_averages`, their
    running averages are saved.

    logger (Optional[SetupLogger]): logs the rest; null for spaCy's own, in the console.
    path (Optional[str]): a JSONL file with a line for each evaluation: "step", "epoch",
        "score" and "mixes"; an old one is replaced, and its folder is made. null to leave the
        mixes to `logger`, which gets them under "elmo_weights".
    RETURNS (SetupLogger): for [training.logger].
    """
    inner = console_logger_v3() if logger is None else logger

    def setup(
        nlp: Language, stdout: IO = sys.stdout, stderr: IO = sys.stderr
    ) -> Tuple[LogStep, Callable[[], None]]:
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            srsly.write_jsonl(path, [])
        log_inner, finalize = inner(nlp, stdout, stderr)

        def log_step(info: Optional[Dict[str, Any]]) -> None:
            if info is not None:
                mixes = [mix._asdict() for mix in collect_weights(nlp)]
                info = {**info, "elmo_weights": mixes}
                if path is not None:
                    line = {key: info[key] for key in ("step", "epoch", "score")}
                    line["mixes"] = mixes
                    srsly.write_jsonl(path, [line], append=True, append_new_line=False)
            log_inner(info)

        return log_step, finalize

    return setup
