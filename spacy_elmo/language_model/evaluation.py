"""Exact perplexity, of a model in memory and of a checkpoint."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ..bilm.batch import plan_batches
from ..bilm.lstm import BiLMState
from ..checkpoints.formats import BUNDLED_NAME, CheckpointFiles, read_words
from ..checkpoints.native import META_FILE, read_meta
from ..errors import Errors
from ..text.corpus import cutter_maker, read_all_sequences
from ..text.cutting import CUTS
from ..text.languages import TOKENIZER, is_tokenizer_block
from ..utils import count_things, require_least
from .loading import load_language_model
from .objective import LanguageModel
from .readings import make_lm_batch, make_stream_batches
from .vocabulary import UNK_WORD, Vocabulary

# Rows whose probabilities over the vocabulary are in memory at a time.
_ROWS = 512
# Tokens of a pass; steps, if the state is carried from one sequence to the next.
_BATCH_TOKENS = 4096


@dataclass
class Perplexity:
    """Sums over a text: negative log-likelihood of each direction, in nats; predictions of each
    direction (tokens, and one boundary for each sequence); sequences; tokens predicted as
    `<UNK>`."""

    forward: float = 0.0
    backward: float = 0.0
    n_targets: int = 0
    n_sequences: int = 0
    n_unknown: int = 0

    @property
    def perplexities(self) -> List[float]:
        """RETURNS (List[float]): Forward, backward, and their geometric mean."""
        n = max(1, self.n_targets)
        nats = [self.forward / n, self.backward / n, (self.forward + self.backward) / (2 * n)]
        return [math.exp(min(value, 700.0)) for value in nats]


class Scorer:
    """Exact log-probabilities in a vocabulary, or in a smaller one, `restrict`: then the
    probability of the other words is added to that of `<UNK>`. The model is put into evaluation
    mode."""

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        restrict: Optional[Vocabulary] = None,
    ) -> None:
        self.model = model.eval()
        self.vocabulary = restrict or vocabulary
        self._rows: Optional[Tensor] = None
        if restrict is not None and restrict != vocabulary:
            self._rows = torch.from_numpy(vocabulary.encode(restrict.words))
            outside = torch.ones(len(vocabulary), dtype=torch.bool, device="cpu")
            outside[self._rows] = False
            self._outside = torch.nonzero(outside)[:, 0].to(model.bilm.device)
            self._rows = self._rows.to(model.bilm.device)
        self._unknown = self.vocabulary.ids[UNK_WORD]

    def score(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Log-probabilities of targets in nats, float64, (n_rows,).

        hidden (Tensor): top layer of a direction, shape (n_rows, width // 2).
        targets (Tensor): rows of `self.vocabulary`, int64, shape (n_rows,).
        """
        parts = zip(hidden.split(_ROWS), targets.split(_ROWS))
        return torch.cat([self._score(h, t).double() for h, t in parts])

    def _score(self, hidden: Tensor, targets: Tensor) -> Tensor:
        log_probs = self.model.softmax.log_probs(hidden)
        if self._rows is None:
            return log_probs.gather(1, targets[:, None])[:, 0]
        scores = log_probs.gather(1, self._rows[targets][:, None])[:, 0]
        unknown = torch.nonzero(targets == self._unknown)[:, 0]
        if len(unknown) and len(self._outside):
            rest = torch.logsumexp(log_probs[unknown][:, self._outside], dim=1)
            scores[unknown] = torch.logaddexp(scores[unknown], rest)
        return scores


@torch.no_grad()
def measure(
    scorer: Scorer,
    sequences: Sequence[Sequence[str]],
    *,
    stream: bool = False,
    batch_tokens: int = _BATCH_TOKENS,
) -> Perplexity:
    """Score a text; the sums do not depend on `batch_tokens`. With `stream` the state is carried
    from one sequence to the next, the backward direction's from the next to the one before."""
    vocabulary = scorer.vocabulary
    result = Perplexity(
        n_sequences=len(sequences),
        n_unknown=sum(word not in vocabulary.ids for words in sequences for word in words),
    )
    if stream:
        length = sum(len(words) + 1 for words in sequences)
        batches = make_stream_batches([sequences], batch_tokens, length, vocabulary)
    else:
        groups = plan_batches([len(words) for words in sequences], batch_tokens)
        batches = (make_lm_batch([sequences[i] for i in group], vocabulary) for group in groups)
    state: Optional[BiLMState] = None
    for batch in batches:
        outputs, after = scorer.model.read(batch, state)
        state = after if stream else None
        scores = [
            float(scorer.score(hidden, torch.from_numpy(r.targets).to(hidden.device)).sum())
            for hidden, r in zip(outputs, (batch.forward, batch.backward))
        ]
        result.forward -= scores[0]
        result.backward -= scores[1]
        result.n_targets += batch.n_targets
    return result


def read_settings(checkpoint: Path) -> Dict[str, Any]:
    """Read how the run that made a checkpoint read and measured text: "cut", "max_tokens", "limit",
    "stream", "lang" and "tokenizer", with the usual values where meta.json does not have them
    (EL012 for impossible values, since it may come from a stranger)."""
    meta = read_meta(checkpoint)
    block = meta.get("evaluation") or {}
    values = {**meta, **block} if isinstance(block, dict) else {"evaluation": block}
    checks: Dict[str, Tuple[Any, Callable[[Any], bool], str]] = {
        "evaluation": ({}, lambda value: isinstance(value, dict), "an object"),
        "cut": ("sentences", lambda value: value in CUTS, f"one of {CUTS}"),
        "max_tokens": (128, lambda value: type(value) is int and value >= 2, "at least 2"),
        "limit": (0, lambda value: type(value) is int and value >= 0, "at least 0"),
        "stream": (False, lambda value: type(value) is bool, "true or false"),
        "lang": ("en", lambda value: isinstance(value, str), "a language's code"),
        "tokenizer": (TOKENIZER, is_tokenizer_block, "the name of a tokenizer and plain settings"),
    }
    settings = {}
    for key, (default, is_possible, expected) in checks.items():
        value = values.get(key)
        if value is not None and not is_possible(value):
            setting = f"'{checkpoint / META_FILE}': {key}"
            text = Errors.EL012.format(key=setting, value=value, expected=expected)
            raise ValueError(text)
        # {} is the tokenizer of the language.
        settings[key] = default if value is None else value
    return settings


def find_tokenizer(weights: str, lang: str = "") -> Tuple[str, Dict[str, Any]]:
    """Find the language code and the block of the tokenizer that a biLM was trained with, by its
    folder or name; "" for the bundled one. `lang`: another language."""
    settings = read_settings(CheckpointFiles.of(weights or BUNDLED_NAME).path)
    return lang or settings["lang"], settings["tokenizer"]


def find_recorded_tokenizer(weights: str, lang: str = "") -> Tuple[str, Optional[Dict[str, Any]]]:
    """As `find_tokenizer`, with None for the tokenizer if the weights do not record it."""
    lang, tokenizer = find_tokenizer(weights, lang)
    is_recorded = read_meta(CheckpointFiles.of(weights).path).get("tokenizer") is not None
    return lang, tokenizer if is_recorded else None


def evaluate_checkpoint(
    checkpoint: Path,
    text: str,
    *,
    vocab: Optional[Path] = None,
    cut: Optional[str] = None,
    max_tokens: Optional[int] = None,
    stream: Optional[bool] = None,
    limit: Optional[int] = None,
    lang: Optional[str] = None,
) -> Dict[str, Any]:
    """Measure the exact perplexity of a text, per token and end of sequence.

    checkpoint (Path): folder of any known format, with a softmax.
    text (str): file, folder or glob.
    vocab (Optional[Path]): file with the words to score, all in the checkpoint's
        vocabulary. The probability of the others is added to that of `<UNK>`, so that
        models of different vocabularies compare.
    cut (Optional[str]): "sentences", "lines" or "windows".
    max_tokens (Optional[int]): most tokens of a sequence.
    stream (Optional[bool]): whether the state is carried from one sequence to the next.
    limit (Optional[int]): sequences, from all over the text, or with `stream` its first
        ones; 0 for all. This and the others: None as the run measured that made the
        checkpoint; else sentences of at most 128 tokens, each from zero, all of them.
    lang (Optional[str]): language of the tokenizer; None for the one in the
        checkpoint's meta.json, or English.
    RETURNS (Dict[str, Any]): the figures, and how they were made.
    RAISES (ValueError): EL012 for a number out of its range, EL074 and EL075 for softmax and
        words, EL080 and EL081 for the text, EL030 to EL038 for the checkpoint, EL012 for its
        meta.json.
    """
    files = CheckpointFiles.of(checkpoint)
    before = read_settings(files.path)
    cut = cut or before["cut"]
    max_tokens = before["max_tokens"] if max_tokens is None else max_tokens
    stream = before["stream"] if stream is None else stream
    limit = before["limit"] if limit is None else limit
    require_least("limit", limit, 0)
    lang = before["lang"] if lang is None else lang
    make_cutter = cutter_maker(lang, before["tokenizer"], max_tokens=max_tokens, cut=cut)
    of_text = read_all_sequences(text, make_cutter)
    model, vocabulary, _ = load_language_model(files)
    restrict = None if vocab is None else _read_restriction(vocab, vocabulary)
    sequences = sample(of_text, limit, in_order=stream)
    if not sequences:
        raise ValueError(Errors.EL094.format(path=text))
    scorer = Scorer(model, vocabulary, restrict)
    result = measure(scorer, sequences, stream=stream)
    forward, backward, mean = result.perplexities
    return {
        "forward": forward,
        "backward": backward,
        "geometric_mean": mean,
        "n_predictions": result.n_targets,
        "n_sequences": result.n_sequences,
        "n_sequences_of_text": len(of_text),
        "n_unknown": result.n_unknown,
        "n_words_scored": len(scorer.vocabulary),
        "n_words_of_softmax": len(vocabulary),
        "cut": cut,
        "max_tokens": max_tokens,
        "state": "carried" if stream else "zero",
    }


def sample(sequences: List[List[str]], limit: int, *, in_order: bool = False) -> List[List[str]]:
    """Choose at most `limit` sequences (0: all), always the same ones, evenly from the whole list,
    or its first ones if `in_order`, where the state is carried from one to the next."""
    if not limit or len(sequences) <= limit:
        return sequences
    if in_order:
        return sequences[:limit]
    step = len(sequences) / limit
    return [sequences[int(i * step)] for i in range(limit)]


def _read_restriction(path: Path, vocabulary: Vocabulary) -> Vocabulary:
    restrict = Vocabulary(read_words(path))
    missing = [word for word in restrict.words if word not in vocabulary.ids]
    if missing:
        raise ValueError(
            Errors.EL075.format(
                n_words=count_things(len(missing), "word"), examples=", ".join(missing[:5])
            )
        )
    return restrict
