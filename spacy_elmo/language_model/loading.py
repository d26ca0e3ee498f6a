"""Language models from checkpoints: a biLM together with its softmax."""

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence

import torch
from torch import nn

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import (
    TensorHeader,
    check_headers,
    get_headers,
    load_weights,
    usual_numbers,
    without_memory,
)
from ..checkpoints.formats import (
    CheckpointFiles,
    SoftmaxWeights,
    find_reader,
    read_bilm,
    read_with_softmax,
)
from ..errors import Errors
from ..registry import softmaxes
from ..utils import show_reason
from .objective import LanguageModel
from .softmax import Softmax, SoftmaxModule, make_softmax
from .vocabulary import Vocabulary

# Keys of a shape that depend on the vocabulary, and the tensors that do.
_TABLE_KEYS = ("n_words", "vector_width")
_TABLE_TENSORS = ("word_table.keys", "word_table.vectors")


class LoadedModel(NamedTuple):
    """A language model, the words that it predicts, and the settings of its softmax."""

    model: LanguageModel
    vocabulary: Vocabulary
    settings: Dict[str, Any]


def load_language_model(files: CheckpointFiles) -> LoadedModel:
    """Load a biLM and its softmax, in evaluation mode (EL074 if it has no softmax, EL020 and EL021
    if the softmax does not fit, EL112 if it cannot be built)."""
    bilm, stored = read_with_softmax(files)
    if stored is None:
        raise ValueError(Errors.EL074.format(path=files))
    vocabulary = Vocabulary(stored.words)
    softmax = _load_softmax(stored, bilm.config.direction_width, str(files))
    # float() because torch's default type may be another one.
    model = LanguageModel(bilm, softmax).float().eval()
    return LoadedModel(model, vocabulary, stored.settings)


@usual_numbers()
def _load_softmax(stored: SoftmaxWeights, width: int, source: str) -> SoftmaxModule:
    """Build a softmax, after its tensors were compared with its settings and words."""
    maker = softmaxes.get_all().get(stored.kind)
    if isinstance(maker, type) and issubclass(maker, Softmax):
        _check_rows(stored, width, source)
    else:
        with _invalid_settings(source), without_memory():
            planned = make_softmax(stored.kind, width, len(stored.words), **stored.settings)
        check_headers(get_headers(planned.state_dict()), get_headers(stored.state), source)
    with _invalid_settings(source):
        softmax = make_softmax(stored.kind, width, len(stored.words), **stored.settings)
    # A class of another package may be registered under another name.
    softmax.kind = stored.kind
    load_weights(softmax, stored.state, source)
    return softmax


def _check_rows(stored: SoftmaxWeights, width: int, source: str) -> None:
    n_words = len(stored.words)
    expected = {"weight": TensorHeader((n_words, width)), "bias": TensorHeader((n_words,))}
    rows = {name: stored.state[name] for name in expected if name in stored.state}
    check_headers(expected, get_headers(rows), source)


@contextmanager
def _invalid_settings(source: str) -> Iterator[None]:
    """Raise EL112 for settings from a file, whatever the class raises."""
    try:
        yield
    except Exception as err:
        text = Errors.EL112.format(path=source, problem=show_reason(err))
        raise ValueError(text) from err


def collect_softmax(
    softmax: nn.Module, kind: str, settings: Dict[str, Any], words: Sequence[str]
) -> SoftmaxWeights:
    """Collect what is stored of a softmax that was made from `kind` and `settings`."""
    return SoftmaxWeights(kind, dict(settings), softmax.state_dict(), list(words))


def require_same_shape(shape: BiLMConfig, files: CheckpointFiles) -> None:
    """Raise EL097 if a biLM cannot start from a checkpoint, since their shapes differ in more than
    the size of a word table."""
    _require_equal(shape, find_reader(files).read_config(files), files, but=_TABLE_KEYS)


def _require_equal(
    shape: BiLMConfig, other: BiLMConfig, files: CheckpointFiles, but: Sequence[str] = ()
) -> None:
    differences = "; ".join(shape.differences(other, but=but))
    if differences:
        raise ValueError(Errors.EL097.format(path=files.path, differences=differences))


@torch.no_grad()
def start_bilm(bilm: BiLM, files: CheckpointFiles) -> None:
    """Copy the weights of a checkpoint to a biLM. A trained word table takes the vectors of the
    words that both know; the others keep their random vectors."""
    require_same_shape(bilm.config, files)
    other = read_bilm(files)
    state = other.state_dict()
    if bilm.config.input == "words":
        table, old = bilm.word_table, other.word_table
        if len(old.keys):
            positions = torch.searchsorted(old.keys, table.keys).clamp(max=len(old.keys) - 1)
            known = old.keys[positions] == table.keys
            table.vectors[known] = old.vectors[positions[known]]
        state = {name: t for name, t in state.items() if name not in _TABLE_TENSORS}
        state = {**bilm.state_dict(), **state}
    else:
        _require_equal(bilm.config, other.config, files)
    bilm.load_state_dict(state)


@torch.no_grad()
def copy_softmax_rows(softmax: nn.Module, words: List[str], stored: SoftmaxWeights) -> int:
    """Copy the rows of the words that two softmaxes share, and return their number; 0 if one of
    the two has no rows. The others keep their random rows."""
    if stored.words == words and get_headers(stored.state) == get_headers(softmax.state_dict()):
        load_weights(softmax, stored.state, "the stored softmax")
        return len(words)
    if not isinstance(softmax, Softmax) or "weight" not in stored.state:
        return 0
    _check_rows(stored, softmax.weight.size(1), "the stored softmax")
    rows = {word: row for row, word in enumerate(stored.words)}
    pairs = [(i, rows[word]) for i, word in enumerate(words) if word in rows]
    if pairs:
        ours, theirs = torch.tensor(pairs, device="cpu").T
        softmax.weight[ours] = stored.state["weight"][theirs].to(softmax.weight)
        softmax.bias[ours] = stored.state["bias"][theirs].to(softmax.bias)
    return len(pairs)
