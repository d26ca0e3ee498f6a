"""Checkpoints of a run, whole or not at all."""

import hashlib
import json
import logging
import shutil
from pathlib import Path
from textwrap import shorten
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import safetensors.torch
import srsly
from safetensors import SafetensorError
from torch import Tensor

from ..bilm.model import BiLM
from ..checkpoints.formats import SoftmaxWeights, read_words
from ..checkpoints.native import VOCAB_FILE, write_native
from ..errors import Warnings
from ..files import DIGESTS_FILE, check_all_digests, check_digests, read_json_object, write_digests

logger = logging.getLogger("spacy_elmo")

TENSORS_FILE = "training.safetensors"
STATE_FILE = "training.json"
# The models of a run.
LAST, BEST = "model-last", "model-best"
_FOLDER = "checkpoints"
_PATTERN = "step-?????????"
# The last one, and the one before in case it is damaged.
_N_KEPT = 2
# What reading a checkpoint raises that somebody changed.
_DAMAGED = (ValueError, OSError, KeyError, TypeError, AttributeError, SafetensorError)


class Checkpoint(NamedTuple):
    """All that a run needs to resume.

    folder (Path): with the weights, as `write_native` writes them.
    state (Dict[str, Any]): step, position of the stream, best score, in JSON's types.
    tensors (Dict[str, Tensor]): the state of optimizer, teachers and LSTM.
    """

    folder: Path
    state: Dict[str, Any]
    tensors: Dict[str, Tensor]


class RunFolder:
    """The output of a run: `checkpoints/step-NNNNNNNNN`, and the files of other modules.

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
        tensors (Dict[str, Tensor]): the state of optimizer, teachers and LSTM.
        meta (Dict[str, Any]): for meta.json.
        RETURNS (Path): its folder.
        """

        def write_more(folder: Path) -> None:
            packed = {name: tensor.contiguous() for name, tensor in tensors.items()}
            (folder / TENSORS_FILE).write_bytes(safetensors.torch.save(packed))
            content = {"identity": self.identity, "state": state}
            # Python's own: srsly's keeps ten decimals of a number.
            (folder / STATE_FILE).write_text(json.dumps(content), encoding="ascii")
            write_digests(folder)

        folder = self.folder / f"step-{state['step']:09d}"
        write_native(bilm, folder, softmax=softmax, meta=meta, write_more=write_more)
        # Partial ones are of processes that were killed: no other process writes checkpoints.
        for old in [*_list_folders(self.path)[_N_KEPT:], *self.folder.glob(f".{_PATTERN}.partial")]:
            shutil.rmtree(old)
        return folder

    def set_aside_after(self, folder: Path) -> None:
        """Rename the checkpoints that come after the one that the run resumes from: they were
        refused, and the run will come to their steps again.

        folder (Path): of the one that it resumes from.
        """
        for later in _list_folders(self.path):
            if later.name > folder.name:
                set_aside(later)

    def find_last(self) -> Optional[Checkpoint]:
        """Find the last checkpoint that is whole and of this run. Others are left where
        they are, each with a warning.

        RETURNS (Optional[Checkpoint]): the checkpoint; None if there is none.
        """
        for folder in _list_folders(self.path):
            try:
                content = _read_state(folder)
                # No view of the file, which would stay open and could not be removed on Windows.
                tensors = safetensors.torch.load((folder / TENSORS_FILE).read_bytes())
                problem = self._compare(content)
                if problem is None:
                    return Checkpoint(folder, content["state"], tensors)
            except _DAMAGED as err:
                problem = f"it cannot be read: {err}".rstrip(".")
            logger.warning(Warnings.WL004.format(folder=folder, problem=problem))
        return None

    def _compare(self, content: Dict[str, Any]) -> Optional[str]:
        identity, stored = self.identity, content["identity"]
        if _is_older(content):  # its numbers have ten decimals
            identity = srsly.json_loads(srsly.json_dumps(identity))
        if "text" in stored and "text" in identity:
            identity = {**identity, "text": _describe_as_before(identity["text"], stored["text"])}
        for key, value in identity.items():
            # A run has nothing under a key that is newer than it is.
            if stored.get(key) != value and (value or stored.get(key)):
                where, before, now = _find_difference(key, stored.get(key), value)
                return f"it is of another run: {where} was {before}, now {now}"
        return None


def _describe_as_before(text: Dict[str, Any], stored: Dict[str, Any]) -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): a text as it is stored, by a version that knew files by name and
    size, and lists of words by their path."""
    files = stored.get("files", [])
    if not files or len(files[0]) != 2:
        return text
    lists = {key: stored[key] for key in ("vocabulary", "include") if stored.get(key)}
    return {**text, **lists, "files": [file[:2] for file in text["files"]]}


def _read_state(folder: Path) -> Dict[str, Any]:
    """Read training.json of a checkpoint that is whole."""
    has_digests = check_all_digests(folder)
    content = read_json_object(folder / STATE_FILE)
    if not has_digests and not _is_older(content):
        raise ValueError(f"{DIGESTS_FILE} is missing")
    for name, expected in content.get("files", {}).items():
        path = folder / name
        if not path.exists() or _hash(path) != expected:
            raise ValueError(f"{name} is damaged or missing")
    return content


def _is_older(content: Dict[str, Any]) -> bool:
    """Before there were digests, training.json had those of the other files."""
    return "files" in content


def set_aside(folder: Path) -> Path:
    """folder (Path): what a run will write again, though not necessarily the same.
    RETURNS (Path): its new name."""
    target = folder.with_name(f"{folder.name}.refused")
    shutil.rmtree(target, ignore_errors=True)
    folder.rename(target)
    return target


def find_words(path: Path) -> Optional[List[str]]:
    """Find the words that a run predicts. All of its checkpoints have the same.

    path (Path): the run's folder.
    RETURNS (Optional[List[str]]): those of the last checkpoint in which they are whole; None
        if there is none.
    """
    for folder in _list_folders(path):
        try:
            if (folder / DIGESTS_FILE).exists():
                check_digests(folder, [VOCAB_FILE])
            else:
                _read_state(folder)
            return read_words(folder / VOCAB_FILE)
        except _DAMAGED:
            continue  # `find_last` tells
    return None


def _list_folders(path: Path) -> List[Path]:
    """The checkpoints of a run, the newest first."""
    return sorted((path / _FOLDER).glob(_PATTERN), reverse=True)


def _find_difference(where: str, before: Any, now: Any) -> Tuple[str, str, str]:
    """The first value that two blocks do not share: its place, and both, shortened."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            if before.get(key) != now.get(key):
                return _find_difference(f"{where}.{key}", before.get(key), now.get(key))
    if isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            lost, new = ([x for x in a if x not in b] for a, b in ((before, now), (now, before)))
            return where, _show_list(before, lost), _show_list(now, new)
        for i, pair in enumerate(zip(before, now)):
            if pair[0] != pair[1]:
                return _find_difference(f"{where}[{i}]", *pair)
    return where, shorten(repr(before), 200), shorten(repr(now), 200)


def _show_list(values: List[Any], others: List[Any]) -> str:
    examples = f" with {shorten(repr(others[0]), 100)}" if others else ""
    return f"a list of {len(values)}{examples}"


def has_checkpoints(path: Path) -> bool:
    """path (Path): a run's folder. RETURNS (bool): Whether a checkpoint was written."""
    return bool(_list_folders(path))


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
