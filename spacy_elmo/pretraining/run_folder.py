"""`RunFolder`: the checkpoints of a run, whole or not at all."""

import hashlib
import logging
import shutil
from pathlib import Path
from textwrap import shorten
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import safetensors.torch
import srsly
from torch import Tensor

from ..bilm.model import BiLM
from ..checkpoints.native import write_native
from ..checkpoints.reader import SoftmaxWeights
from ..errors import Warnings

logger = logging.getLogger("spacy_elmo")

TENSORS_FILE = "training.safetensors"
STATE_FILE = "training.json"
_FOLDER = "checkpoints"
_PATTERN = "step-?????????"
# The last one, and the one before in case it is damaged.
_N_KEPT = 2


class Checkpoint(NamedTuple):
    """All that a run needs to go on.

    folder (Path): with the weights, as `write_native` writes them.
    state (Dict[str, Any]): step, position of the stream, best score, in JSON's types.
    tensors (Dict[str, Tensor]): what the optimizer and the LSTM remember.
    """

    folder: Path
    state: Dict[str, Any]
    tensors: Dict[str, Tensor]


class RunFolder:
    """The output of a run: `checkpoints/step-NNNNNNNNN`, and what others put beside.

    path (Path): the folder; made if it is missing.
    identity (Dict[str, Any]): what must be equal for a checkpoint to be of this run,
        in JSON's types.
    """

    def __init__(self, path: Path, identity: Dict[str, Any]) -> None:
        self.path = path
        self.identity = identity
        self.folder = path / _FOLDER

    def save(
        self,
        bilm: BiLM,
        softmax: SoftmaxWeights,
        state: Dict[str, Any],
        tensors: Dict[str, Tensor],
        meta: Dict[str, Any],
    ) -> Path:
        """Write a checkpoint and remove those before the last two.

        bilm (BiLM): the weights.
        softmax (SoftmaxWeights): the softmax's.
        state (Dict[str, Any]): with "step".
        tensors (Dict[str, Tensor]): what the optimizer and the LSTM remember.
        meta (Dict[str, Any]): for meta.json.
        RETURNS (Path): its folder.
        """

        def write_more(folder: Path) -> None:
            packed = {name: tensor.contiguous() for name, tensor in tensors.items()}
            (folder / TENSORS_FILE).write_bytes(safetensors.torch.save(packed))
            hashes = {p.name: _hash(p) for p in sorted(folder.iterdir())}
            about = {"identity": self.identity, "files": hashes, "state": state}
            srsly.write_json(folder / STATE_FILE, about)

        folder = self.folder / f"step-{state['step']:09d}"
        write_native(bilm, folder, softmax=softmax, meta=meta, write_more=write_more)
        for old in self._folders()[_N_KEPT:]:
            shutil.rmtree(old)
        return folder

    def set_aside_after(self, folder: Path) -> None:
        """Rename the checkpoints that come after the one that is gone on with: they were
        refused, and the run will come to their steps again.

        folder (Path): the checkpoint's.
        """
        for later in self._folders():
            if later.name > folder.name:
                target = later.with_name(f"{later.name}.refused")
                shutil.rmtree(target, ignore_errors=True)
                later.rename(target)

    def find_last(self) -> Optional[Checkpoint]:
        """Find the last checkpoint that is whole and of this run. Others are left where
        they are, each with a warning.

        RETURNS (Optional[Checkpoint]): the checkpoint; None if there is none.
        """
        for folder in self._folders():
            try:
                about = srsly.read_json(folder / STATE_FILE)
                problem = next(self._problems(folder, about), None)
                if problem is None:
                    tensors = safetensors.torch.load_file(folder / TENSORS_FILE)
                    return Checkpoint(folder, about["state"], tensors)
            except (ValueError, OSError, KeyError, TypeError, AttributeError) as err:
                problem = f"{STATE_FILE} cannot be read: {err}"
            logger.warning(Warnings.WL004.format(folder=folder, problem=problem))
        return None

    def _problems(self, folder: Path, about: Dict[str, Any]) -> Iterator[str]:
        for key, value in self.identity.items():
            found = about["identity"].get(key)
            # A run has nothing under a key that is newer than it is.
            if found != value and (value or found):
                where, before, now = _find_difference(key, found, value)
                yield f"it is of another run: {where} was {before}, now {now}"
        for name, expected in about["files"].items():
            path = folder / name
            if not path.exists() or _hash(path) != expected:
                yield f"{name} is damaged or missing"

    def _folders(self) -> List[Path]:
        """Newest first."""
        return sorted(self.folder.glob(_PATTERN), reverse=True)


def _find_difference(where: str, before: Any, now: Any) -> Tuple[str, str, str]:
    """The first value that two blocks do not share: its place, and both, shortened."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            if before.get(key) != now.get(key):
                return _find_difference(f"{where}.{key}", before.get(key), now.get(key))
    if isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            return where, f"a list of {len(before)}", f"one of {len(now)}"
        for i, pair in enumerate(zip(before, now)):
            if pair[0] != pair[1]:
                return _find_difference(f"{where}[{i}]", *pair)
    return where, shorten(repr(before), 200), shorten(repr(now), 200)


def has_checkpoints(path: Path) -> bool:
    """path (Path): a run's folder. RETURNS (bool): Whether a checkpoint was written."""
    return any((path / _FOLDER).glob(_PATTERN))


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
