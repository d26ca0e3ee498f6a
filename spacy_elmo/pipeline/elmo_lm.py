"""The component "elmo_lm": it predicts each token with a biLM and its softmax.

`doc._.elmo_lm` is a dict of arrays: "forward" and "backward", the log-probability of each
token in nats, shape (n_tokens,), NaN for whitespace; "is_known", whether the token is in
the vocabulary (the others are predicted as `<UNK>`); "hidden", what each token is
predicted from, forward beside backward, shape (n_tokens, width), if it was kept; "nats"
and "n_predictions", sums over the doc with the ends of its sequences; "key", which tokens
they belong to; "model", a hash of the weights, and "component", its name.
"""

import math
from hashlib import blake2b
from operator import index
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Type, Union, cast
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
from srsly import msgpack_dumps

from ..bilm.batch import N_BOUNDARIES, pack, plan_batches
from ..bilm.weights import add_tensors, hash_weights
from ..checkpoints.formats import CheckpointFiles
from ..checkpoints.native import FILES, write_native
from ..errors import Errors
from ..files import find_folder, unpack
from ..inference.embedder import warn_truncated
from ..inference.threads import share_at_fork
from ..language_model.evaluation import Scorer
from ..language_model.loading import LoadedModel, collect_softmax, load_language_model
from ..language_model.readings import make_lm_batch
from ..language_model.vocabulary import SPECIAL_WORDS
from ..layers.doc_data import add_extension, make_key, require_key
from ..layers.spans import SpanGetter, build_window_spans_v1, get_sequences
from ..utils import require_least
from .saving import fill_pipeline_meta, find_weights_meta, warn_language

_ASSIGNS = [
    "doc._.elmo_lm", "doc._.elmo_perplexity", "token._.elmo_logprob", "token._.elmo_surprisal",
]  # fmt: skip
# Where spaCy keeps the value of `doc._.elmo_lm`.
_ELMO_LM = ("._.", "elmo_lm", None, None)
_FOLDER = "language_model"
# All that exist: docs do not hold the model, only a hash of its weights.
_components: "WeakSet[ElmoLM]" = WeakSet()


def get_entry(item: Union[Doc, Token]) -> Dict[str, Any]:
    """`doc._.elmo_lm`, also of a token. EL054 if the doc lacks it, EL050 if the tokens were merged
    or split since."""
    doc = item.doc if isinstance(item, Token) else item
    entry = cast(Dict, doc.user_data).get(_ELMO_LM)
    if entry is None:
        raise ValueError(Errors.EL054.format(text=doc.text[:50]))
    require_key(item, entry["key"], entry["component"])
    return entry


def get_perplexity(doc: Doc) -> Optional[float]:
    """doc._.elmo_perplexity: the geometric mean of both directions' perplexities, over the tokens
    and the ends of sequences; None for a doc without words."""
    entry = get_entry(doc)
    n = entry["n_predictions"]
    return math.exp(min(entry["nats"] / n, 700.0)) if n else None


def get_logprob(token: Token) -> Tuple[float, float]:
    """token._.elmo_logprob: log-probability given the tokens before, and given the tokens after it,
    in nats; NaN for whitespace."""
    entry = get_entry(token)
    return float(entry["forward"][token.i]), float(entry["backward"][token.i])


def get_surprisal(token: Token) -> float:
    """token._.elmo_surprisal: in bits, given the tokens before it; NaN for whitespace."""
    return -get_logprob(token)[0] / math.log(2.0)


def get_substitutes(token: Token, n: int = 10) -> List[Tuple[str, float]]:
    """token._.elmo_substitutes(n): the n likeliest words in place of the token, best first, with
    their probabilities: the product of those of both directions, divided by the word's frequency
    and normalised over the vocabulary.
    EL055 if no component has the weights any more, or `substitutes` is false."""
    entry = get_entry(token)
    loaded = [component for component in [*_components] if component._key == entry["model"]]
    if not loaded or "hidden" not in entry:
        raise ValueError(Errors.EL055.format(text=token.doc.text[:50]))
    if math.isnan(entry["forward"][token.i]):
        raise ValueError(f"Whitespace in '{token.doc.text[:50]}' has no substitutes.")
    return loaded[0].substitutes(token, n)


add_extension(Doc, "elmo_lm", default=None)
add_extension(Doc, "elmo_perplexity", getter=get_perplexity)
add_extension(Token, "elmo_logprob", getter=get_logprob)
add_extension(Token, "elmo_surprisal", getter=get_surprisal)
add_extension(Token, "elmo_substitutes", method=get_substitutes)


@Language.factory(
    "elmo_lm",
    assigns=_ASSIGNS,
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
    """Predict each token from the tokens before it, and from the tokens after it. This component
    needs no component "elmo", and is not trained.

    path (Optional[str]): a folder with weights and their softmax, or an installed model's name;
        None for the bundled English ones. A saved pipeline has its own.
    get_spans (Optional[SpanGetter]): cuts docs; None for spacy-elmo.window_spans.v1.
    substitutes (bool): keep a vector of each token in the doc, for `token._.elmo_substitutes`.
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
        # The model with its words, a hash of its weights, and what is known about them.
        self._model: Optional[LoadedModel] = None
        self._key, self._weights_meta = "", cast(Dict[str, str], {})
        self._has_checked_language = False
        self._has_warned = False
        share_at_fork(self)
        _components.add(self)

    def load(self) -> LoadedModel:
        """Load the language model unless it is loaded. EL074 if the folder has no softmax."""
        if self._model is None:
            files = CheckpointFiles.of(self.path) if self.path else CheckpointFiles.named()
            return self._read(files)
        return self._model

    def prepare(self) -> None:
        """Load the language model before a fork, since docs of child processes name its weights."""
        self.load()

    def _read(self, files: CheckpointFiles) -> LoadedModel:
        loaded = load_language_model(files)
        loaded.model.requires_grad_(False)
        digest = blake2b(hash_weights(loaded.model.bilm, "fp32"), digest_size=16)
        add_tensors(digest, loaded.model.softmax.state_dict())
        digest.update("\n".join(loaded.vocabulary.words).encode("utf-8", "surrogatepass"))
        self._key, self._weights_meta = digest.hexdigest(), find_weights_meta(files)
        self._model, self._has_checked_language, self._has_warned = loaded, False, False
        return loaded

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Optional[Language] = None
    ) -> None:
        """Load the language model."""
        self.load()
        if nlp is not None:
            self._check_language(nlp.lang or "")

    def _check_language(self, docs: str) -> None:
        if not self._has_checked_language:
            self._has_checked_language = True
            how = f'`nlp.add_pipe("{self.name}", config={{"path": FOLDER}})`'
            warn_language(self.name, how, self._weights_meta.get("lang"), docs)

    def __call__(self, doc: Doc) -> Doc:
        """Annotate a doc in place."""
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate docs in place, `batch_size` at a time, and yield them in order."""
        for docs in minibatch(stream, batch_size):
            try:
                self._annotate(docs)
                yield from docs
            except Exception as err:
                self.get_error_handler()(self.name, self, docs, err)

    def _annotate(self, docs: List[Doc]) -> None:
        model, vocabulary, _ = self.load()
        self._check_language(docs[0].vocab.lang)
        if not self._has_warned:
            words = (token.text for doc in docs for token in doc)
            self._has_warned = warn_truncated(words, model.bilm.config)
        scorer = Scorer(model, vocabulary)
        scores = _score_docs(scorer, docs, self.get_spans, batch_tokens=self.batch_tokens)
        for doc, doc_scores in zip(docs, scores):
            if not self.keeps_hidden:
                del doc_scores["hidden"]
            cast(Dict, doc.user_data)[_ELMO_LM] = {
                **doc_scores,
                "is_known": np.array([vocabulary.knows(t.text) for t in doc], dtype=bool),
                "key": make_key(doc),
                "model": self._key,
                "component": self.name,
            }

    def substitutes(self, token: Token, n: int = 10) -> List[Tuple[str, float]]:
        """See `get_substitutes`."""
        require_least("n", index(n), 0)
        entry, (model, vocabulary, _) = get_entry(token), self.load()
        # A copy, since arrays from other processes are read-only.
        hidden = torch.from_numpy(np.array(entry["hidden"][token.i]))
        # p(w | left, right) ~ p(w | left) p(w | right) / p(w), if left and right are independent
        # given w. Without the division, the frequency of a word counts twice.
        log_probs = model.softmax.log_probs(hidden.view(2, -1)).sum(dim=0)
        log_probs -= torch.from_numpy(vocabulary.log_frequencies())
        # No boundaries, and not the unknown word.
        log_probs[: len(SPECIAL_WORDS)] = -torch.inf
        probs = torch.softmax(log_probs, dim=0)
        best = torch.topk(probs, min(n, len(vocabulary) - len(SPECIAL_WORDS)))
        return [(vocabulary.words[i], p) for p, i in zip(best.values.tolist(), best.indices)]

    def to_disk(self, path: Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """Save the language model, and its licence and sources in the pipeline's meta.json."""
        model, vocabulary, settings = self.load()
        softmax = collect_softmax(model.softmax, model.softmax.kind, settings, vocabulary.words)
        folder, meta = Path(path), self._weights_meta
        write_native(model.bilm, folder / _FOLDER, softmax=softmax, meta=meta)
        fill_pipeline_meta(folder, meta)

    def from_disk(self, path: Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> "ElmoLM":
        """Load what `to_disk` saved. RAISES (ValueError): as `load`."""
        self._read(CheckpointFiles(find_folder(Path(path) / _FOLDER)))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """The files of `to_disk`, as bytes."""
        with TemporaryDirectory() as folder:
            self.to_disk(Path(folder))
            files = (Path(folder) / _FOLDER).iterdir()
            return msgpack_dumps({file.name: file.read_bytes() for file in files})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()) -> "ElmoLM":
        """Load what `to_bytes` returned. RAISES (ValueError): EL116 if it cannot be read."""
        source = f"the component '{self.name}'"
        files = unpack(data, source)
        if not isinstance(files, dict):
            raise ValueError(Errors.EL116.format(source=source, error="they hold no files"))
        with TemporaryDirectory() as folder:
            (Path(folder) / _FOLDER).mkdir()
            for name in FILES:
                if isinstance(files.get(name), bytes):
                    (Path(folder) / _FOLDER / name).write_bytes(files[name])
            return self.from_disk(Path(folder))

    def __repr__(self) -> str:
        if self._model is None:
            description = f"weights of {self.path or 'the bundled model'}, not loaded yet"
        else:
            model, vocabulary, _ = self._model
            description = f"{model.softmax.kind} softmax, vocabulary of {len(vocabulary)}"
        return f"<ElmoLM '{self.name}': {description}>"

    def __reduce__(self) -> Tuple[Any, ...]:
        # Copies have weights, as in a spawned process. `Pipe` is a class of Cython, which would
        # not call `__getstate__`.
        self.load()
        return _make_unpickled, (type(self), self.__dict__)


def _make_unpickled(cls: Type[ElmoLM], state: Dict[str, Any]) -> ElmoLM:
    component = cls.__new__(cls)
    component.__dict__.update(state)
    share_at_fork(component)
    _components.add(component)
    return component


def _score_docs(
    scorer: Scorer, docs: List[Doc], get_spans: SpanGetter, *, batch_tokens: int
) -> List[Dict[str, Any]]:
    """Predict each token of docs in both directions. RETURNS (List[Dict[str, Any]]): of each doc
    "forward", "backward", "hidden", "nats" and "n_predictions", as in `doc._.elmo_lm`."""
    width = scorer.model.bilm.config.width
    log_probs = [np.full((2, len(doc)), np.nan, dtype=np.float32) for doc in docs]
    hidden = [np.zeros((len(doc), width), dtype=np.float32) for doc in docs]
    nats, n_predictions = [0.0] * len(docs), [0] * len(docs)
    starts = np.cumsum([0, *[len(doc) for doc in docs]])
    sequences, rows = get_sequences(docs, get_spans)
    for members in plan_batches([len(words) for words in sequences], batch_tokens):
        scores = _score_sequences(scorer, [sequences[k] for k in members])
        for k, (sequence_log_probs, sequence_hidden) in zip(members, scores):
            # Empty docs share their start with the next one.
            i = int(np.searchsorted(starts, rows[k][0], side="right")) - 1
            places = rows[k] - starts[i]
            # Forward, the last prediction is the end; backward, it is the begin.
            log_probs[i][:, places] = sequence_log_probs[:, 1:-1]
            hidden[i][places] = sequence_hidden[1:-1]
            nats[i] -= float(np.nansum(sequence_log_probs)) / 2
            n_predictions[i] += len(places) + 1
    keys = ("forward", "backward", "hidden", "nats", "n_predictions")
    columns = zip(log_probs, hidden, nats, n_predictions)
    return [dict(zip(keys, (*probs, *others))) for probs, *others in columns]


def _score_sequences(
    scorer: Scorer, sequences: List[List[str]]
) -> Iterator[Tuple[NDArray, NDArray]]:
    """YIELDS for each sequence with its boundaries: log-probabilities, shape (2, length), NaN where
    a direction predicts nothing; and what they are computed from, shape (length, width)."""
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
    yield from zip(np.split(log_probs, ends, axis=1), np.split(hidden, ends))
