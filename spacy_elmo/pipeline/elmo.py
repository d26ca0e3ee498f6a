"""The component "elmo"."""

import warnings
from functools import partial
from itertools import islice
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union, cast

from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d

from ..bilm.model import BiLM
from ..checkpoints.formats import CheckpointFiles, PathLike
from ..checkpoints.loaders import BundledLoader, CheckpointLoader, build_bundled_loader_v1
from ..errors import Errors, Warnings
from ..inference.activation_cache import ActivationCache
from ..inference.embedder import Loader
from ..inference.identity import identify
from ..layers.doc_data import ASSIGNS, register_extensions, set_hooks, store
from ..layers.elmo_layers import (
    LAYERS_NAME,
    get_embedder,
    get_most_bytes,
    is_frozen,
    load_model,
    no_backprop,
)
from ..layers.listener import ElmoListener, send_weights, stock_listener_forward, watch
from ..layers.scalar_mix import get_layer_width, predict_in_parts
from ..utils import require_least
from .saving import (
    CFG_BYTES,
    CFG_FILE,
    SavedPipe,
    find_language,
    read_cfg,
    warn_language,
    write_cfg,
)

Backprop = Callable[..., Any]


class Gradient:
    """The sum of what listeners send back."""

    def __init__(self) -> None:
        self.arrays: List[Floats2d] = []

    def add(self, arrays: List[Floats2d]) -> None:
        """arrays (List[Floats2d]): as the listener got them; kept unchanged."""
        if not self.arrays:
            self.arrays = [array.copy() for array in arrays]
            return
        for total, array in zip(self.arrays, arrays):
            total += array


class PendingBatch:
    """One batch on its way through the listeners. A copy of the component has none: its
    gradients belong to the weights that made the batch.

    backprop_layers (Backprop): from gradients of the layers into the biLM.
    backprop_mix (Backprop): of a scalar mix, from its gradients to those of the layers.
    """

    def __init__(self, backprop_layers: Backprop, backprop_mix: Backprop) -> None:
        self._backprop_layers = backprop_layers
        self._backprop_mix = backprop_mix
        self._d_layers = Gradient()
        self._d_mixed = Gradient()

    def make_callback(self, of_layers: bool, losses: Dict[str, float], name: str) -> Callable:
        """Make what a listener calls with its gradients.

        of_layers (bool): whether it got the layers, not their mix.
        losses (Dict[str, float]): gets the squared gradient.
        name (str): under which name.
        RETURNS (Callable): gradients -> no gradients of docs.
        """
        # A plain function with plain arguments: pipelines are pickled in training, too.
        return partial(_collect, self._d_layers if of_layers else self._d_mixed, losses, name)

    def flush(self) -> bool:
        """Send what has come back through the model. RETURNS (bool): whether anything had."""
        if not self._d_mixed.arrays and not self._d_layers.arrays:
            return False
        learns = self._backprop_layers is not no_backprop
        if self._d_mixed.arrays:
            d_layers = self._backprop_mix(self._d_mixed.arrays, to_layers=learns)
            if learns:
                self._d_layers.add(d_layers)
        self._backprop_layers(self._d_layers.arrays)
        return True

    def __reduce__(self) -> Tuple[Callable[[], None], Tuple]:
        return _no_batch, ()


def _no_batch() -> None:
    """What a copy has in the place of a batch."""


def _collect(
    gradient: Gradient, losses: Dict[str, float], name: str, dYs: List[Floats2d]
) -> List[Doc]:
    gradient.add(dYs)
    losses[name] += sum(float(cast(Any, dY**2).sum()) for dY in dYs)
    return []


def check_listeners(elmo: Tok2Vec, nlp: Language) -> None:
    """Look for listeners of spaCy's own kind that will not get our vectors.

    elmo (Tok2Vec): the component.
    nlp (Language): its pipeline.
    RAISES (ValueError): EL001 for a listener to anyone ("*") that nobody serves, EL339 if its
        component comes before ours, EL186 for a component that wants static vectors where there
        are none.
    """
    _require_static_vectors(nlp)
    encoders = {name: pipe for name, pipe in nlp.pipeline if isinstance(pipe, Tok2Vec)}
    for name, listeners in _stock_listeners(nlp):
        claims = [e for e, pipe in encoders.items() if name in pipe.listening_components]
        for listener in listeners:
            expected = elmo.model.get_dim("nO")
            is_wanted = listener.upstream_name in ("*", elmo.name) and not claims
            if is_wanted and listener.get_dim("nO") == expected and _is_before(nlp, name, elmo):
                raise ValueError(Errors.EL339.format(name=name, upstream=elmo.name))
            if listener.upstream_name == "*" and not claims:
                raise wrong_width(listener, name, elmo.name, expected)
            if listener.upstream_name == "*" and len(claims) > 1 and claims[-1] == elmo.name:
                upstreams = ", ".join(f"'{claim}'" for claim in claims)
                text = Warnings.WL002.format(name=name, upstreams=upstreams)
                warnings.warn(text, stacklevel=3)
        if elmo.name in claims:
            _warn_overwritten(elmo.name, nlp, name, list(encoders))


def _is_before(nlp: Language, name: str, elmo: Tok2Vec) -> bool:
    return nlp.pipe_names.index(name) < nlp.pipe_names.index(elmo.name)


def wrong_width(listener: Tok2VecListener, name: str, upstream: str, expected: int) -> ValueError:
    """listener (Tok2VecListener): that wants another width than it gets. name (str): its component.
    upstream (str): what it listens to. expected (int): what that sends. RETURNS (ValueError):
    EL001."""
    shape = f"components.{upstream}.model"
    hint = f"`width = {expected}`"
    if isinstance(listener, ElmoListener):
        hint = f"`width = ${{{shape}.width}}` and `depth = ${{{shape}.depth}}`"
    found = listener.get_dim("nO")
    text = Errors.EL001.format(
        name=name, found=found, upstream=upstream, expected=expected, hint=hint
    )
    return ValueError(text)


def _require_static_vectors(nlp: Language) -> None:
    """spaCy would say that an index is out of bounds."""
    if len(nlp.vocab.vectors):
        return
    for name, pipe in nlp.pipeline:
        model: Union[Model, Any] = getattr(pipe, "model", None)
        if isinstance(model, Model) and any(node.name == "static_vectors" for node in model.walk()):
            raise ValueError(Errors.EL186.format(name=name))


def _warn_overwritten(upstream: str, nlp: Language, name: str, encoders: List[str]) -> None:
    order = nlp.pipe_names
    for between in encoders:
        if order.index(upstream) < order.index(between) < order.index(name):
            text = Warnings.WL001.format(between=between, upstream=upstream, name=name)
            warnings.warn(text, stacklevel=4)


def _stock_listeners(nlp: Language) -> Iterable[Tuple[str, List[Tok2VecListener]]]:
    """Components that have spaCy's own listeners, with these."""
    for name, pipe in nlp.pipeline:
        model: Union[Model, Any] = getattr(pipe, "model", None)
        if isinstance(model, Model):
            listeners = [
                node
                for node in model.walk()
                if isinstance(node, Tok2VecListener) and not isinstance(node, ElmoListener)
            ]
            if listeners:
                yield name, listeners


_MODEL = "model"


class SavedTok2Vec(SavedPipe, Tok2Vec):
    """A tok2vec with files of spaCy's names: cfg, model, and vocab if it is not excluded. Those of
    version 0.1.0 are read, too.

    vocab (Vocab): the shared vocabulary.
    model (Model): spacy-elmo.Elmo.v2.
    name (str): name in the pipeline.
    """

    def __init__(self, vocab: Vocab, model: Model, name: str) -> None:
        super().__init__(vocab, model, name)
        self._has_checked_language = False

    @property
    def lang(self) -> Optional[str]:
        """RETURNS (Optional[str]): Language that the weights were trained on, such as "en"; None
        if nothing says it."""
        if "lang" not in self.cfg:
            # Nobody has set other weights than those that the first use loads.
            pending = get_embedder(self.model).pending_loader
            self.set_language(find_language(pending or BundledLoader()))
        return self.cfg["lang"]

    def set_language(self, lang: Optional[str]) -> None:
        """lang (Optional[str]): that the weights were trained on; None if nothing says it."""
        self.cfg = {"lang": lang}
        self._has_checked_language = False

    def _check_language(self, docs: str) -> None:
        if not self._has_checked_language:
            lang = self.lang
            self._has_checked_language = True
            how = f'`nlp.get_pipe("{self.name}").load(FOLDER)`'
            warn_language(self.name, how, lang, docs)

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        writers = {CFG_FILE: lambda: write_cfg(self.lang), _MODEL: self.model.to_bytes}
        return {name: write() for name, write in writers.items() if name not in exclude}

    def _get_limits(self, exclude: Iterable[str]) -> Dict[str, int]:
        limits = {CFG_FILE: CFG_BYTES, _MODEL: get_most_bytes(self.model)}
        return {name: most for name, most in limits.items() if name not in exclude}

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        lang = read_cfg(files[CFG_FILE], source) if CFG_FILE in files else None
        if _MODEL in files:
            load_model(self.model, files[_MODEL], source)
            # Of these weights.
            self.set_language(lang)


class FirstUse:
    """A loader: as [initialize] says, else the bundled weights. spaCy initializes no component that
    is in [training] frozen_components, whose block holds all the same.

    component (SavedTok2Vec): an "elmo" without weights.
    nlp (Language): its pipeline, whose config is whole only after the component was made. Kept
        till then: another pipeline may have taken the component, and this one be forgotten.
    """

    def __init__(self, component: SavedTok2Vec, nlp: Language) -> None:
        self._component = component
        self._nlp = nlp

    @property
    def files(self) -> Any:
        """RETURNS (CheckpointFiles): Where the weights lie. RAISES (AttributeError): if they come
        from elsewhere."""
        return self._find_loader().files

    def __call__(self, bilm: BiLM) -> None:
        """bilm (BiLM): to be filled. RAISES (ValueError): whatever the loader raises; EL018 for a
        cache of a biLM that is not frozen."""
        component = self._component
        cache = self._make("activation_cache")
        if cache is not None and not is_frozen(component.model):
            raise ValueError(Errors.EL018.format(name=component.name))
        loader = self._find_loader()
        loader(bilm)
        component.set_language(find_language(loader))
        if cache is not None:
            get_embedder(component.model).use_activations(cache)

    def _find_loader(self) -> Any:
        return self._make("loader") or build_bundled_loader_v1()

    def _make(self, key: str) -> Any:
        """RETURNS (Any): What a block of [initialize] makes; None if there is none."""
        config = self._nlp.config.interpolate().get("initialize") or {}
        # Where another pipeline has taken it, it may have another name by now.
        own = (name for name, pipe in self._nlp.components if pipe is self._component)
        name = next(own, self._component.name)
        block = ((config.get("components") or {}).get(name) or {}).get(key)
        return registry.resolve({key: block})[key] if block else None


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
        "vector_hooks": False,
        "learn_rate_factor": 1.0,
    },
)
def make_elmo(
    nlp: Language,
    name: str,
    model: Model[List[Doc], List[Floats2d]],
    store_layers: bool,
    vector_hooks: bool,
    learn_rate_factor: float,
) -> "Elmo":
    """Make the component.

    model (Model[List[Doc], List[Floats2d]]): spacy-elmo.Elmo.v2.
    store_layers, vector_hooks, learn_rate_factor: see `Elmo`.
    """
    component = Elmo(
        nlp.vocab,
        model,
        name,
        store_layers=store_layers,
        vector_hooks=vector_hooks,
        learn_rate_factor=learn_rate_factor,
    )
    if not get_embedder(model).is_ready:
        get_embedder(model).set_loader(FirstUse(component, nlp))
    return component


class Elmo(SavedTok2Vec):
    """Compute contextual vectors, and share them with the components that listen.

    There are two taps: stock listeners get the shared mix, also in `doc.tensor`;
    `ElmoListener`s get all layers and mix them themselves.
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
        vector_hooks: bool = False,
        learn_rate_factor: float = 1.0,
    ) -> None:
        """vocab (Vocab): the shared vocabulary.
        model (Model[List[Doc], List[Floats2d]]): spacy-elmo.Elmo.v2.
        name (str): name in the pipeline.
        store_layers (bool): keep all layers in `doc._.elmo` even if nobody listens.
        vector_hooks (bool): have `vector` and `similarity` read our vectors by hooks.
        learn_rate_factor (float): the biLM's learning rate, if it is not frozen, as a
            multiple of the optimizer's; at least 0.
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
        self._pending: Optional[PendingBatch] = None
        if get_embedder(model).is_ready:
            self.set_language(None)

    @property
    def width(self) -> int:
        """RETURNS (int): Width of a token's vector."""
        return self.model.get_dim("nO")

    @property
    def n_layers(self) -> int:
        """RETURNS (int): Layers of a token, the word layer counted."""
        return self.model.layers[0].get_dim("nO") // self.layer_width

    @property
    def layer_width(self) -> int:
        """RETURNS (int): Width of one layer."""
        return get_layer_width(self.model.layers[1])

    def load(self, path: PathLike, weights_path: Optional[PathLike] = None) -> None:
        """Load weights now.

        path (PathLike): a folder, or options.json.
        weights_path (Optional[PathLike]): the HDF5 file, if `path` is options.json.
        RAISES (ValueError): EL023 if the component has another shape, EL020 to EL038 if
            the weights cannot be read. The old ones are kept then.
        """
        self._load(CheckpointLoader(CheckpointFiles.of(path, weights_path)))

    def _load(self, loader: Loader) -> None:
        get_embedder(self.model).load(loader)
        self.set_language(find_language(loader))

    def add_listener(self, listener: Tok2VecListener, component_name: str) -> None:
        """Link a listener. One of upstream "*" that wants another width is left to
        another component.

        RAISES (ValueError): EL001 if it wants another width than ours.
        """
        expected = self._get_sent_width(listener)
        if listener.get_dim("nO") == expected:
            if not isinstance(listener, ElmoListener):
                watch(listener, self.name, stock_listener_forward)
            super().add_listener(listener, component_name)
        elif listener.upstream_name != "*":
            raise wrong_width(listener, component_name, self.name, expected)

    def remove_listener(self, listener: Tok2VecListener, component_name: str) -> bool:
        """Unlink a listener.

        RETURNS (bool): whether it was linked.
        """
        listeners = self.listener_map.get(component_name, [])
        # A new list: `nlp.replace_listeners` walks over the old one while it calls us.
        rest = [other for other in listeners if other is not listener]
        if rest:
            self.listener_map[component_name] = rest
        else:
            self.listener_map.pop(component_name, None)
        return len(rest) < len(listeners)

    def _get_sent_width(self, listener: Tok2VecListener) -> int:
        wants_layers = isinstance(listener, ElmoListener)
        return self.n_layers * self.layer_width if wants_layers else self.width

    def predict(self, docs: Iterable[Doc]) -> Prediction:
        """docs (Iterable[Doc]): any docs, empty ones too.
        RETURNS (Prediction): layers and their shared mix, one array each for a doc.
        """
        docs = list(docs)
        if docs:
            self._check_language(docs[0].vocab.lang)
        layers_model, mix_model = self.model.layers
        layers = layers_model.predict(docs)
        return layers, predict_in_parts(mix_model, layers)

    def set_annotations(self, docs: Sequence[Doc], tokvecses: Prediction) -> None:
        """Set `doc.tensor` and `doc._.elmo`.

        docs (Sequence[Doc]): the docs.
        tokvecses (Prediction): what `predict` returned for them.
        """
        layers, mixed = tokvecses
        # Copies: a doc that is kept must not keep its whole batch.
        super().set_annotations(docs, [mix.copy() for mix in mixed])
        keep_layers = self.store_layers or any(isinstance(n, ElmoListener) for n in self.listeners)
        # For those who were trained on vectors of others.
        is_asked = self.store_layers or self.listeners
        weights = identify(get_embedder(self.model).bilm) if is_asked else None
        for doc, doc_layers in zip(docs, layers):
            kept = None
            if keep_layers:
                shape = len(doc), self.n_layers, self.layer_width
                kept = self.model.ops.reshape3f(doc_layers, *shape).copy()
            # What spaCy has kept of the tensor before, or of static vectors.
            doc.vector, doc.vector_norm = cast(Any, (None, None))
            store(doc, self.name, cast(Floats2d, doc.tensor), kept, weights)
            if self.vector_hooks:
                set_hooks(doc)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optional[Optimizer] = None,
        losses: Optional[Dict[str, float]] = None,
    ) -> Dict[str, float]:
        """Send a batch to the listeners and collect their gradients.

        They go through the model when they are all in: in `finish_update`, or at the
        next `update`. So neither the order in which listeners report matters, nor
        whether one of them is frozen and never does. Listeners with a mix of their own
        report nothing to a frozen biLM.

        examples (Iterable[Example]): a batch.
        drop (float): not used; the mix has its own `mix_dropout`.
        sgd (Optional[Optimizer]): as spaCy passes it.
        losses (Optional[Dict[str, float]]): gets the squared gradient under our name: of the
            shared mix, and of the layers if the biLM learns.
        RETURNS (Dict[str, float]): the losses.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "Elmo.update")
        self._flush()
        docs = [eg.predicted for eg in examples]
        layers_model, mix_model = self.model.layers
        layers, backprop_layers = layers_model.begin_update(docs)
        others = [each for each in self.listeners if not isinstance(each, ElmoListener)]
        mixed, backprop_mix = mix_model.begin_update(layers) if others else ([], no_backprop)
        self._pending = PendingBatch(backprop_layers, backprop_mix)
        frozen = is_frozen(self.model)
        weights = identify(get_embedder(self.model).bilm) if frozen else None
        for listener in self.listeners:
            own_mix = listener not in others
            send_weights(listener, weights)
            callback = self._pending.make_callback(own_mix, losses, self.name)
            if own_mix and frozen:
                callback = no_backprop
            listener.receive(listener.get_batch_id(docs), layers if own_mix else mixed, callback)
        if sgd is not None:
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Update the mix, and the biLM if it is not frozen, from their gradients.

        sgd (Optimizer): the optimizer.
        """
        self._flush()
        layers_model, mix_model = self.model.layers
        # Thinc's torch bridge passes no learning rate scale of its own.
        scaled = cast(Optimizer, partial(sgd, lr_scale=self.learn_rate_factor))
        layers_model.finish_update(scaled)
        get_embedder(self.model).settle()
        mix_model.finish_update(sgd)

    def _flush(self) -> None:
        if self._pending is not None and self._pending.flush():
            self._pending = None

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        loader: Optional[Loader] = None,
        activation_cache: Optional[ActivationCache] = None,
    ) -> None:
        """Load the weights, and look for listeners that will not get ours.

        get_examples (Callable[[], Iterable[Example]]): a sample, read for its words.
        nlp (Optional[Language]): the pipeline.
        loader (Optional[Loader]): where the weights come from; None for those that are
            there already, else the bundled ones.
        activation_cache (Optional[ActivationCache]): keeps the layers of what is trained
            and evaluated on; None to compute them each time.
        RAISES (ValueError): whatever the loader raises; EL018 for a cache of a biLM that
            is not frozen.
        """
        validate_get_examples(get_examples, "Elmo.initialize")
        for example in islice(get_examples(), 1):
            validate_examples([example], "Elmo.initialize")
        if activation_cache is not None and not is_frozen(self.model):
            raise ValueError(Errors.EL018.format(name=self.name))
        if loader is not None:
            self._load(loader)
        get_embedder(self.model).use_activations(activation_cache)
        self.model.initialize()
        self._warn_truncated(get_examples)
        if nlp is not None:
            self._check_language(nlp.lang or "")
            check_listeners(self, nlp)

    def _warn_truncated(self, get_examples: Callable[[], Iterable[Example]]) -> None:
        """Have the embedder say now which words it cuts, and not in the middle of a table."""
        examples = islice(get_examples(), _N_EXAMPLES)
        words = {token.text for eg in examples for token in eg.predicted}
        get_embedder(self.model).warn_truncated([sorted(words)])

    def __repr__(self) -> str:
        weights = "" if get_embedder(self.model).is_ready else ", weights not loaded yet"
        trained = "frozen" if is_frozen(self.model) else "trained"
        listeners = ", ".join(self.listening_components) or "none"
        return (
            f"<Elmo '{self.name}': {self.n_layers} layers of width {self.layer_width}, "
            f"{trained}{weights}; listeners: {listeners}>"
        )
