"""The component "elmo_lm": what a biLM's softmax says about each token."""

from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Tuple,
    Type,
)

import numpy as np
import torch
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.util import SimpleFrozenList, minibatch
from spacy.vocab import Vocab

from ..bilm.build_lock import BUILD_LOCK
from ..checkpoints.checkpoint_files import CheckpointFiles
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
from ..language_model.vocabulary import SPECIAL_WORDS
from ..layers.spans import SpanGetter, build_window_spans_v1
from ..layers.token_keys import make_key
from ..utils import require_least
from .lm_extensions import (
    ASSIGNS_LM,
    get_entry,
    register_lm_extensions,
    register_model,
    store_scores,
)
from .lm_scores import score_docs
from .weights_language import read_language, warn_language

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
