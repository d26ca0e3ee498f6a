"""The exact perplexity of a checkpoint on a text."""

from pathlib import Path
from typing import Any, Dict, List, Optional

from ..checkpoints.checkpoint_files import CheckpointFiles
from ..checkpoints.formats import read_words
from ..errors import Errors
from ..text.corpus import cutter_maker, read_all_sequences
from ..utils import count_things, require_least
from .loading import load_language_model
from .perplexity import Scorer, measure
from .saved_settings import read_settings
from .vocabulary import Vocabulary

# Tokens of a pass; in a stream, steps of it.
_BATCH_TOKENS = 4096


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
    """Measure the exact perplexity of a text, per token, the end of each sequence
    counted.

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
        words, EL080 to EL086 for the text, EL030 to EL038 for the checkpoint, EL169 for its
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
    # What is wrong with the text is known before a model is loaded.
    of_text = read_all_sequences(text, make_cutter)
    model, vocabulary, _ = load_language_model(files)
    restrict = None if vocab is None else _read_restriction(vocab, vocabulary)
    sequences = sample(of_text, limit, in_order=stream)
    if not sequences:
        raise ValueError(Errors.EL094.format(path=text))
    scorer = Scorer(model, vocabulary, restrict)
    result = measure(scorer, sequences, stream=stream, batch_tokens=_BATCH_TOKENS)
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
    """Take some of a text's sequences, always the same ones.

    sequences (List[List[str]]): any number.
    limit (int): most of them; 0 for all.
    in_order (bool): whether the state is carried from one to the next, so that none
        between them may be missing.
    RETURNS (List[List[str]]): so many, from all over the list or its first ones.
    """
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
