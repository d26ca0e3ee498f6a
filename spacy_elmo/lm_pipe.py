"""The component "elmo_lm": what a biLM's softmax says about each token."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, cast
from uuid import uuid4

import numpy as np
import srsly
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.util import SimpleFrozenList, minibatch
from spacy.vocab import Vocab

from .batch import N_BOUNDARIES, plan_batches
from .bilm.forking import BUILD_LOCK
from .bilm.packing import pack
from .checkpoints.files import CheckpointFiles
from .checkpoints.native import write_native
from .language_model import LoadedModel, load_language_model, pack_softmax
from .lm_extensions import ASSIGNS_LM, get_entry, register_lm_extensions, register_model
from .loaders import get_bundled
from .pretraining.perplexity import Scorer
from .pretraining.readings import make_lm_batch
from .pretraining.vocabulary import SPECIAL_WORDS
from .spans import SpanGetter, build_window_spans_v1, get_sequences
from .util.checks import require_least

_FOLDER = "language_model"

register_lm_extensions()


@Language.factory(
    "elmo_lm",
    assigns=ASSIGNS_LM,
    default_config={"path": None, "get_spans": None, "substitutes": True, "batch_tokens": 4096},
)
def make_elmo_lm(
    nlp: Language,
    name: str,
    path: Optional[str],
    get_spans: Optional[SpanGetter],
    substitutes: bool,
    batch_tokens: int,
) -> "ElmoLM":
    """Make the component. See `ElmoLM`."""
    return ElmoLM(
        nlp.vocab,
        name,
        path=path,
        get_spans=get_spans,
        substitutes=substitutes,
        batch_tokens=batch_tokens,
    )


class ElmoLM(Pipe):
    """Predict each token from what is before it, and from what is after it. It needs no
    component "elmo", and does not train.

    vocab (Vocab): the shared vocabulary.
    name (str): name in the pipeline.
    path (Optional[str]): a folder with weights and their softmax; None for the bundled
        English ones. A saved pipeline has its own.
    get_spans (Optional[SpanGetter]): cuts docs into sequences; None for
        spacy-elmo.window_spans.v1.
    substitutes (bool): whether docs keep what `token._.elmo_substitutes` needs: width
        numbers a token.
    batch_tokens (int): tokens per forward pass, at least 1.
    RAISES (ValueError): EL012 if a number is out of its range.
    """

    def __init__(
        self,
        vocab: Vocab,
        name: str = "elmo_lm",
        *,
        path: Optional[str] = None,
        get_spans: Optional[SpanGetter] = None,
        substitutes: bool = True,
        batch_tokens: int = 4096,
    ) -> None:
        require_least("batch_tokens", batch_tokens, 1)
        self.vocab = vocab
        self.name = name
        self.path = path
        self.get_spans = get_spans or build_window_spans_v1()
        self.keeps_hidden = substitutes
        self.batch_tokens = batch_tokens
        # The model, and the key by which docs find it.
        self._loaded: Optional[Tuple[LoadedModel, str]] = None

    def load(self) -> LoadedModel:
        """Load the language model if that was not done.

        RETURNS (LoadedModel): the model and its words.
        RAISES (ValueError): EL024 without bundled weights, EL074 if the folder has no
            softmax, EL030 to EL038 if it cannot be read.
        """
        return self._load_with_key()[0]

    def _load_with_key(self) -> Tuple[LoadedModel, str]:
        loaded = self._loaded
        if loaded is not None:
            return loaded
        with BUILD_LOCK:
            if self._loaded is None:
                files = get_bundled() if self.path is None else CheckpointFiles.of(self.path)
                self._set(load_language_model(files))
            return cast(Tuple[LoadedModel, str], self._loaded)

    def _set(self, loaded: LoadedModel) -> None:
        # Without `torch.no_grad`, which an interrupt may leave switched on.
        loaded.model.requires_grad_(False)
        with BUILD_LOCK:
            self._loaded = loaded, uuid4().hex

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Optional[Language] = None
    ) -> None:
        """Load the language model. RAISES (ValueError): as `load`."""
        self.load()

    def __call__(self, doc: Doc) -> Doc:
        """doc (Doc): annotated in place. RETURNS (Doc): the same."""
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """stream (Iterable[Doc]): docs. batch_size (int): docs at a time. YIELDS (Doc): the
        docs in order."""
        error_handler = self.get_error_handler()
        for docs in minibatch(stream, batch_size):
            try:
                self._annotate(docs)
                yield from docs
            except Exception as err:
                error_handler(self.name, self, docs, err)

    def _annotate(self, docs: List[Doc]) -> None:
        (model, vocabulary, _), key = self._load_with_key()
        scorer = Scorer(model, vocabulary)
        register_model(key, self)
        sequences, rows = get_sequences(docs, self.get_spans)
        ends = np.cumsum([len(doc) for doc in docs])
        n_tokens, width = int(ends[-1]), model.bilm.config.width
        log_probs = np.full((2, n_tokens), np.nan, dtype=np.float32)
        hidden = np.zeros((n_tokens, width if self.keeps_hidden else 0), dtype=np.float32)
        nats, n_predictions = np.zeros(len(docs)), np.zeros(len(docs), dtype=np.int64)
        for members in plan_batches([len(words) for words in sequences], self.batch_tokens):
            scores = _score(scorer, [sequences[k] for k in members])
            for k, found in zip(members, scores):
                # Forward, the last prediction is the end; backward, it is the begin.
                log_probs[:, rows[k]] = found.log_probs[:, 1:-1]
                if self.keeps_hidden:
                    hidden[rows[k]] = found.hidden[1:-1]
                i = np.searchsorted(ends, rows[k][0], side="right")
                nats[i] -= np.nansum(found.log_probs) / 2
                n_predictions[i] += len(rows[k]) + 1
        for i, (doc, end) in enumerate(zip(docs, ends)):
            # Copies: a doc that is kept must not keep its whole batch.
            mine = slice(end - len(doc), end)
            doc._.elmo_lm = {
                "forward": log_probs[0, mine].copy(),
                "backward": log_probs[1, mine].copy(),
                "is_known": np.array([t.text in vocabulary.ids for t in doc], dtype=bool),
                "nats": float(nats[i]),
                "n_predictions": int(n_predictions[i]),
                "model": key,
                **({"hidden": hidden[mine].copy()} if self.keeps_hidden else {}),
            }

    def substitutes(self, token: Token, n: int = 10) -> List[Tuple[str, float]]:
        """See `lm_extensions.get_substitutes`."""
        model, vocabulary, _ = self.load()
        hidden = torch.from_numpy(get_entry(token.doc)["hidden"][token.i])
        log_probs = model.softmax.log_probs(hidden.view(2, -1)).sum(dim=0)
        # A boundary or an unknown word is no word to put there.
        log_probs[: len(SPECIAL_WORDS)] = -torch.inf
        probs = torch.softmax(log_probs, dim=0)
        best = torch.topk(probs, min(n, len(vocabulary) - len(SPECIAL_WORDS)))
        return [(vocabulary.words[i], p) for p, i in zip(best.values.tolist(), best.indices)]

    def to_disk(self, path: Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """path (Path): folder for the language model."""
        model, vocabulary, settings = self.load()
        kind = model.softmax.kind
        softmax = pack_softmax(model.softmax, kind, settings, vocabulary.words)
        write_native(model.bilm, Path(path) / _FOLDER, softmax=softmax)

    def from_disk(self, path: Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> "ElmoLM":
        """path (Path): folder that `to_disk` wrote. RETURNS (ElmoLM): itself. RAISES
        (ValueError): as `load`."""
        self._set(load_language_model(CheckpointFiles(Path(path) / _FOLDER)))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """RETURNS (bytes): the files of `to_disk`."""
        with TemporaryDirectory() as folder:
            self.to_disk(Path(folder))
            files = (Path(folder) / _FOLDER).iterdir()
            return srsly.msgpack_dumps({file.name: file.read_bytes() for file in files})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()) -> "ElmoLM":
        """data (bytes): from `to_bytes`. RETURNS (ElmoLM): itself."""
        with TemporaryDirectory() as folder:
            (Path(folder) / _FOLDER).mkdir()
            for name, content in srsly.msgpack_loads(data).items():
                (Path(folder) / _FOLDER / name).write_bytes(content)
            return self.from_disk(Path(folder))

    def __getstate__(self) -> Dict[str, Any]:
        # Whoever pickles a pipeline (a spawned process, say) gets weights.
        self.load()
        return self.__dict__


@dataclass
class _Scores:
    """Of one sequence with its boundaries: log-probabilities, shape (2, length), NaN where
    a direction predicts nothing; what they were computed from, shape (length, width)."""

    log_probs: NDArray
    hidden: NDArray


def _score(scorer: Scorer, sequences: List[List[str]]) -> List[_Scores]:
    batch = make_lm_batch(sequences, scorer.vocabulary)
    outputs, _ = scorer.model.read(batch)
    lengths = np.array([len(words) + N_BOUNDARIES for words in sequences])
    packing = pack(lengths, read_last=False)
    width = scorer.model.bilm.config.direction_width
    n_rows = int(lengths.sum())
    log_probs = np.full((2, n_rows), np.nan)
    hidden = np.zeros((n_rows, 2 * width), dtype=np.float32)
    readings = (packing.forward + 1, batch.forward), (packing.backward - 1, batch.backward)
    for direction, (predicted, reading) in enumerate(readings):
        H = outputs[direction]
        log_probs[direction, predicted] = scorer.score(H, torch.from_numpy(reading.targets))
        hidden[predicted, direction * width : (direction + 1) * width] = H
    ends = np.cumsum(lengths)[:-1]
    parts = zip(np.split(log_probs, ends, axis=1), np.split(hidden, ends))
    return [_Scores(*part) for part in parts]
