"""The component "elmo": the biLM's vectors for docs, shared with the components that listen."""

import json
import warnings
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    Type,
    cast,
)

from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.util import SimpleFrozenList, registry
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d

from ..bilm.model import BiLM
from ..checkpoints.formats import CheckpointFiles, PathLike
from ..checkpoints.loaders import CheckpointLoader, build_bundled_loader_v1
from ..errors import Errors, Warnings
from ..inference.activation_cache import ActivationCache
from ..inference.embedder import Loader
from ..layers.doc_data import ASSIGNS, register_extensions, set_hooks, set_vectors
from ..layers.elmo_layers import (
    LAYERS_NAME,
    compute_layers,
    get_embedder,
    is_frozen,
    load_model,
    make_arrays,
    put_sequences,
)
from ..layers.listener import ElmoListener, check_listener
from ..layers.scalar_mix import get_layer_width
from ..utils import require_least, split_by_size
from .saving import SavedPipe, fill_pipeline_meta, find_weights_meta, warn_language

# Layers, and their shared mix.
Prediction = Tuple[List[Floats2d], List[Floats2d]]
# Examples in which long words are looked for before training.
_N_EXAMPLES = 10_000

register_extensions()


@Language.factory(
    "elmo",
    assigns=ASSIGNS,
    default_config={
        "model": {"@architectures": "spacy-elmo.Elmo.v2"},
        "store_layers": False,
        "vector_hooks": None,
        "learn_rate_factor": 1.0,
        "installed_weights": None,
    },
)
def make_elmo(
    nlp: Language,
    name: str,
    model: Model[List[Doc], List[Floats2d]],
    store_layers: bool,
    vector_hooks: Optional[bool],
    learn_rate_factor: float,
    installed_weights: Optional[str],
) -> "Elmo":
    """Make the component. See `Elmo`."""
    component = Elmo(
        nlp.vocab,
        model,
        name,
        store_layers=store_layers,
        vector_hooks=vector_hooks,
        learn_rate_factor=learn_rate_factor,
        installed_weights=installed_weights,
    )
    if not get_embedder(model).is_ready:
        get_embedder(model).set_loader(partial(_load_at_first_use, component, nlp))
    return component


class Elmo(SavedPipe, Tok2Vec):
    """Compute contextual vectors, and share them with the components that listen: spaCy's own
    listeners get the shared mix, also in `doc.tensor`; an `ElmoListener` gets all layers and mixes
    them itself.

    EXAMPLE:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> elmo = nlp.add_pipe("elmo")
        >>> doc = nlp("He sat by the bank of the river.")
        >>> doc.tensor.shape, doc[4]._.elmo.shape
        ((9, 512), (512,))
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], List[Floats2d]],
        name: str = "elmo",
        *,
        store_layers: bool = False,
        vector_hooks: Optional[bool] = None,
        learn_rate_factor: float = 1.0,
        installed_weights: Optional[str] = None,
    ) -> None:
        """model (Model[List[Doc], List[Floats2d]]): spacy-elmo.Elmo.v2.
        store_layers (bool): keep all layers in `doc._.elmo` even if no component listens.
        vector_hooks (Optional[bool]): let `vector` and `similarity` of docs, spans and tokens use
            the vectors of this component; None to do so unless there are static vectors.
        learn_rate_factor (float): the biLM's learning rate, if it is not frozen, as a
            multiple of the optimizer's; at least 0.
        installed_weights (Optional[str]): name of the installed model that has the weights, such as
            "en_small". Saving writes its name and a hash in their place; None to save the weights.
        RAISES (ValueError): EL006 for another architecture, EL012 for a negative factor.
        """
        super().__init__(vocab, model, name)
        # By position and name: a copied model loses references and subclasses.
        names = [layer.name for layer in model.layers]
        if names != [LAYERS_NAME, "scalar_mix"]:
            raise ValueError(Errors.EL006.format(name=name, found=names or [model.name]))
        require_least("learn_rate_factor", learn_rate_factor, 0)
        self.store_layers = store_layers
        self.vector_hooks = vector_hooks
        self.learn_rate_factor = learn_rate_factor
        get_embedder(model).installed_weights = installed_weights
        self._pending: Optional[_SentBatch] = None
        self._has_checked_language = False
        if get_embedder(model).is_ready:
            self.set_weights_meta({})

    @property
    def width(self) -> int:
        """Width of a token's vector."""
        return self.model.get_dim("nO")

    @property
    def n_layers(self) -> int:
        """Number of layers of a token, including the word layer."""
        return self.model.layers[0].get_dim("nO") // self.layer_width

    @property
    def layer_width(self) -> int:
        """Width of one layer."""
        return get_layer_width(self.model.layers[1])

    @property
    def lang(self) -> Optional[str]:
        """Language that the weights were trained on, such as "en"; None if it is not known. Loads
        the weights unless they are loaded."""
        if "lang" not in self.cfg:
            embedder = get_embedder(self.model)
            loader = embedder.pending_loader
            embedder.ensure_ready()
            found = find_weights_meta(getattr(loader, "files", None))
            self.cfg = {"lang": None, **found, **self.cfg}
        return self.cfg["lang"]

    def set_weights_meta(self, weights_meta: Dict[str, str]) -> None:
        """Set what is known about the weights, see `find_weights_meta`."""
        self.cfg = {"lang": None, **weights_meta}
        self._has_checked_language = False

    def load(self, path: PathLike, weights_path: Optional[PathLike] = None) -> None:
        """Load weights now, from a folder, or from options.json and the HDF5 file. If they cannot
        be read, or have another shape (EL023), the old ones are kept."""
        self._load(CheckpointLoader(CheckpointFiles.of(path, weights_path)))

    def _load(self, loader: Loader) -> None:
        get_embedder(self.model).load(loader)
        self.set_weights_meta(find_weights_meta(getattr(loader, "files", None)))

    def add_listener(self, listener: Tok2VecListener, component_name: str) -> None:
        """Link a listener. EL001 if its width is not the width of this component; if its upstream
        is "*", it is left to another component instead."""
        expected = self.width
        if isinstance(listener, ElmoListener):
            expected = self.n_layers * self.layer_width
        if listener.get_dim("nO") != expected:
            if listener.upstream_name != "*":
                raise _wrong_width(listener, component_name, self.name, expected)
            return
        if isinstance(listener, ElmoListener):
            listener.upstream_layers = self.model.layers[0]
        else:
            check_listener(listener, self.name)
        listener.attrs["settings"].frozen = is_frozen(self.model)
        super().add_listener(listener, component_name)

    def remove_listener(self, listener: Tok2VecListener, component_name: str) -> bool:
        """Unlink a listener. RETURNS (bool): whether it was linked."""
        listeners = self.listener_map.get(component_name, [])
        # A new list: `nlp.replace_listeners` walks over the old one while it calls us.
        rest = [other for other in listeners if other is not listener]
        if rest:
            self.listener_map[component_name] = rest
        else:
            self.listener_map.pop(component_name, None)
        return len(rest) < len(listeners)

    def predict(self, docs: Iterable[Doc]) -> Prediction:
        """docs (Iterable[Doc]): any docs, also empty ones. RETURNS (Prediction): for each doc, an
        array of its layers, or no arrays if nobody keeps them, and an array of their shared mix."""
        docs = list(docs)
        if docs:
            self._check_language(docs[0].vocab.lang)
        layers_model, mix_model = self.model.layers
        mixed, layers = make_arrays(mix_model, docs, self.width), []
        if self.store_layers or any(isinstance(node, ElmoListener) for node in self.listeners):
            layers = make_arrays(layers_model, docs, layers_model.get_dim("nO"))
        for places, X in compute_layers(layers_model, docs, False):
            put_sequences(mixed, places, mix_model.predict([X])[0])
            if layers:
                put_sequences(layers, places, X)
        return layers, mixed

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Process a stream of docs. As many are read ahead as fill a forward pass of the biLM
        (`batch_tokens`), since fewer take up to twice as long; with `batch_size = 1`, none.

        batch_size (int): how many docs other components read ahead.
        YIELDS (Doc): the docs, in order.
        """
        most = 1 if batch_size == 1 else get_embedder(self.model).batch_tokens
        for docs in split_by_size(stream, lambda doc: max(1, len(doc)), most):
            try:
                self.set_annotations(docs, self.predict(docs))
                yield from docs
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)

    def set_annotations(self, docs: Sequence[Doc], tokvecses: Prediction) -> None:
        """Set `doc.tensor` and `doc._.elmo` from the result of `predict`."""
        layers, mixed = tokvecses
        super().set_annotations(docs, mixed)
        for i, doc in enumerate(docs):
            kept = None
            if layers:
                shape = len(doc), self.n_layers, self.layer_width
                kept = self.model.ops.reshape3f(layers[i], *shape)
            # spaCy keeps the mean of the tensor, or of static vectors, that a doc had before.
            doc.vector, doc.vector_norm = cast(Any, (None, None))
            set_vectors(doc, self.name, cast(Floats2d, doc.tensor), kept)
            uses_hooks = self.vector_hooks
            if uses_hooks is None:
                uses_hooks = not doc.vocab.vectors_length
            if uses_hooks:
                set_hooks(doc)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optional[Optimizer] = None,
        losses: Optional[Dict[str, float]] = None,
    ) -> Dict[str, float]:
        """Send a batch to the listeners and collect their gradients. They go through the model when
        all of them have arrived: in `finish_update`, or at the next `update`. So neither the order
        in which listeners report matters, nor whether one of them is frozen and never does. An
        `ElmoListener` reports nothing to a frozen biLM.

        drop (float): not used; the mix has its own `mix_dropout`.
        losses (Optional[Dict[str, float]]): gets the squared gradient under our name: of the
            shared mix, and of the layers if the biLM is trained.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "Elmo.update")
        self._backprop_sent()
        docs = [eg.predicted for eg in examples]
        layers_model, mix_model = self.model.layers
        layers, backprop_layers = layers_model.begin_update(docs)
        mixed: List[Floats2d] = []
        backprop_mix: Optional[Callable] = None
        if any(not isinstance(listener, ElmoListener) for listener in self.listeners):
            mixed, backprop_mix = mix_model.begin_update(layers)
        sent = self._pending = _SentBatch(backprop_layers, backprop_mix)
        for listener in self.listeners:
            has_mix = isinstance(listener, ElmoListener)
            gradient = sent.d_layers if has_mix else sent.d_mixed
            # Not a closure: pipelines are pickled in training, too.
            callback = partial(_collect, gradient, losses, self.name)
            listener.receive(listener.get_batch_id(docs), layers if has_mix else mixed, callback)
        if sgd is not None:
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Update the mix, and the biLM if it is not frozen, from their gradients."""
        self._backprop_sent()
        layers_model, mix_model = self.model.layers
        # Thinc's torch bridge does not pass a learning rate scale.
        scaled = cast(Optimizer, partial(sgd, lr_scale=self.learn_rate_factor))
        layers_model.finish_update(scaled)
        mix_model.finish_update(sgd)

    def _backprop_sent(self) -> None:
        """Send the gradients of the last batch through the model, if any have arrived."""
        sent, trains = self._pending, not is_frozen(self.model)
        if sent is None or not (sent.d_mixed or sent.d_layers):
            return
        self._pending = None
        if sent.d_mixed and sent.backprop_mix is not None:
            d_layers = sent.backprop_mix(sent.d_mixed, to_layers=trains)
            if trains:
                _add(sent.d_layers, d_layers)
        if sent.d_layers:
            sent.backprop_layers(sent.d_layers)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        loader: Optional[Loader] = None,
        activation_cache: Optional[ActivationCache] = None,
    ) -> None:
        """Load the weights, and look for listeners that will not get these vectors.

        loader (Optional[Loader]): loads the weights; None to keep weights that are already
            loaded, or else load the bundled ones.
        activation_cache (Optional[ActivationCache]): keeps the layers of the training and
            evaluation data; None to compute them each time.
        RAISES (ValueError): EL018 for a cache of a biLM that is not frozen.
        """
        validate_get_examples(get_examples, "Elmo.initialize")
        _check_cache(self, activation_cache)
        embedder = get_embedder(self.model)
        if loader is not None:
            self._load(loader)
        embedder.use_activations(activation_cache)
        self.model.initialize()
        # Now, and not in the middle of the table that training prints.
        examples = islice(get_examples(), _N_EXAMPLES)
        embedder.warn_truncated([[token.text for token in eg.predicted] for eg in examples])
        if nlp is not None:
            self._check_language(nlp.lang or "")
            _check_pipeline(self, nlp)

    def _check_language(self, docs: str) -> None:
        if not self._has_checked_language:
            lang = self.lang
            self._has_checked_language = True
            how = f'`nlp.get_pipe("{self.name}").load(FOLDER)`'
            warn_language(self.name, how, lang, docs)

    def to_disk(self, path: PathLike, *, exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """Save the component, and the weights' licence and sources in the pipeline's meta.json."""
        super().to_disk(path, exclude=exclude)
        fill_pipeline_meta(path, self.cfg)

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        files = {}
        if "cfg" not in exclude:
            files["cfg"] = json.dumps({"lang": self.lang, **self.cfg}).encode("utf-8")
        if "model" not in exclude:
            files["model"] = self.model.to_bytes()
        return files

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        weights_meta: Dict[str, str] = {}
        if "cfg" in files:
            try:
                weights_meta = dict(json.loads(files["cfg"]))
            except (ValueError, TypeError) as err:
                raise ValueError(Errors.EL116.format(source=source, error=f"cfg: {err}")) from err
        # The language, licence and sources are those of the weights.
        if "model" in files:
            load_model(self.model, files["model"], source)
            self.set_weights_meta(weights_meta)

    def __repr__(self) -> str:
        weights = "" if get_embedder(self.model).is_ready else ", weights not loaded yet"
        trained = "frozen" if is_frozen(self.model) else "trained"
        listeners = ", ".join(self.listening_components) or "none"
        return (
            f"<Elmo '{self.name}': {self.n_layers} layers of width {self.layer_width}, "
            f"{trained}{weights}; listeners: {listeners}>"
        )


def _load_at_first_use(elmo: Elmo, nlp: Language, bilm: BiLM) -> None:
    """Load weights as [initialize] says, else the bundled ones: for a pipeline that was neither
    loaded nor initialized, and for a component in [training] frozen_components. The config of `nlp`
    was not complete when `elmo` was made."""
    config = nlp.config.interpolate().get("initialize") or {}
    # It may have been renamed.
    name = next((name for name, pipe in nlp.components if pipe is elmo), elmo.name)
    block = (config.get("components") or {}).get(name) or {}
    made = registry.resolve({k: block[k] for k in ("loader", "activation_cache") if block.get(k)})
    cache, loader = made.get("activation_cache"), made.get("loader") or build_bundled_loader_v1()
    _check_cache(elmo, cache)
    loader(bilm)
    elmo.set_weights_meta(find_weights_meta(getattr(loader, "files", None)))
    if cache is not None:
        get_embedder(elmo.model).use_activations(cache)


def _check_cache(elmo: Elmo, cache: Optional[ActivationCache]) -> None:
    if cache is not None and not is_frozen(elmo.model):
        raise ValueError(Errors.EL018.format(name=elmo.name))


@dataclass
class _SentBatch:
    """A batch that was sent to the listeners, and the gradients that they have sent back."""

    backprop_layers: Callable
    backprop_mix: Optional[Callable]
    d_layers: List[Floats2d] = field(default_factory=list)
    d_mixed: List[Floats2d] = field(default_factory=list)

    def __reduce__(self) -> Tuple[Type[None], Tuple]:
        # A copy of the component has no batch: the gradients belong to the weights that made it.
        return type(None), ()


def _collect(
    total: List[Floats2d], losses: Dict[str, float], name: str, dYs: List[Floats2d]
) -> List[Doc]:
    """Add the gradients of one listener to those of the others."""
    _add(total, dYs)
    losses[name] += sum(float(cast(Any, dY**2).sum()) for dY in dYs)
    return []


def _add(total: List[Floats2d], dYs: List[Floats2d]) -> None:
    if total:
        for array, dY in zip(total, dYs):
            array += dY
    else:
        total += [dY.copy() for dY in dYs]


def _wrong_width(listener: Tok2VecListener, name: str, upstream: str, expected: int) -> ValueError:
    shape = f"components.{upstream}.model"
    hint = f"`width = {expected}`"
    if isinstance(listener, ElmoListener):
        hint = f"`width = ${{{shape}.width}}` and `depth = ${{{shape}.depth}}`"
    found = listener.get_dim("nO")
    return ValueError(
        Errors.EL001.format(name=name, found=found, upstream=upstream, expected=expected, hint=hint)
    )


def _check_pipeline(elmo: Elmo, nlp: Language) -> None:
    """Look for components that will not get the vectors that they need: EL001 for a listener to any
    component ("*") of a width that none has, EL339 if one comes before `elmo`, EL186 without static
    vectors. Warn of those that get the vectors of another component."""
    encoders = {name: pipe for name, pipe in nlp.pipeline if isinstance(pipe, Tok2Vec)}
    order = {name: i for i, name in enumerate(nlp.pipe_names)}
    for name, pipe in nlp.pipeline:
        model = getattr(pipe, "model", None)
        nodes = list(model.walk()) if isinstance(model, Model) else []
        if any(node.name == "static_vectors" for node in nodes) and not len(nlp.vocab.vectors):
            # spaCy would say that an index is out of bounds.
            raise ValueError(Errors.EL186.format(name=name))
        listeners = [node for node in nodes if isinstance(node, Tok2VecListener)]
        listeners = [node for node in listeners if not isinstance(node, ElmoListener)]
        claims = [other for other, each in encoders.items() if name in each.listening_components]
        for listener in listeners:
            is_any = listener.upstream_name == "*"
            if not claims and (is_any or listener.upstream_name == elmo.name):
                if order[name] < order[elmo.name] and listener.get_dim("nO") == elmo.width:
                    raise ValueError(Errors.EL339.format(name=name, upstream=elmo.name))
                if is_any:
                    raise _wrong_width(listener, name, elmo.name, elmo.width)
            if is_any and len(claims) > 1 and claims[-1] == elmo.name:
                upstreams = ", ".join(f"'{claim}'" for claim in claims)
                warnings.warn(Warnings.WL002.format(name=name, upstreams=upstreams), stacklevel=3)
        if listeners and elmo.name in claims:
            for other in encoders:
                if order[elmo.name] < order[other] < order[name]:
                    text = Warnings.WL001.format(between=other, upstream=elmo.name, name=name)
                    warnings.warn(text, stacklevel=3)
