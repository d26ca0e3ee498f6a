"""`CheckpointReader`: how to read a format, and which one a path is in."""

from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import load_weights
from ..errors import Errors
from ..files import read_file, write_file
from ..registry import checkpoint_readers
from ..utils import show_reason
from .checkpoint_files import CheckpointFiles
from .named_models import list_models
from .steady_reading import read_steadily
from .tensors import StateDict

# A hundred million words.
_MOST_BYTES = 1_000_000_000


class SoftmaxWeights(NamedTuple):
    """What a language model predicts with, as it is stored.

    kind (str): registered name of the softmax, such as "full".
    settings (Dict[str, Any]): its further arguments.
    state (StateDict): its weights.
    words (List[str]): the vocabulary, in the order of the rows.
    """

    kind: str
    settings: Dict[str, Any]
    state: StateDict
    words: List[str]


class CheckpointReader(NamedTuple):
    """How to read one format.

    matches (Callable[[CheckpointFiles], bool]): whether the files are of this format,
        by their names alone.
    read_config (Callable[[CheckpointFiles], BiLMConfig]): the shape, if the weights' headers
        fit it: what is made of it is then as large as the file.
    read_state (Callable[[CheckpointFiles, BiLMConfig], StateDict]): weights by the
        names of `BiLM.state_dict()`, float32.
    read_softmax (Callable[[CheckpointFiles], Optional[SoftmaxWeights]]): the softmax;
        None if the checkpoint has none.

    All raise ValueError with a message that names the file.
    """

    matches: Callable[[CheckpointFiles], bool]
    read_config: Callable[[CheckpointFiles], BiLMConfig]
    read_state: Callable[[CheckpointFiles, BiLMConfig], StateDict]
    read_softmax: Callable[[CheckpointFiles], Optional[SoftmaxWeights]]


def find_reader(files: CheckpointFiles) -> CheckpointReader:
    """Find the format of a checkpoint.

    files (CheckpointFiles): where it lies.
    RETURNS (CheckpointReader): the first registered reader that knows the files.
    RAISES (ValueError): EL030 if the path does not exist, EL031 if no reader matches, EL324 if
        it is the name of an installed model, too.
    """
    files.require()
    for _, reader in sorted(checkpoint_readers.get_all().items()):
        if reader.matches(files):
            return reader
    message = Errors.EL324 if str(files) in list_models() else Errors.EL031
    raise ValueError(message.format(path=files))


def read_bilm(files: CheckpointFiles) -> BiLM:
    """Make a biLM from a checkpoint of any known format.

    files (CheckpointFiles): the checkpoint.
    RETURNS (BiLM): of its shape, with its weights.
    RAISES (ValueError): EL020 to EL022 if the weights do not fit the shape, EL030 to EL038
        if they cannot be read, EL100 to EL114 for files that are damaged or no weights,
        EL335 if another process replaces them all the time.
    """
    return _make_bilm(files, *read_steadily(files, lambda: _read_weights(files)))


def read_with_softmax(files: CheckpointFiles) -> Tuple[BiLM, Optional[SoftmaxWeights]]:
    """Read a biLM and its softmax, both of the same moment.

    files (CheckpointFiles): the checkpoint.
    RETURNS (Tuple[BiLM, Optional[SoftmaxWeights]]): the biLM, and the softmax; None if it has
        none.
    RAISES (ValueError): as `read_bilm`.
    """
    weights, softmax = read_steadily(
        files, lambda: (_read_weights(files), find_reader(files).read_softmax(files))
    )
    return _make_bilm(files, *weights), softmax


def _read_weights(files: CheckpointFiles) -> Tuple[BiLMConfig, StateDict]:
    reader = find_reader(files)
    config = reader.read_config(files)
    return config, reader.read_state(files, config)


def _make_bilm(files: CheckpointFiles, config: BiLMConfig, state: StateDict) -> BiLM:
    bilm = BiLM(config)
    load_weights(bilm, state, str(files))
    return bilm


def fill_bilm(bilm: BiLM, files: CheckpointFiles, mismatch: str) -> None:
    """Fill a biLM from a checkpoint of any known format.

    bilm (BiLM): what to fill; untouched if anything is wrong.
    files (CheckpointFiles): the checkpoint.
    mismatch (str): message for another shape, with places for {path} and {differences}.
    RAISES (ValueError): with that message if the shapes differ; else as `read_bilm`.
    """

    def read() -> StateDict:
        reader = find_reader(files)
        config = reader.read_config(files)
        differences = bilm.config.differences(config)
        if differences:
            text = mismatch.format(path=files.path, differences="; ".join(differences))
            raise ValueError(text)
        return reader.read_state(files, config)

    load_weights(bilm, read_steadily(files, read), str(files))


def read_words(path: Path) -> List[str]:
    """Read a list of words.

    path (Path): a word in each line, UTF-8, with or without a mark (BOM).
    RETURNS (List[str]): the words.
    RAISES (ValueError): EL070 if the file cannot be read.
    """
    try:
        lines = read_file(path, _MOST_BYTES).decode("utf-8-sig").split("\n")
    except ValueError as err:
        raise ValueError(Errors.EL070.format(path=path, error=show_reason(err))) from err
    return [word for line in lines if (word := line.rstrip("\r"))]


def write_words(path: Path, words: Sequence[str]) -> None:
    """path (Path): file for `read_words`. words (Sequence[str]): without line breaks."""
    write_file(path, "".join(f"{word}\n" for word in words).encode("utf-8"))
