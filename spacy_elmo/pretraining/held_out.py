"""The perplexity of the held-out text, measured by all processes of a run."""

from dataclasses import asdict
from typing import List

from ..files import digest
from ..language_model.objective import LanguageModel
from ..language_model.perplexity import Perplexity, Scorer, measure
from ..language_model.vocabulary import Vocabulary
from .ranks import Processes

# Tokens of a pass.
_BATCH_TOKENS = 4096


def digest_sequences(sequences: List[List[str]]) -> str:
    """sequences (List[List[str]]): the held-out text. RETURNS (str): the same for the same words;
    "" for none."""
    text = "\n".join(" ".join(words) for words in sequences)
    return digest(text.encode("utf-8", "surrogatepass")) if sequences else ""


def measure_dev(
    model: LanguageModel,
    vocabulary: Vocabulary,
    sequences: List[List[str]],
    processes: Processes,
    *,
    stream: bool,
) -> Perplexity:
    """model (LanguageModel): put into evaluation mode. vocabulary (Vocabulary): its words.
    sequences (List[List[str]]): the held-out text. processes (Processes): who shares the
    work. stream (bool): whether the state is carried from one sequence to the next. RETURNS
    (Perplexity): exact, of all sequences."""
    scorer = Scorer(model, vocabulary)
    if stream:  # in the text's order, which cannot be shared out
        return measure(scorer, sequences, stream=True, batch_tokens=_BATCH_TOKENS)
    share = sequences[processes.rank :: processes.n_ranks]
    of_share = asdict(measure(scorer, share, batch_tokens=_BATCH_TOKENS))
    forward, backward, *counts = processes.sum([float(value) for value in of_share.values()])
    return Perplexity(forward, backward, *map(int, counts))
