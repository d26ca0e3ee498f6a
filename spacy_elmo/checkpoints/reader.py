"""`CheckpointReader`: how to read a format, and which one a path is in."""

from typing import Callable, Dict, NamedTuple

from torch import Tensor

from ..bilm.config import BiLMConfig
from ..errors import Errors
from ..registry import checkpoint_readers
from .files import CheckpointFiles

StateDict = Dict[str, Tensor]


class CheckpointReader(NamedTuple):
    """How to read one format.

    matches (Callable[[CheckpointFiles], bool]): whether the files are of this format,
        by their names alone.
    read_config (Callable[[CheckpointFiles], BiLMConfig]): the shape.
    read_state (Callable[[CheckpointFiles, BiLMConfig], StateDict]): weights by the
        names of `BiLM.state_dict()`, float32.

    All raise ValueError with a message that names the file.
    """

    matches: Callable[[CheckpointFiles], bool]
    read_config: Callable[[CheckpointFiles], BiLMConfig]
    read_state: Callable[[CheckpointFiles, BiLMConfig], StateDict]


def find_reader(files: CheckpointFiles) -> CheckpointReader:
    """Find the format of a checkpoint.

    files (CheckpointFiles): where it lies.
    RETURNS (CheckpointReader): the first registered reader that knows the files.
    RAISES (ValueError): EL030 if the path does not exist, EL031 if no reader matches.
    """
    files.require()
    for _, reader in sorted(checkpoint_readers.get_all().items()):
        if reader.matches(files):
            return reader
    raise ValueError(Errors.EL031.format(path=files))
