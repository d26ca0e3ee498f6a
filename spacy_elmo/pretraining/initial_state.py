"""The state that is stored with a biLM: what its LSTMs remember after a sequence."""

from typing import List, Sequence

import torch
from torch import Tensor

from ..bilm.word_batch import plan_batches
from ..language_model.objective import LanguageModel
from ..language_model.readings import make_lm_batch
from ..language_model.vocabulary import SPECIAL_WORDS, Vocabulary


@torch.no_grad()
def store_initial_state(
    model: LanguageModel, sequences: Sequence[Sequence[str]], batch_tokens: int
) -> None:
    """Average the state over sequences that each started from zero, as in training: after
    their last word, before the boundary. It stands in for the state that bilm-tf carries
    over from whatever text came before.

    model (LanguageModel): its biLM gets the state.
    sequences (Sequence[Sequence[str]]): words, at least one in one of them.
    batch_tokens (int): tokens of a pass.
    """
    model.eval()
    nothing = Vocabulary(SPECIAL_WORDS)
    sums: List[Tensor] = []
    n_seqs = 0
    for group in plan_batches([len(words) for words in sequences], batch_tokens):
        batch = make_lm_batch([sequences[i] for i in group], nothing)
        state = model.read(batch)[1]
        parts = [part.double().sum(dim=2) for part in state]
        sums = parts if not sums else [a + b for a, b in zip(sums, parts)]
        n_seqs += len(group)
    bilm = model.bilm
    for stored, total in zip((bilm.initial_hidden, bilm.initial_cell), sums):
        stored.copy_(total / n_seqs)
