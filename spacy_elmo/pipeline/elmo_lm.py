"""The component "elmo_lm": what a biLM's softmax says about each token."""

import math
from collections import defaultdict
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import (
    Any,
    Callable,
    DefaultDict,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Protocol,
    Tuple,
    Type,
    Union,
)
from weakref import WeakSet

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.util import SimpleFrozenList, minibatch
from spacy.vocab import Vocab

from ..bilm.batch import N_BOUNDARIES, pack, plan_batches
from ..bilm.build_lock import BUILD_LOCK
from ..checkpoints.formats import CheckpointFiles
from ..checkpoints.native import (
    CONFIG_FILE,
    META_FILE,
    SOFTMAX_FILE,
    VOCAB_FILE,
    WEIGHTS_FILE,
    write_native,
)
from ..errors import Errors
from ..files import ANY_SIZE, DIGESTS_FILE, find_folder, join_files, split_files
from ..inference.embedder import add_tensors, hash_weights, warn_truncated
from ..inference.modes import without_modes
from ..inference.threads import share_at_fork
from ..language_model.evaluation import Scorer
from ..language_model.loading import LoadedModel, collect_softmax, load_language_model
from ..language_model.readings import make_lm_batch
from ..language_model.vocabulary import SPECIAL_WORDS
from ..layers.doc_data import (
    add_extension,
    get_arrays,
    make_key,
    register_arrays,
    require_key,
    set_arrays,
)
from ..layers.spans import SpanGetter, build_window_spans_v1, get_sequences
from ..utils import require_least
from .saving import read_language, warn_language

ASSIGNS_LM = [
    "doc._.elmo_lm", "doc._.elmo_perplexity", "token._.elmo_logprob", "token._.elmo_surprisal",
]  # fmt: skip


_LM_NAME = "elmo_lm"


class Substituter(Protocol):
    """Something that knows what else could stand in a token's place."""

    def substitutes(self, token: Token, n: int) -> List[Tuple[str, float]]:
        """See `get_substitutes`."""


# Docs travel without the model; while one lives that says the same, it is found by its key.
_models: "DefaultDict[str, WeakSet[Substituter]]" = defaultdict(WeakSet)


def register_lm_extensions() -> None:
    """Register the extensions. Harmless when done before."""
    register_arrays(_LM_NAME)
    add_extension(Doc, "elmo_perplexity", getter=get_perplexity)
    add_extension(Token, "elmo_logprob", getter=get_logprob)
    add_extension(Token, "elmo_surprisal", getter=get_surprisal)
    add_extension(Token, "elmo_substitutes", method=get_substitutes)


def register_model(key: str, model: Substituter) -> None:
    """Have a model found by what a doc says of it. It is not kept alive by this.

    key (str): "model" of the docs that it annotates.
    model (Substituter): the component.
    """
    # Added first: another thread may look for it meanwhile.
    _models[key].add(model)
    # It may have had other weights.
    for other, models in [*_models.items()]:
        if other != key:
            models.discard(model)


def store_scores(doc: Doc, entry: Dict[str, Any]) -> None:
    """doc (Doc): any doc. entry (Dict[str, Any]): `doc._.elmo_lm`, as the module describes it."""
    set_arrays(_LM_NAME, doc, entry)


def get_entry(item: Union[Doc, Token]) -> Dict[str, Any]:
    """item (Union[Doc, Token]): a doc, or the token that is asked for. RETURNS (Dict[str, Any]):
    `doc._.elmo_lm`. RAISES (ValueError): EL054 if there is none, EL050 if the tokens were
    changed since."""
    doc = item.doc if isinstance(item, Token) else item
    entry = get_arrays(_LM_NAME, doc)
    if entry is None:
        raise ValueError(Errors.EL054.format(text=doc.text[:50]))
    if "key" in entry:
        require_key(item, entry["key"], entry.get("component", _LM_NAME))
    elif len(entry["forward"]) != len(doc):
        # Version 0.1.0 kept no key.
        raise ValueError(Errors.EL050.format(text=doc.text[:50], name=_LM_NAME))
    return entry


def get_perplexity(doc: Doc) -> Optional[float]:
    """doc._.elmo_perplexity: geometric mean of both directions, for each token and the
    end of each sequence; None for a doc without words. Errors as `get_entry`."""
    entry = get_entry(doc)
    n = entry["n_predictions"]
    return math.exp(min(entry["nats"] / n, 700.0)) if n else None


def get_logprob(token: Token) -> Tuple[float, float]:
    """token._.elmo_logprob: given what is before it, and given what is after it, in nats;
    NaN for whitespace. Errors as `get_entry`."""
    entry = get_entry(token)
    return float(entry["forward"][token.i]), float(entry["backward"][token.i])


def get_surprisal(token: Token) -> float:
    """token._.elmo_surprisal: bits, given what is before the token, as a reader meets it;
    NaN for whitespace. Errors as `get_entry`."""
    return -get_logprob(token)[0] / math.log(2.0)


def get_substitutes(token: Token, n: int = 10) -> List[Tuple[str, float]]:
    """token._.elmo_substitutes(n): words that could stand here, the likeliest first, each
    with its probability: the product of both directions', normalised over the vocabulary.

    RAISES (ValueError): EL054 and EL050 as `get_entry`, EL055 if what predicts is gone or
        was not kept, EL056 for whitespace, EL012 for a negative `n`.
    """
    entry = get_entry(token)
    model = next(iter([*_models.get(entry["model"], ())]), None)
    if model is None or "hidden" not in entry:
        raise ValueError(Errors.EL055.format(text=token.doc.text[:50]))
    if math.isnan(entry["forward"][token.i]):
        raise ValueError(Errors.EL056.format(text=token.doc.text[:50]))
    return model.substitutes(token, n)


@dataclass
class DocScores:
    """Of one doc.

    log_probs (NDArray): nats, forward and backward, NaN for whitespace, shape (2, n_tokens).
    hidden (NDArray): what each token is predicted from, forward beside backward, zeros for
        whitespace, shape (n_tokens, width).
    nats (float): negative log-likelihood of the doc, mean of both directions.
    n_predictions (int): of each direction: words, and the end of each sequence.
    """

    log_probs: NDArray
    hidden: NDArray
    nats: float = 0.0
    n_predictions: int = 0


def score_docs(
    scorer: Scorer, docs: List[Doc], get_spans: SpanGetter, *, batch_tokens: int
) -> List[DocScores]:
    """Predict each token of docs in both directions.

    scorer (Scorer): the language model; its weights require no gradient.
    docs (List[Doc]): any docs.
    get_spans (SpanGetter): cuts them into sequences.
    batch_tokens (int): tokens per forward pass, at least 1.
    RETURNS (List[DocScores]): of each doc, with memory of its own.
    """
    width = scorer.model.bilm.config.width
    scores = [_make_empty(len(doc), width) for doc in docs]
    starts = np.cumsum([0, *[len(doc) for doc in docs]])
    sequences, rows = get_sequences(docs, get_spans)
    for members in plan_batches([len(words) for words in sequences], batch_tokens):
        for k, sequence_scores in zip(members, _score(scorer, [sequences[k] for k in members])):
            # Empty docs share their start with the next one.
            i = np.searchsorted(starts, rows[k][0], side="right") - 1
            places = rows[k] - starts[i]
            # Forward, the last prediction is the end; backward, it is the begin.
            scores[i].log_probs[:, places] = sequence_scores.log_probs[:, 1:-1]
            scores[i].hidden[places] = sequence_scores.hidden[1:-1]
            scores[i].nats -= float(np.nansum(sequence_scores.log_probs)) / 2
            scores[i].n_predictions += len(places) + 1
    return scores


def _make_empty(n_tokens: int, width: int) -> DocScores:
    log_probs = np.full((2, n_tokens), np.nan, dtype=np.float32)
    return DocScores(log_probs, np.zeros((n_tokens, width), dtype=np.float32))


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


_FOLDER = "language_model"
_FILES = (CONFIG_FILE, WEIGHTS_FILE, SOFTMAX_FILE, VOCAB_FILE, META_FILE, DIGESTS_FILE)
_OPTIONAL = (META_FILE, DIGESTS_FILE)

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


class _Held(NamedTuple):
    """One language model. loaded (LoadedModel): itself. key (str): by which docs name it. lang
    (Optional[str]): what it was trained on, None if nothing says it."""

    loaded: LoadedModel
    key: str
    lang: Optional[str]


class ElmoLM(Pipe):
    """Predict each token from what is before it, and from what is after it. It needs no
    component "elmo", and does not train.

    vocab (Vocab): the shared vocabulary.
    name (str): name in the pipeline.
    path (Optional[str]): a folder with weights and their softmax, or an installed model's name;
        None for the bundled English ones. A saved pipeline has its own.
    get_spans (Optional[SpanGetter]): cuts docs into sequences; None for
        spacy-elmo.window_spans.v1.
    substitutes (bool): whether docs keep what `token._.elmo_substitutes` needs: width
        numbers a token.
    batch_tokens (int): tokens per forward pass, at least 1.
    RAISES (ValueError): EL012 if a number is out of its range.
    EXAMPLE:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> elmo_lm = nlp.add_pipe("elmo_lm")
        >>> good, bad = nlp("He was at home."), nlp("Home at was he.")
        >>> good._.elmo_perplexity < bad._.elmo_perplexity
        True
        >>> good[4]._.elmo_surprisal > 0
        True
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
        self._held: Optional[_Held] = None
        self._has_checked_language = False
        self._has_warned = False
        share_at_fork(self)

    def prepare(self) -> None:
        """Load the language model before a fork: this process then knows what docs of others say.
        RAISES (ValueError): as `load`."""
        self.load()

    def load(self) -> LoadedModel:
        """Load the language model if that was not done.

        RETURNS (LoadedModel): the model and its words.
        RAISES (ValueError): EL024 without bundled weights, EL074 if the folder has no
            softmax, EL030 to EL038 if it cannot be read.
        """
        return self._hold().loaded

    def _hold(self) -> _Held:
        held = self._held
        if held is not None:
            return held
        with BUILD_LOCK:
            if self._held is not None:
                return self._held
            path = self.path
            return self._read(CheckpointFiles.of(path) if path else CheckpointFiles.named())

    def _read(self, files: CheckpointFiles) -> _Held:
        loaded = load_language_model(files)
        held = _Held(loaded, _hash_model(loaded), read_language(files))
        # Without `torch.no_grad`, which an interrupt may leave switched on.
        held.loaded.model.requires_grad_(False)
        with BUILD_LOCK:
            self._held, self._has_checked_language, self._has_warned = held, False, False
        register_model(held.key, self)
        return held

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Optional[Language] = None
    ) -> None:
        """Load the language model. RAISES (ValueError): as `load`."""
        self.load()
        if nlp is not None:
            self._check_language(nlp.lang or "")

    def _check_language(self, docs: str) -> None:
        lang = self._hold().lang
        if not self._has_checked_language:
            self._has_checked_language = True
            how = f'`nlp.add_pipe("{self.name}", config={{"path": FOLDER}})`'
            warn_language(self.name, how, lang, docs)

    def __call__(self, doc: Doc) -> Doc:
        """doc (Doc): annotated in place. RETURNS (Doc): the same."""
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """stream (Iterable[Doc]): docs. batch_size (int): docs at a time. YIELDS (Doc): the
        docs in order."""
        for docs in minibatch(stream, batch_size):
            yield from self._annotate_readable(docs)

    def _annotate_readable(self, docs: List[Doc]) -> List[Doc]:
        """RETURNS (List[Doc]): those that could be read; one that cannot costs no other."""
        try:
            self._annotate(docs)
        except Exception as err:
            if len(docs) > 1:
                return [doc for each in docs for doc in self._annotate_readable([each])]
            self.get_error_handler()(self.name, self, docs, err)
            return []
        return docs

    @without_modes
    def _annotate(self, docs: List[Doc]) -> None:
        (model, vocabulary, _), key, _ = self._hold()
        self._check_language(docs[0].vocab.lang)
        if not self._has_warned:
            words = (token.text for doc in docs for token in doc)
            self._has_warned = warn_truncated(words, model.bilm.config)
        # Another component with these weights may have been the last to say so, and is gone.
        register_model(key, self)
        scorer = Scorer(model, vocabulary)
        scores = score_docs(scorer, docs, self.get_spans, batch_tokens=self.batch_tokens)
        for doc, doc_scores in zip(docs, scores):
            entry = {
                "forward": doc_scores.log_probs[0],
                "backward": doc_scores.log_probs[1],
                "is_known": np.array([vocabulary.knows(t.text) for t in doc], dtype=bool),
                "nats": doc_scores.nats,
                "n_predictions": doc_scores.n_predictions,
                "key": make_key(doc),
                "model": key,
                "component": self.name,
                **({"hidden": doc_scores.hidden} if self.keeps_hidden else {}),
            }
            store_scores(doc, entry)

    @without_modes
    def substitutes(self, token: Token, n: int = 10) -> List[Tuple[str, float]]:
        """See `lm_extensions.get_substitutes`."""
        require_least("n", n, 0)
        entry, ((model, vocabulary, _), key, _) = get_entry(token), self._hold()
        if entry["model"] != key:
            # Other weights were loaded since.
            raise ValueError(Errors.EL055.format(text=token.doc.text[:50]))
        # A copy: what comes from other processes cannot be written to. By NumPy: on the CPU,
        # whatever device the caller has made the default.
        hidden = torch.from_numpy(np.array(entry["hidden"][token.i]))
        log_probs = model.softmax.log_probs(hidden.view(2, -1)).sum(dim=0)
        # A boundary or an unknown word is no word to put there.
        log_probs[: len(SPECIAL_WORDS)] = -torch.inf
        probs = torch.softmax(log_probs, dim=0)
        best = torch.topk(probs, min(n, len(vocabulary) - len(SPECIAL_WORDS)))
        return [(vocabulary.words[i], p) for p, i in zip(best.values.tolist(), best.indices)]

    def to_disk(self, path: Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """path (Path): folder for the language model."""
        (model, vocabulary, settings), _, lang = self._hold()
        softmax = collect_softmax(model.softmax, model.softmax.kind, settings, vocabulary.words)
        meta = {} if lang is None else {"lang": lang}
        write_native(model.bilm, Path(path) / _FOLDER, softmax=softmax, meta=meta)

    def from_disk(self, path: Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> "ElmoLM":
        """path (Path): folder that `to_disk` wrote. RETURNS (ElmoLM): itself. RAISES
        (ValueError): as `load`."""
        self._read(CheckpointFiles(find_folder(Path(path) / _FOLDER)))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """RETURNS (bytes): the files of `to_disk`."""
        with TemporaryDirectory() as folder:
            self.to_disk(Path(folder))
            files = (Path(folder) / _FOLDER).iterdir()
            return join_files({file.name: file.read_bytes() for file in files})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()) -> "ElmoLM":
        """data (bytes): from `to_bytes`. RETURNS (ElmoLM): itself. RAISES (ValueError): EL116
        if the bytes hold anything but these files or are not what was written, others as
        `load`."""
        limits = dict.fromkeys(_FILES, ANY_SIZE)
        source = f"the component '{self.name}'"
        files = split_files(data, limits, source, optional=_OPTIONAL)
        with TemporaryDirectory() as folder:
            (Path(folder) / _FOLDER).mkdir()
            for name, content in files.items():
                (Path(folder) / _FOLDER / name).write_bytes(content)
            return self.from_disk(Path(folder))

    def __repr__(self) -> str:
        if self._held is None:
            description = f"weights of {self.path or 'the bundled model'}, not loaded yet"
        else:
            model, vocabulary, _ = self._held.loaded
            description = f"{model.softmax.kind} softmax, vocabulary of {len(vocabulary)}"
        return f"<ElmoLM '{self.name}': {description}>"

    def __reduce__(self) -> Tuple[Any, ...]:
        # Whoever pickles a pipeline (a spawned process, say) gets weights. `Pipe` is a class of
        # Cython, which would not ask for a state.
        self.load()
        return _make_unpickled, (type(self), self.__dict__)


def _make_unpickled(cls: Type[ElmoLM], state: Dict[str, Any]) -> ElmoLM:
    component = cls.__new__(cls)
    component.__dict__.update(state)
    share_at_fork(component)
    register_model(component._hold().key, component)
    return component


def _hash_model(loaded: LoadedModel) -> str:
    """RETURNS (str): the same for models that predict the same, in all processes."""
    digest = blake2b(hash_weights(loaded.model.bilm, "fp32"), digest_size=16)
    add_tensors(digest, loaded.model.softmax.state_dict())
    digest.update("\n".join(loaded.vocabulary.words).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
