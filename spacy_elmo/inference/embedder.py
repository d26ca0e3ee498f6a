"""`Embedder`: a biLM with its word cache and batching, the one forward pass of all."""

import collections.abc
import warnings
from dataclasses import fields
from hashlib import blake2b
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..bilm.batch import N_BOUNDARIES, WordBatch, count_truncated, make_batch, plan_batches
from ..bilm.build_lock import BUILD_LOCK
from ..bilm.config import BiLMConfig
from ..bilm.lstm import BiLMState
from ..bilm.model import BiLM, encode_distinct
from ..bilm.snapshot import Snapshot
from ..bilm.weights import find_infinite, is_finite
from ..errors import Errors, Warnings
from ..utils import require_known, require_layer, require_least
from .activation_cache import ActivationCache, KeptLayers
from .engine import InferenceEngine
from .modes import without_modes
from .packed_layers import PRECISIONS, require_precision
from .threads import choose_n_threads, share_at_fork
from .word_cache import WordCache, clear_other_rows

# What has an order and a length.
_LISTS = (collections.abc.Sequence, np.ndarray)


def require_words(sentences: Any, first: int = 0) -> None:
    """sentences (Any): should be lists of words. first (int): number of the first one. RAISES
    (ValueError): EL013 if one of them is a string, EL119 for whatever else is no list or no
    word."""
    if not _is_list(sentences):
        raise _make_error("What is to be embedded", sentences, "a list")
    for i, words in enumerate(sentences, first):
        if isinstance(words, str):
            raise ValueError(Errors.EL013.format(i=i, found=words[:50]))
        if not _is_list(words):
            raise _make_error(f"Sentence {i}", words, "a list")
        for j, word in enumerate(words):
            if not isinstance(word, str):
                raise _make_error(f"Word {j} of sentence {i}", word, "a string")


def require_state(state: Any) -> None:
    """state (Any): should be a state, or None. RAISES (ValueError): EL120 if it is not, EL306 if
    it holds NaN or infinity."""
    is_state = isinstance(state, BiLMState) and all(
        isinstance(part, Tensor) and part.dim() == 4 and part.is_floating_point() for part in state
    )
    if state is not None and not is_state:
        raise ValueError(Errors.EL120.format(found=f"{type(state).__name__} ({state!r:.50})"))
    for name, part in zip(BiLMState._fields, state or ()):
        if not is_finite(part):
            places = find_infinite(part)
            text = Errors.EL306.format(name=name, count=len(places), place=places[0].tolist())
            raise ValueError(text)


def require_shapes(state: BiLMState, zeros: BiLMState, config: BiLMConfig) -> None:
    """state (BiLMState): any. zeros (BiLMState): of the biLM, which may have other rows. config
    (BiLMConfig): its shape. RAISES (ValueError): EL014 if the state is of another shape."""
    if any(a.shape[i] != b.shape[i] for a, b in zip(state, zeros) for i in (0, 1, 3)):
        shapes = [tuple(part.shape) for part in state]
        raise ValueError(Errors.EL014.format(found=shapes, config=config))


def _is_list(value: Any) -> bool:
    return isinstance(value, _LISTS) and not (isinstance(value, np.ndarray) and value.ndim == 0)


def _make_error(place: str, value: Any, expected: str) -> ValueError:
    description = f"{type(value).__name__} ({value!r:.50})"
    return ValueError(Errors.EL119.format(place=place, found=description, expected=expected))


def make_arrays(n_sentences: int, n_layers: int, width: int) -> List[NDArray]:
    """RETURNS (List[NDArray]): of sentences without a word, float32, shape (n_layers, 0, width)."""
    return [np.zeros((n_layers, 0, width), dtype="float32")] * n_sentences


def copy_arrays(
    layers: Tensor,
    members: List[int],
    sentences: Sequence[Sequence[str]],
    arrays: List[NDArray],
) -> None:
    """Put a batch's layers where they belong, layer first, each with memory of its own.

    layers (Tensor): of the members, one after the other, shape (n_tokens, n_layers, width).
    members (List[int]): which sentences the batch has.
    sentences (Sequence[Sequence[str]]): words of all.
    arrays (List[NDArray]): filled for the members, shape (n_layers, n_tokens, width).
    """
    parts = layers.cpu().split([len(sentences[i]) for i in members])
    for i, part in zip(members, parts):
        arrays[i] = np.array(part.numpy().swapaxes(0, 1), order="C")


def warn_truncated(words: Iterable[str], config: BiLMConfig) -> bool:
    """Say with WL003 that words are longer than a biLM reads.

    words (Iterable[str]): some words.
    config (BiLMConfig): of the biLM. One that does not read characters looks words up whole.
    RETURNS (bool): whether there are any, so that it was said.
    """
    if config.input != "characters":
        return False
    n_words = count_truncated(words, config.max_chars)
    if n_words:
        text = Warnings.WL003.format(n_words=n_words, n_bytes=config.max_chars - 2)
        warnings.warn(text, stacklevel=3)
    return n_words > 0


# Always written, in this order. A field that is not here came later, and is written after
# these unless it has its default: so it changes no hash of before, which caches and
# results on disk are named after.
_ALWAYS = (
    "width",
    "depth",
    "cell_width",
    "char_width",
    "filters",
    "n_highway",
    "max_chars",
    "cell_clip",
    "proj_clip",
    "projection",
    "skip_connections",
    "activation",
    "input",
    "n_words",
    "vector_width",
)


def hash_weights(bilm: BiLM, precision: str) -> bytes:
    """Hash a biLM and how it is run.

    bilm (BiLM): with its weights.
    precision (str): of the products.
    RETURNS (bytes): 16, the same for biLMs that make the same vectors.
    """
    # "zero" is what sequences start from: there was a choice once, and hashes are kept.
    settings = f"{_describe(bilm.config)} zero {precision}"
    digest = blake2b(settings.encode("utf-8"), digest_size=16)
    add_tensors(digest, bilm.state_dict())
    return digest.digest()


def add_tensors(digest: blake2b, tensors: Mapping[str, Tensor]) -> None:
    """Add tensors to a hash, in the order of their names.

    digest (blake2b): what to add to.
    tensors (Mapping[str, Tensor]): by name.
    """
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode("utf-8"))
        # As bytes: NumPy has no bfloat16.
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())


def _describe(config: BiLMConfig) -> str:
    later = [
        field.name
        for field in fields(config)
        if field.name not in _ALWAYS and getattr(config, field.name) != field.default
    ]
    values = [f"{name}={getattr(config, name)!r}" for name in (*_ALWAYS, *sorted(later))]
    return f"BiLMConfig({', '.join(values)})"


# Fills a biLM by `load_state_dict`, or raises and leaves it alone.
Loader = Callable[[BiLM], None]


class Embedder(nn.Module):
    """Turn sequences of words into the layers of a biLM.

    Made by `load_embedder`; the component "elmo" holds the same object. Weights that
    are not loaded yet are loaded by the first use, never replaced by random ones.

    Any number of threads may use it, and load weights meanwhile: a call computes with the
    old ones or the new ones, and with the new ones if it began after they were loaded.

    bilm (BiLM): the network.
    loader (Optional[Loader]): fills the network before its first use; None if its
        weights are final.
    batch_tokens (int): tokens per forward pass, boundaries counted; at least 1.
    word_cache (int): word vectors kept between calls; 0 for none.
    precision (str): of the matrix products where no gradient is wanted: "fp32", "bf16",
        "fp16" or "int8".
    n_threads (int): used at a time on a CPU; 0 for as many as torch uses, and one in a
        child process.
    RAISES (ValueError): EL012 if a number is out of its range, EL017 for another
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
        # What the cache has for the weights of a moment.
        self._kept: Optional[Tuple[Snapshot, KeptLayers]] = None
        # Only changed under a lock, and never trusted without a look at the biLM: other threads
        # may load weights at any time.
        self._engine: Optional[InferenceEngine] = None
        self._is_changing = False
        # What the next use loads; None if the weights are there.
        self.pending_loader: Optional[Loader] = None
        # How often the weights had changed before.
        self._n_changes = 0
        if loader is not None:
            self.set_loader(loader)
        share_at_fork(self)

    @property
    def word_cache(self) -> WordCache:
        """RETURNS (WordCache): Vectors of the words read last; none are kept while the
        weights change."""
        engine = self._engine
        return WordCache(0) if engine is None else engine.word_cache

    @property
    def is_ready(self) -> bool:
        """RETURNS (bool): Whether the weights are loaded."""
        return self.pending_loader is None

    @without_modes
    def ensure_ready(self) -> None:
        """Load the weights if that was not done. Any number of threads may call this.

        RAISES (ValueError): whatever the loader raises; the next call tries again.
        """
        if self.is_ready:
            return
        with BUILD_LOCK:
            if self.pending_loader is None:
                return
            # Others may have been loaded instead: those stay.
            if self.bilm.n_changes == self._n_changes:
                self.pending_loader(self.bilm)
            self.set_ready()

    def set_ready(self) -> None:
        """Declare the current weights final, after they were changed from outside."""
        with BUILD_LOCK:
            self._engine = None
            self._kept = None
            self._is_changing = False
            self.pending_loader = None

    def settle(self) -> None:
        """Declare that an optimizer is done, and that the weights stay as they are until the next
        `forward`: what depends on them may be kept till then."""
        with BUILD_LOCK:
            # Thinc's optimizers write through NumPy, which torch does not see.
            if any(weight.grad is not None for weight in self.bilm.parameters()):
                self.bilm.n_changes += 1
            self._is_changing = False

    @without_modes
    def prepare(self) -> None:
        """Load the weights and lay them out, as the first use without gradients does.

        RAISES (ValueError): as `ensure_ready`; EL016 if the device lacks the precision.
        """
        self.ensure_ready()
        if not self._is_changing:
            self._get_engine()

    def set_loader(self, loader: Loader) -> None:
        """Have the next use load weights.

        loader (Loader): fills the biLM in place or raises.
        """
        with BUILD_LOCK:
            self._n_changes = self.bilm.n_changes
            self.pending_loader = loader

    @without_modes
    def load(self, loader: Loader) -> None:
        """Load weights now; the old ones are kept if the loader raises.

        loader (Loader): fills the biLM in place or raises.
        """
        with BUILD_LOCK:
            loader(self.bilm)
            self.set_ready()

    def use_activations(self, cache: Optional[ActivationCache]) -> None:
        """Have layers kept from now on by those who ask for `activations`.

        cache (Optional[ActivationCache]): where; None for nowhere.
        """
        with BUILD_LOCK:
            self._activations = cache
            self._kept = None

    def activations(self) -> Optional[KeptLayers]:
        """RETURNS (Optional[KeptLayers]): Layers kept for the present weights."""
        cache = self._activations
        if cache is None:
            return None
        self.ensure_ready()
        with BUILD_LOCK:
            if self._kept is None or not self._kept[0].is_current(self.bilm):
                snapshot = Snapshot(self.bilm)
                self._kept = snapshot, cache.open(self.hash_weights())
            return self._kept[1]

    def hash_weights(self) -> bytes:
        """RETURNS (bytes): the same for biLMs that make the same vectors."""
        self.ensure_ready()
        return hash_weights(self.bilm, self._precision)

    @without_modes
    def embed(self, sentences: Sequence[Sequence[str]]) -> List[NDArray]:
        """Compute the layers of each token. A sentence's result does not depend on
        the others, nor on earlier calls.

        sentences (Sequence[Sequence[str]]): words of each sentence.
        RETURNS (List[NDArray]): for each sentence float32, shape
            (n_layers, n_tokens, width), layer first as AllenNLP's ElmoEmbedder; the
            boundaries are not in it. (`doc._.elmo` is token first.)
        RAISES (ValueError): EL013 if a sentence is a string, EL119 if it or a word
            is something else.
        EXAMPLE:
            >>> from spacy_elmo import load_embedder
            >>> layers = load_embedder().embed([["green", "eggs"]])[0]
            >>> layers.shape
            (3, 2, 512)
        """
        return self._embed(sentences, self.bilm.config.n_layers)

    @without_modes
    def embed_layer(self, sentences: Sequence[Sequence[str]], layer: int) -> List[NDArray]:
        """Compute one layer of each token, as `embed` does. Those above it are not computed.

        sentences (Sequence[Sequence[str]]): words of each sentence.
        layer (int): from 0, the word layer, or from the top, -1.
        RETURNS (List[NDArray]): for each sentence float32, shape (n_tokens, width).
        RAISES (ValueError): as `embed`, EL017 if there is no such layer.
        EXAMPLE:
            >>> from spacy_elmo import load_embedder
            >>> load_embedder().embed_layer([["green", "eggs"]], 0)[0].shape
            (2, 512)
        """
        most = self.bilm.config.n_layers
        require_layer(layer, most)
        return [array[-1] for array in self._embed(sentences, 1 + layer % most)]

    def _embed(self, sentences: Sequence[Sequence[str]], n_layers: int) -> List[NDArray]:
        """n_layers (int): from the word layer on. RETURNS (List[NDArray]): As `embed`."""
        require_words(sentences)
        arrays = make_arrays(len(sentences), n_layers, self.bilm.config.width)
        for engine, members, batch in self._plan(sentences):
            n_tokens = len(batch.word_ids) - N_BOUNDARIES * len(members)
            layers = self._make_layers(n_tokens, n_layers)
            rows, n_threads = np.arange(n_tokens), choose_n_threads(self.n_threads)
            engine.contextualize(batch, layers, rows, n_threads=n_threads)
            copy_arrays(layers, members, sentences, arrays)
        return arrays

    @without_modes
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
        RAISES (ValueError): EL013 if a sentence is a string, EL119 if it or a word is something
            else, EL120, EL306 or EL014 if the state is, has no numbers or another biLM's shape.
        EXAMPLE:
            >>> from spacy_elmo import load_embedder
            >>> embedder = load_embedder()
            >>> arrays, state = embedder.embed_stateful([["green", "eggs"]])
            >>> arrays, state = embedder.embed_stateful([["and", "ham", "."]], state)
            >>> arrays[0].shape
            (3, 3, 512)
        """
        require_words(sentences)
        require_state(state)
        self.ensure_ready()
        start = self.bilm.zero_state(len(sentences)) if state is None else state
        empty = self.bilm.zero_state(max(0, len(sentences) - start.hidden.size(2)))
        require_shapes(start, empty, self.bilm.config)
        # A saved state may come from another device.
        parts = [torch.cat((p.detach().to(z.device), z), dim=2) for p, z in zip(start, empty)]
        running = BiLMState(*(part.float() for part in parts))
        config = self.bilm.config
        arrays = make_arrays(len(sentences), config.n_layers, config.width)
        n_threads = choose_n_threads(self.n_threads)
        for engine, members, batch in self._plan(sentences):
            before = BiLMState(*(part[:, :, members] for part in running))
            layers, after = engine.contextualize_stateful(batch, before, n_threads=n_threads)
            for part, new in zip(running, after):
                part[:, :, members] = new
            copy_arrays(layers, members, sentences, arrays)
        return arrays, running

    def batches(self, sequences: Sequence[Sequence[str]]) -> Iterator[Tuple[List[int], WordBatch]]:
        """Cut sequences into batches for `forward`, empty ones left out.

        sequences (Sequence[Sequence[str]]): words of each sequence.
        YIELDS (Tuple[List[int], WordBatch]): indices of the batch's sequences, and
            the batch.
        """
        self.warn_truncated(sequences)
        for members in plan_batches([len(words) for words in sequences], self.batch_tokens):
            yield members, make_batch([sequences[i] for i in members])

    @without_modes
    def compute(
        self,
        sequences: Sequence[Sequence[str]],
        rows: Sequence[Union[Sequence[int], NDArray]],
        n_rows: int,
    ) -> Tensor:
        """Compute the layers of each word, without gradients.

        sequences (Sequence[Sequence[str]]): words of each sequence.
        rows (Sequence[Union[Sequence[int], NDArray]]): where the words of each go.
        n_rows (int): of the result.
        RETURNS (Tensor): layers, shape (n_rows, n_layers, width); zeros where no word goes.
        """
        layers = self._make_layers(n_rows, self.bilm.config.n_layers)
        clear_other_rows(layers, rows)
        for engine, members, batch in self._plan(sequences):
            batch_rows = np.concatenate([np.asarray(rows[i]) for i in members])
            n_threads = choose_n_threads(self.n_threads)
            engine.contextualize(batch, layers, batch_rows, n_threads=n_threads)
        return layers

    def _plan(
        self, sequences: Sequence[Sequence[str]]
    ) -> Iterator[Tuple[InferenceEngine, List[int], WordBatch]]:
        """As `batches`, with what computes: the same for all, whatever is loaded meanwhile."""
        engine: Optional[InferenceEngine] = None
        for members, batch in self.batches(sequences):
            if engine is None:
                self.ensure_ready()
                engine = self._get_engine()
            yield engine, members, batch

    def _make_layers(self, n_rows: int, n_layers: int) -> Tensor:
        """RETURNS (Tensor): shape (n_rows, n_layers, width), not filled."""
        shape = n_rows, n_layers, self.bilm.config.width
        return torch.empty(shape, dtype=torch.float32, device=self.bilm.device)

    def forward(self, batch: WordBatch) -> Tensor:
        """Compute layers so that gradients can flow back to the weights.

        batch (WordBatch): sequences of words.
        RETURNS (Tensor): layers of the tokens, one sequence after the other, without
            the boundaries, shape (n_tokens, n_layers, width).
        """
        self.ensure_ready()
        self._expect_changes()
        vectors = encode_distinct(self.bilm, batch.words)
        X = vectors[torch.from_numpy(batch.word_ids).to(vectors.device)]
        return self.bilm.contextualize(X, batch.lengths, keep_state=False)[0]

    def _expect_changes(self) -> None:
        # Training is about to change the weights, at moments that are not known here:
        # nothing that depends on them is kept from now on, until somebody says so.
        with BUILD_LOCK:
            self._is_changing = True
            self._engine = None

    def _get_engine(self) -> InferenceEngine:
        engine = self._engine
        if engine is not None and engine.is_current(self.bilm):
            return engine
        with BUILD_LOCK:
            engine = self._engine
            if engine is not None and engine.is_current(self.bilm):
                return engine
            require_precision(self._precision, self.bilm.device.type)
            engine = InferenceEngine(
                self.bilm,
                self._precision,
                word_cache=0 if self._is_changing else self._cache_size,
            )
            if not self._is_changing:
                self._engine = engine
        return engine

    def warn_truncated(self, sequences: Sequence[Sequence[str]]) -> None:
        """Say with WL003, once, that words are longer than the biLM reads.

        sequences (Sequence[Sequence[str]]): words of each sequence.
        """
        if not self._has_warned:
            words = (word for words in sequences for word in words)
            self._has_warned = warn_truncated(words, self.bilm.config)

    def state_dict(self, *args: Any, **kwargs: Any) -> Dict[str, Any]:  # type: ignore[override]
        """As torch's, of the weights that the first use would load."""
        self.ensure_ready()
        return super().state_dict(*args, **kwargs)

    def __getstate__(self) -> Dict[str, Any]:
        # Whoever pickles an embedder (a spawned process, say) gets weights.
        self.ensure_ready()
        return {**self.__dict__, "_engine": None, "_kept": None}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        share_at_fork(self)
