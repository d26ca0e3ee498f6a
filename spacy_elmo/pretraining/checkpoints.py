"""`RunFolder`: the checkpoints of a run, each written whole or not at all."""

import json
import logging
import shutil
from pathlib import Path
from textwrap import shorten
from typing import Any, Dict, List, NamedTuple, Optional

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ..bilm.model import BiLM
from ..checkpoints.formats import SoftmaxWeights
from ..checkpoints.native import write_native
from ..errors import Warnings
from ..files import DIGESTS_FILE, check_digests, read_json_object, write_digests

logger = logging.getLogger("spacy_elmo")

TENSORS_FILE = "training.safetensors"
STATE_FILE = "training.json"
# The last one, and the one before in case it is damaged.
_N_KEPT = 2
_DAMAGED = (ValueError, OSError, KeyError, TypeError, AttributeError, SafetensorError)
# Former versions stored these, too, which follow from the rest.
_FORMER = ("n_words", "rows")


class Checkpoint(NamedTuple):
    """All that a run needs to resume: a folder with weights and words, the fields of `Progress`,
    and the state of optimizer, teachers and LSTMs."""

    folder: Path
    state: Dict[str, Any]
    tensors: Dict[str, Tensor]


class RunFolder:
    """The folder of a run, with checkpoints in `checkpoints/step-NNNNNNNNN`. `identity` is what
    must be equal in a checkpoint of this run, in JSON types."""

    def __init__(self, path: Path, identity: Dict[str, Any]) -> None:
        self.path = path
        self.identity = identity

    def save(
        self,
        bilm: BiLM,
        softmax: SoftmaxWeights,
        state: Dict[str, Any],
        tensors: Dict[str, Tensor],
        meta: Dict[str, Any],
    ) -> Path:
        """Write a checkpoint, then remove all but the last two, and damaged ones of later steps,
        which the run repeats."""

        def write_more(folder: Path) -> None:
            packed = {name: tensor.contiguous() for name, tensor in tensors.items()}
            # Not save_file, whose errors are not OSError.
            (folder / TENSORS_FILE).write_bytes(safetensors.torch.save(packed))
            content = {"identity": self.identity, "state": state}
            # Not srsly, which rounds numbers to ten decimals.
            (folder / STATE_FILE).write_text(json.dumps(content), encoding="ascii")
            write_digests(folder)

        folder = self.path / "checkpoints" / f"step-{state['step']:09d}"
        write_native(bilm, folder, softmax=softmax, meta=meta, write_more=write_more)
        folders = list_checkpoints(self.path)
        place = folders.index(folder)
        # Partial folders are of processes that were killed.
        partial = folder.parent.glob(".step-*.partial")
        for old in (*folders[:place], *folders[place + _N_KEPT :], *partial):
            shutil.rmtree(old)
        return folder

    def find_last(self) -> Optional[Checkpoint]:
        """Find the last checkpoint that is whole and of this run. Warns of others (WL004)."""
        for folder in list_checkpoints(self.path):
            try:
                if not check_digests(folder):
                    raise ValueError(f"{DIGESTS_FILE} is missing")
                content = read_json_object(folder / STATE_FILE)
                # Not load_file, whose views keep the file open.
                tensors = safetensors.torch.load((folder / TENSORS_FILE).read_bytes())
                # Former versions stored "" for an option that was not used.
                stored = {
                    key: value
                    for key, value in content["identity"].items()
                    if key not in _FORMER and value != ""
                }
                difference = _find_difference("", stored, self.identity)
                if difference is None:
                    return Checkpoint(folder, content["state"], tensors)
                problem = f"it is of another run: {difference}"
            except _DAMAGED as err:
                problem = f"it cannot be read: {err}".rstrip(".")
            logger.warning(Warnings.WL004.format(folder=folder, problem=problem))
        return None


def list_checkpoints(path: Path) -> List[Path]:
    """List the checkpoints of a run's folder, the newest first."""
    return sorted((path / "checkpoints").glob("step-?????????"), reverse=True)


def _find_difference(where: str, before: Any, now: Any) -> Optional[str]:
    """Describe the first value in which two blocks differ."""
    if before == now:
        return None
    if isinstance(before, dict) and isinstance(now, dict):
        found = (
            _find_difference(f"{where}.{key}".lstrip("."), before.get(key), now.get(key))
            for key in sorted({*before, *now})
        )
        return next((difference for difference in found if difference), None)
    if isinstance(before, list) and isinstance(now, list):
        # Of long lists of files, those that only one has.
        before, now = ([x for x in a if x not in b] for a, b in ((before, now), (now, before)))
    return f"{where} was {shorten(repr(before), 200)}, now {shorten(repr(now), 200)}"
