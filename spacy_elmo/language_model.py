"""Language models from checkpoints: a biLM together with its softmax."""

from dataclasses import replace
from typing import Any, Dict, List, NamedTuple, Sequence

import torch
from torch import nn

from .bilm.model import BiLM
from .bilm.weights import load_weights
from .checkpoints.files import CheckpointFiles
from .checkpoints.reader import SoftmaxWeights, fill_bilm, find_reader
from .errors import Errors
from .pretraining.objective import LanguageModel
from .pretraining.softmax import Softmax, make_softmax
from .pretraining.vocabulary import Vocabulary

# What differs between the tables of two vocabularies.
_WORDS_OF_TABLE = ("word_table.keys", "word_table.vectors")


class LoadedModel(NamedTuple):
    """A language model, the words that it predicts, and the settings of its softmax."""

    model: LanguageModel
    vocabulary: Vocabulary
    settings: Dict[str, Any]


@torch.no_grad()
def start_bilm(bilm: BiLM, files: CheckpointFiles) -> None:
    """Fill a biLM with what another one learned. Of a trained word table the words that
    both know are taken; the others keep their random vectors.

    bilm (BiLM): what to fill; untouched if anything is wrong.
    files (CheckpointFiles): the other one.
    RAISES (ValueError): EL097 if the shapes differ, EL020 to EL022 if the weights do not
        fit, EL030 to EL038 if they cannot be read.
    """
    reader = find_reader(files)
    config = reader.read_config(files)
    same_but_words = replace(config, n_words=bilm.config.n_words) == bilm.config
    if bilm.config.input != "words" or not same_but_words:
        fill_bilm(bilm, files, Errors.EL097)
        return
    other = BiLM(config)
    fill_bilm(other, files, Errors.EL097)
    table, old = bilm.word_table, other.word_table
    positions = torch.searchsorted(old.keys, table.keys).clamp(max=max(0, len(old.keys) - 1))
    known = old.keys[positions] == table.keys
    table.vectors[known] = old.vectors[positions[known]]
    kept = {name: t for name, t in other.state_dict().items() if name not in _WORDS_OF_TABLE}
    bilm.load_state_dict({**bilm.state_dict(), **kept})


def load_language_model(files: CheckpointFiles) -> LoadedModel:
    """Load a biLM and its softmax, in evaluation mode.

    files (CheckpointFiles): a checkpoint of any known format.
    RETURNS (LoadedModel): the model and its vocabulary.
    RAISES (ValueError): EL074 if it has no softmax, EL020 to EL022 if that does not fit,
        EL030 to EL038 if it cannot be read.
    """
    reader = find_reader(files)
    bilm = BiLM(reader.read_config(files))
    fill_bilm(bilm, files, Errors.EL097)
    stored = reader.read_softmax(files)
    if stored is None:
        raise ValueError(Errors.EL074.format(path=files))
    vocabulary = Vocabulary(stored.words)
    width = bilm.config.direction_width
    softmax = make_softmax(stored.kind, width, len(vocabulary), **stored.settings)
    load_weights(softmax, stored.state, str(files))
    return LoadedModel(LanguageModel(bilm, softmax).eval(), vocabulary, stored.settings)


def pack_softmax(
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
    """
    if stored.words == words and set(stored.state) == set(softmax.state_dict()):
        load_weights(softmax, stored.state, "the stored softmax")
        return len(words)
    if not isinstance(softmax, Softmax) or "weight" not in stored.state:
        return 0
    rows = {word: row for row, word in enumerate(stored.words)}
    pairs = [(i, rows[word]) for i, word in enumerate(words) if word in rows]
    mine, theirs = torch.tensor(pairs).T
    softmax.weight[mine] = stored.state["weight"][theirs].to(softmax.weight)
    softmax.bias[mine] = stored.state["bias"][theirs].to(softmax.bias)
    return len(pairs)
