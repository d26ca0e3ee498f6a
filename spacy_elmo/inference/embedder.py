"""`Embedder`: a biLM with its word cache and batching. All code uses this one forward pass."""

import warnings
from collections.abc import Sequence as SequenceType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..bilm.batch import N_BOUNDARIES, WordBatch, count_truncated, make_batch, plan_batches
from ..bilm.config import BiLMConfig
from ..bilm.lstm import BiLMState
from ..bilm.model import BiLM
from ..bilm.weights import hash_weights, is_finite
from ..errors import Errors, Warnings
from ..utils import require_known, require_layer, require_least
from .activation_cache import ActivationCache, KeptLayers
from .engine import InferenceEngine
from .packed_layers import PRECISIONS, require_precision
from .threads import LOAD_LOCK, choose_n_threads, share_at_fork
from .word_cache import WordCache

# Fills a biLM by `load_state_dict`, or raises and leaves it as it was.
Loader = Callable[[BiLM], None]


class Embedder(nn.Module):
    """Turn sequences of words into the layers of a biLM.

    Made by `load_embedder`; the component "elmo" holds the same object. Weights that are not loaded
    yet are loaded by the first use. Any number of threads may compute with one embedder; load
    weights before they do.

    bilm (BiLM): the network.
    loader (Optional[Loader]): fills the network before its first use; None if its
        weights are final.
    batch_tokens (int): tokens per forward pass, boundaries counted; at least 1.
    word_cache (int): word vectors kept between calls; 0 for none.
    precision (str): of the matrix products where no gradient is wanted: "fp32", "bf16",
        "fp16" or "int8".
    n_threads (int): used at a time on a CPU; 0 for as many as torch uses, and one in a
        child process.
    RAISES (ValueError): EL012 if a number is out of its range, or for another
        precision. A precision that the device lacks raises EL016 at
        the first use.
    """

    def __init__(
        self,
        bilm: BiLM,
        *,
        loader: Optional[Loader] = None,
        batch_tokens: int = 8192,
        word_cache: int = 100_000,
        precision: str = "fp32",
        n_threads: int = 0,
    ) -> None:
        super().__init__()
        require_least("batch_tokens", batch_tokens, 1)
        require_least("word_cache", word_cache, 0)
        require_least("n_threads", n_threads, 0)
        require_known("precision", precision, PRECISIONS)
        self.bilm = bilm
        self.n_threads = n_threads
        self.batch_tokens = batch_tokens
        self._precision = precision
        self._cache_size = word_cache
        self._has_warned = False
        self._activations: Optional[ActivationCache] = None
        # All three are of one version of the biLM's weights.
        self._engine: Optional[InferenceEngine] = None
        self._kept: Optional[Tuple[int, KeptLayers]] = None
        # From a forward pass with gradients to `weights_updated`, the weights may change at any
        # moment: nothing that depends on them is kept.
        self._is_training = False
        # Used by the next call; None if the weights are loaded.
        self.pending_loader = loader
        self._version = bilm.version
        # Name of the installed model that has the weights, which are not saved then.
        self.installed_weights: Optional[str] = None
        share_at_fork(self)

    @property
    def word_cache(self) -> WordCache:
        """Vectors of the words read last; none are kept while the weights change."""
        engine = self._engine
        return WordCache(0) if engine is None else engine.word_cache

    @property
    def is_ready(self) -> bool:
        """Whether the weights are loaded."""
        return self.pending_loader is None

    def set_loader(self, loader: Loader) -> None:
        """Let the next use load weights."""
        self._version = self.bilm.version
        self.pending_loader = loader

    def load(self, loader: Loader) -> None:
        """Load weights now. The old ones are kept if the loader raises."""
        with LOAD_LOCK:
            loader(self.bilm)
            self.set_ready()

    def ensure_ready(self) -> None:
        """Load the weights if they are not loaded. After an error the next call tries again."""
        if self.pending_loader is None:
            return
        with LOAD_LOCK:
            if self.pending_loader is None:
                return
            # Weights that were loaded directly stay.
            if self.bilm.version == self._version:
                self.pending_loader(self.bilm)
            self.set_ready()

    def set_ready(self) -> None:
        """Declare the current weights final, after they were changed from outside."""
        self.bilm.version += 1
        self._engine = None
        self._is_training = False
        self.pending_loader = None

    def weights_updated(self) -> None:
        """Declare that an optimizer is done: weights stay as they are until the next `forward`."""
        if self._is_training:
            self.bilm.version += 1
            self._is_training = False

    def prepare(self) -> None:
        """Load the weights and lay them out, as the first use without gradients does."""
        self.ensure_ready()
        if not self._is_training:
            self._get_engine()

    def use_activations(self, cache: Optional[ActivationCache]) -> None:
        """Let `activations` keep layers in a cache, or nowhere."""
        self._activations = cache
        self._kept = None

    def activations(self) -> Optional[KeptLayers]:
        """Layers kept for the present weights."""
        if self._activations is None:
            return None
        self.ensure_ready()
        if self._kept is None or self._kept[0] != self.bilm.version:
            self._kept = self.bilm.version, self._activations.open(self.hash_weights())
        return self._kept[1]

    def hash_weights(self) -> bytes:
        """Hash the weights: the same for biLMs that compute the same vectors."""
        self.ensure_ready()
        return hash_weights(self.bilm, self._precision)

    def embed(self, sentences: Sequence[Sequence[str]]) -> List[NDArray]:
        """Compute the layers of each token. A sentence's result does not depend on
        the others, nor on earlier calls.

        sentences (Sequence[Sequence[str]]): words of each sentence.
        RETURNS (List[NDArray]): for each sentence float32, shape
            (n_layers, n_tokens, width), layer first as AllenNLP's ElmoEmbedder; the
            boundaries are not in it. (`doc._.elmo` is token first.)
        RAISES (ValueError): EL013 if they are not lists of words.
        EXAMPLE:
            >>> from spacy_elmo import load_embedder
            >>> layers = load_embedder().embed([["green", "eggs"]])[0]
            >>> layers.shape
            (3, 2, 512)
        """
        require_words(sentences)
        return self._embed(sentences, self.bilm.config.n_layers)

    def embed_layer(self, sentences: Sequence[Sequence[str]], layer: int) -> List[NDArray]:
        """Compute one layer of each token, as `embed` does. Those above it are not computed.

        sentences (Sequence[Sequence[str]]): words of each sentence.
        layer (int): from 0, the word layer, or from the top, -1.
        RETURNS (List[NDArray]): for each sentence float32, shape (n_tokens, width).
        RAISES (ValueError): as `embed`, EL012 if there is no such layer.
        EXAMPLE:
            >>> from spacy_elmo import load_embedder
            >>> load_embedder().embed_layer([["green", "eggs"]], 0)[0].shape
            (2, 512)
        """
        require_words(sentences)
        n_layers = self.bilm.config.n_layers
        require_layer(layer, n_layers)
        return [array[-1] for array in self._embed(sentences, 1 + layer % n_layers)]

    def embed_stateful(
        self, sentences: Sequence[Sequence[str]], state: Optional[BiLMState] = None
    ) -> Tuple[List[NDArray], BiLMState]:
        """Compute the layers of each token, each row continuing from its state, as
        AllenNLP and bilm-tf do: row i of this call continues row i of the last one.

        sentences (Sequence[Sequence[str]]): words of each sentence. An empty one
            leaves its row's state as it was.
        state (Optional[BiLMState]): what the last call returned; None for zeros.
            Rows that it lacks start at zero, rows beyond the sentences are kept.
        RETURNS (Tuple[List[NDArray], BiLMState]): arrays as `embed`, and the state
            after the closing boundary of each sentence.
        RAISES (ValueError): EL013 if the sentences are not lists of words, EL014 if the state is
            not one of this biLM or not finite.
        EXAMPLE:
            >>> from spacy_elmo import load_embedder
            >>> embedder = load_embedder()
            >>> arrays, state = embedder.embed_stateful([["green", "eggs"]])
            >>> arrays, state = embedder.embed_stateful([["and", "ham", "."]], state)
            >>> arrays[0].shape
            (3, 3, 512)
        """
        require_words(sentences)
        self.ensure_ready()
        zeros = self.bilm.zero_state(0)
        start = zeros if state is None else state
        _require_state(start, zeros, self.bilm.config)
        new = self.bilm.zero_state(max(0, len(sentences) - start.hidden.size(2)))
        # A saved state may come from another device.
        parts = [torch.cat((p.detach().to(n.device), n), dim=2) for p, n in zip(start, new)]
        running = BiLMState(*(part.float() for part in parts))
        return self._embed(sentences, self.bilm.config.n_layers, running), running

    def _embed(
        self,
        sentences: Sequence[Sequence[str]],
        n_layers: int,
        running: Optional[BiLMState] = None,
    ) -> List[NDArray]:
        """As `embed`, with `n_layers` from the word layer on. Changes the state of each sentence,
        `running`. Each array has its own memory."""
        width = self.bilm.config.width
        arrays = [np.zeros((n_layers, 0, width), dtype="float32")] * len(sentences)
        for members, layers in self.compute(sentences, n_layers, running):
            split = layers.cpu().split([len(sentences[i]) for i in members])
            for i, tensor in zip(members, split):
                arrays[i] = np.array(tensor.numpy().swapaxes(0, 1), order="C")
        return arrays

    def compute(
        self,
        sequences: Sequence[Sequence[str]],
        n_layers: Optional[int] = None,
        running: Optional[BiLMState] = None,
    ) -> Iterator[Tuple[List[int], Tensor]]:
        """Compute layers without gradients, some sequences at a time: `n_layers` from the word
        layer on, None for all. Changes the state of each sequence, `running`. YIELDS the indices of
        the sequences, empty ones left out, and the layers of their words, one sequence after the
        other, shape (n_tokens, n_layers, width), in memory that is used again for the next ones."""
        n_threads = choose_n_threads(self.n_threads)
        config = self.bilm.config
        shape = n_layers or config.n_layers, config.width
        engine: Optional[InferenceEngine] = None
        memory: Optional[Tensor] = None
        for members, batch in self.batches(sequences):
            if engine is None:
                self.ensure_ready()
                engine = self._get_engine()
            n_tokens = len(batch.word_ids) - N_BOUNDARIES * len(members)
            if memory is None or len(memory) < n_tokens:
                memory = torch.empty(n_tokens, *shape, dtype=torch.float32, device=self.bilm.device)
            layers = memory[:n_tokens]
            before = None
            if running is not None:
                before = BiLMState(*(part[:, :, members] for part in running))
            rows = np.arange(n_tokens)
            after = engine.contextualize(batch, layers, rows, before, n_threads=n_threads)
            for part, new in zip(running or (), after or ()):
                part[:, :, members] = new
            yield members, layers

    def batches(self, sequences: Sequence[Sequence[str]]) -> Iterator[Tuple[List[int], WordBatch]]:
        """Cut sequences into batches for `forward`, empty ones left out. YIELDS the indices of its
        sequences, and the batch."""
        self.warn_truncated(sequences)
        for members in plan_batches([len(words) for words in sequences], self.batch_tokens):
            yield members, make_batch([sequences[i] for i in members])

    def _get_engine(self) -> InferenceEngine:
        engine = self._engine
        if engine is not None and engine.is_current(self.bilm):
            return engine
        with LOAD_LOCK:
            engine = self._engine
            if engine is None or not engine.is_current(self.bilm):
                require_precision(self._precision, self.bilm.device.type)
                cache_size = 0 if self._is_training else self._cache_size
                engine = InferenceEngine(self.bilm, self._precision, word_cache=cache_size)
                self._engine = None if self._is_training else engine
        return engine

    def forward(self, batch: WordBatch) -> Tensor:
        """Compute layers so that gradients can flow back to the weights. As `BiLM.forward`."""
        self.ensure_ready()
        self._is_training = True
        self._engine = None
        return self.bilm(batch)

    def warn_truncated(self, sequences: Sequence[Sequence[str]]) -> None:
        """Warn with WL003, once, that words of sequences are longer than the biLM reads."""
        if not self._has_warned:
            words = (word for words in sequences for word in words)
            self._has_warned = warn_truncated(words, self.bilm.config)

    def state_dict(self, *args: Any, **kwargs: Any) -> Dict[str, Any]:  # type: ignore[override]
        """As torch's, of the weights that the first use would load."""
        self.ensure_ready()
        return super().state_dict(*args, **kwargs)

    def __getstate__(self) -> Dict[str, Any]:
        # A spawned process needs weights.
        self.ensure_ready()
        return {**self.__dict__, "_engine": None, "_kept": None}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        share_at_fork(self)


def warn_truncated(words: Iterable[str], config: BiLMConfig) -> bool:
    """Warn with WL003 if a biLM cuts more than a hundredth of the words, and more than two: a few
    addresses are in every text. RETURNS (bool): whether it does."""
    if config.input != "characters":
        return False
    words = list(words)
    n_words = count_truncated(words, config.max_chars)
    is_told = n_words > max(2, 0.01 * len(words))
    if is_told:
        text = Warnings.WL003.format(
            n_words=n_words, n_all=len(words), n_bytes=config.max_chars - 2
        )
        warnings.warn(text, stacklevel=3)
    return is_told


def require_words(sentences: Any, first: int = 0) -> None:
    """RAISES (ValueError): EL013 if sentences are not lists of words. `first` is the number of the
    first one in messages."""
    if not _is_list(sentences):
        raise _make_error("The argument", sentences, "a list of lists")
    for i, words in enumerate(sentences, first):
        if not _is_list(words):
            raise _make_error(f"Sentence {i}", words, "a list of words")
        for j, word in enumerate(words):
            if not isinstance(word, str):
                raise _make_error(f"Word {j} of sentence {i}", word, "a string")


def _is_list(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, SequenceType) and not isinstance(value, str)


def _make_error(place: str, value: Any, expected: str) -> ValueError:
    found = f"{type(value).__name__} ({value!r:.50})"
    return ValueError(Errors.EL013.format(place=place, found=found, expected=expected))


def _require_state(state: Any, zeros: BiLMState, config: BiLMConfig) -> None:
    """RAISES (ValueError): EL014 if it is not a finite state of the shape of `zeros`."""
    found = f"{type(state).__name__} ({state!r:.50})"
    if isinstance(state, BiLMState) and all(
        isinstance(part, Tensor) and part.is_floating_point() and part.dim() == 4 for part in state
    ):
        if any(
            a.shape[:2] + a.shape[3:] != b.shape[:2] + b.shape[3:] for a, b in zip(state, zeros)
        ):
            found = f"of shape {tuple(state.hidden.shape)}, {tuple(state.cell.shape)}"
        elif all(map(is_finite, state)):
            return
        else:
            found = "not finite: it holds NaN or infinity"
    raise ValueError(Errors.EL014.format(found=found, config=config))
