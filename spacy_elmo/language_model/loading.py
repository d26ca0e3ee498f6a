"""Language models from checkpoints: a biLM together with its softmax."""

from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence

import torch
from torch import Tensor, nn

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import TensorHeader, check_headers, get_headers, load_weights
from ..checkpoints.formats import (
    CheckpointFiles,
    SoftmaxWeights,
    fill_bilm,
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

# What differs between the tables of two vocabularies.
_WORDS_OF_TABLE = ("word_table.keys", "word_table.vectors")


# What of a shape depends on the words, what concerns the LSTMs alone, and weights of the word
# encoder.
_TABLE_KEYS = ("n_words", "vector_width")
_LSTM_KEYS = ("depth", "cell_width", "cell_clip", "proj_clip", "projection", "skip_connections")
_CELL_KEYS = ("cell_width", "projection")
_WORD_ENCODER = ("char_cnn.", "word_table.")


class LoadedModel(NamedTuple):
    """A language model, the words that it predicts, and the settings of its softmax."""

    model: LanguageModel
    vocabulary: Vocabulary
    settings: Dict[str, Any]


def require_start(shape: BiLMConfig, files: CheckpointFiles, part: str) -> None:
    """Check what a biLM is to start from, as far as is known before its words are.

    shape (BiLMConfig): of the biLM.
    files (CheckpointFiles): the other one.
    part (str): "all" for `start_bilm`, "words" for `start_words`, "cells" for `start_cells`.
    RAISES (ValueError): EL097 if the shapes do not fit; else as the file's reader.
    """
    config = find_reader(files).read_config(files)
    differences = shape.differences(config, but=_list_free(part, shape, config))
    if differences:
        text = Errors.EL097.format(path=files.path, differences="; ".join(differences))
        raise ValueError(text)


def _list_free(part: str, shape: BiLMConfig, config: BiLMConfig) -> Sequence[str]:
    """RETURNS (Sequence[str]): Keys in which the shape of a biLM may differ from that of the one,
    `config`, whose part it takes."""
    has_fewer = config.cell_width <= shape.cell_width
    cells = _CELL_KEYS if has_fewer else ()
    return {"all": _TABLE_KEYS, "words": _LSTM_KEYS, "cells": cells}[part]


@torch.no_grad()
def start_bilm(bilm: BiLM, files: CheckpointFiles) -> None:
    """Fill a biLM with what another one learned. Of a trained word table the words that
    both know are taken; the others keep their random vectors.

    bilm (BiLM): what to fill; untouched if anything is wrong.
    files (CheckpointFiles): the other one.
    RAISES (ValueError): EL097 if the shapes differ; else as `read_bilm`.
    """
    reader = find_reader(files)
    config = reader.read_config(files)
    same_but_words = replace(config, n_words=bilm.config.n_words) == bilm.config
    if bilm.config.input != "words" or not same_but_words:
        fill_bilm(bilm, files, Errors.EL097)
        return
    other = read_bilm(files)
    table, old = bilm.word_table, other.word_table
    if len(old.keys):
        positions = torch.searchsorted(old.keys, table.keys).clamp(max=len(old.keys) - 1)
        known = old.keys[positions] == table.keys
        table.vectors[known] = old.vectors[positions[known]]
    kept = {name: t for name, t in other.state_dict().items() if name not in _WORDS_OF_TABLE}
    bilm.load_state_dict({**bilm.state_dict(), **kept})


@torch.no_grad()
def start_words(bilm: BiLM, files: CheckpointFiles) -> None:
    """Fill the word encoder of a biLM with that of another one, whose LSTMs may be of any shape.

    bilm (BiLM): reads characters; untouched if anything is wrong.
    files (CheckpointFiles): the other one.
    RAISES (ValueError): EL097 if the word encoders differ in shape; else as `read_bilm`.
    """
    require_start(bilm.config, files, "words")
    state = read_bilm(files).state_dict()
    words = {name: tensor for name, tensor in state.items() if name.startswith(_WORD_ENCODER)}
    bilm.load_state_dict({**bilm.state_dict(), **words})


@torch.no_grad()
def start_cells(bilm: BiLM, files: CheckpointFiles) -> None:
    """Fill a biLM with one that has fewer cells. Both compute the same at first: nothing of what
    the further cells hold is projected yet, until the projection learns what they are good for. One
    exception: a `proj_clip` below 1, where the other one has no projection to be clipped.

    bilm (BiLM): reads characters, and has a projection; untouched if anything is wrong. Its further
        cells keep their random weights, and what the projection has for them becomes 0.
    files (CheckpointFiles): the other one, with a projection or without.
    RAISES (ValueError): EL097 if the shapes differ in more than that; else as `read_bilm`.

    Source: as the wider layers of Chen et al. 2016, "Net2Net", but with cells of their own instead
        of copies of those that are there.
    """
    require_start(bilm.config, files, "cells")
    other = read_bilm(files)
    state, n_cells = other.state_dict(), other.config.cell_width
    stacks = {"forward_lstm": bilm.forward_lstm, "backward_lstm": bilm.backward_lstm}
    for name, stack in stacks.items():
        for i, layer in enumerate(stack.layers):
            place = f"{name}.layers.{i}."
            learned = {key[len(place) :]: t for key, t in state.items() if key.startswith(place)}
            grown = _grow(layer.state_dict(), learned, n_cells)
            state.update({place + key: tensor for key, tensor in grown.items()})
    bilm.load_state_dict(state)


def _grow(
    random: Mapping[str, Tensor], learned: Mapping[str, Tensor], n_cells: int
) -> Dict[str, Tensor]:
    """random (Mapping[str, Tensor]): of an LSTM layer, with a projection. learned
    (Mapping[str, Tensor]): of one with `n_cells` cells. RETURNS (Dict[str, Tensor]): of the first,
    computing what the second does."""
    weight, bias, projection = (random[key].clone() for key in ("weight", "bias", "projection"))
    for ours, theirs in ((weight, learned["weight"]), (bias, learned["bias"])):
        # (..., 4 * n_cells): the gates are blocks.
        ours.unflatten(-1, (4, -1))[..., :n_cells] = theirs.unflatten(-1, (4, -1))
    projection.zero_()  # (cell_width, width)
    # Without a projection, each cell is a number of the output.
    projection[:n_cells] = learned.get("projection", torch.eye(n_cells))
    return {"weight": weight, "bias": bias, "projection": projection}


def load_language_model(files: CheckpointFiles) -> LoadedModel:
    """Load a biLM and its softmax, in evaluation mode.

    files (CheckpointFiles): a checkpoint of any known format.
    RETURNS (LoadedModel): the model and its vocabulary.
    RAISES (ValueError): EL074 if it has no softmax, EL020 to EL022 if that does not fit,
        EL071 if its words are no vocabulary, EL112 if it cannot be made; for the rest as
        `read_bilm`.
    """
    bilm, stored = read_with_softmax(files)
    if stored is None:
        raise ValueError(Errors.EL074.format(path=files))
    vocabulary = Vocabulary(stored.words)
    softmax = _load_softmax(stored, bilm.config.direction_width, str(files))
    # Whatever type is torch's default where it is loaded.
    model = LanguageModel(bilm, softmax).float().eval()
    return LoadedModel(model, vocabulary, stored.settings)


def _load_softmax(stored: SoftmaxWeights, width: int, source: str) -> SoftmaxModule:
    _check_shapes(stored, width, source)
    with _refuse_settings(source):
        softmax = make_softmax(stored.kind, width, len(stored.words), **stored.settings)
    # Another package can register a class under another name than the class says.
    softmax.kind = stored.kind
    load_weights(softmax, stored.state, source)
    return softmax


def _check_shapes(stored: SoftmaxWeights, width: int, source: str) -> None:
    """Compare what is stored with what the words and settings ask for, before memory is
    taken for that."""
    made = softmaxes.get_all().get(stored.kind)
    if isinstance(made, type) and issubclass(made, Softmax):
        _check_rows(stored, width, source)
        return
    with _refuse_settings(source), torch.device("meta"):
        planned = make_softmax(stored.kind, width, len(stored.words), **stored.settings)
    check_headers(get_headers(planned.state_dict()), get_headers(stored.state), source)


def _check_rows(stored: SoftmaxWeights, width: int, source: str) -> None:
    n_words = len(stored.words)
    expected = {"weight": TensorHeader((n_words, width)), "bias": TensorHeader((n_words,))}
    rows = {name: stored.state[name] for name in expected if name in stored.state}
    check_headers(expected, get_headers(rows), source)


@contextmanager
def _refuse_settings(source: str) -> Iterator[None]:
    # The settings are a file's, and the class may be another package's: it raises anything.
    try:
        yield
    except Exception as err:
        text = Errors.EL112.format(path=source, problem=show_reason(err))
        raise ValueError(text) from err


def collect_softmax(
    softmax: nn.Module, kind: str, settings: Dict[str, Any], words: Sequence[str]
) -> SoftmaxWeights:
    """softmax (nn.Module): as made by `make_softmax` from `kind` and `settings`.
    words (Sequence[str]): the vocabulary. RETURNS (SoftmaxWeights): what is stored."""
    return SoftmaxWeights(kind, dict(settings), softmax.state_dict(), list(words))


@torch.no_grad()
def copy_softmax_rows(softmax: nn.Module, words: List[str], stored: SoftmaxWeights) -> int:
    """Start a softmax from another one, word by word. Words that the other lacks keep
    their random rows.

    softmax (nn.Module): what to fill.
    words (List[str]): its vocabulary.
    stored (SoftmaxWeights): the other one.
    RETURNS (int): words whose rows were taken; 0 if one of the two has no rows.
    RAISES (ValueError): EL020 to EL022 if the other one's weights do not fit its words.
    """
    if stored.words == words and get_headers(stored.state) == get_headers(softmax.state_dict()):
        load_weights(softmax, stored.state, "the stored softmax")
        return len(words)
    if not isinstance(softmax, Softmax) or "weight" not in stored.state:
        return 0
    _check_rows(stored, softmax.weight.size(1), "the stored softmax")
    rows = {word: row for row, word in enumerate(stored.words)}
    pairs = [(i, rows[word]) for i, word in enumerate(words) if word in rows]
    if pairs:
        ours, theirs = torch.tensor(pairs).T
        softmax.weight[ours] = stored.state["weight"][theirs].to(softmax.weight)
        softmax.bias[ours] = stored.state["bias"][theirs].to(softmax.bias)
    return len(pairs)
