"""`elmo_layers`: docs -> all biLM layers of each token, side by side in one row."""

from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Tuple, Union, cast

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, Optimizer, PyTorchWrapper_v3, torch2xp, xp2torch
from thinc.model import empty_init
from thinc.types import Floats1d, Floats2d

from ..bilm.batch import WordBatch
from ..bilm.weights import load_weights
from ..checkpoints.saved_pipeline import name_weights, parse_weights
from ..errors import Errors
from ..files import unpack
from ..inference.embedder import Embedder
from .spans import SpanGetter, get_sequences
from .torch_shim import TorchShim, choose_device

LayersModel = Model[List[Doc], List[Floats2d]]
Backprop = Callable[[List[Floats2d]], List[Doc]]
# A doc, and rows of it.
Place = Tuple[int, Union[slice, NDArray]]
# Places of sequences, and an array with their rows.
Part = Tuple[List[Place], Floats2d]
# Name of the Thinc model with the biLM.
LAYERS_NAME = "elmo_layers"


@dataclass(frozen=True)
class LayersSettings:
    """How docs are read: the function that cuts them into sequences, and whether training leaves
    the biLM unchanged. A dataclass, so that Thinc does not store it with the weights."""

    get_spans: SpanGetter
    frozen: bool


def elmo_layers(embedder: Embedder, settings: LayersSettings) -> LayersModel:
    """Compute biLM layers: for each doc shape (n_tokens, n_layers * width), layer by layer inside a
    row, the word layer first. Whitespace tokens are no input to the biLM and get zeros."""
    config = embedder.bilm.config
    torch_layer = PyTorchWrapper_v3(
        embedder,
        convert_inputs=convert_inputs,
        convert_outputs=convert_outputs,
        device=choose_device(),
    )
    torch_layer.shims[0] = EmbedderShim(
        embedder, serialize_model=serialize_embedder, deserialize_model=deserialize_embedder
    )
    # Thinc's default refers to the model itself: a cycle, which keeps the weights of a deleted
    # pipeline in memory.
    torch_layer.init = empty_init
    return Model(
        LAYERS_NAME,
        elmo_layers_forward,
        init=elmo_layers_init,
        layers=[torch_layer],
        dims={"nO": config.n_layers * config.width},
        attrs={"settings": settings},
    )


class EmbedderShim(TorchShim):
    """Thinc's shim of an embedder, which has to know when its weights change."""

    def finish_update(self, optimizer: Optimizer) -> None:
        super().finish_update(optimizer)
        self._model.weights_updated()

    def note_changed_weights(self) -> None:
        self._model.bilm.version += 1


def elmo_layers_forward(
    model: LayersModel, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Backprop]:
    """See `elmo_layers`. The backprop goes to the weights and returns []."""
    settings: LayersSettings = model.attrs["settings"]
    if not is_train or settings.frozen:
        Ys = make_arrays(model, docs, model.get_dim("nO"))
        for places, X in compute_layers(model, docs, is_train):
            put_sequences(Ys, places, X)
        return Ys, _no_gradient
    sequences, rows = get_sequences(docs, settings.get_spans)
    lengths = [len(doc) for doc in docs]
    Y, backprop = _train(model, sequences, rows, sum(lengths))
    return model.ops.unflatten(Y, model.ops.asarray1i(lengths)), backprop


def _train(
    model: LayersModel, sequences: List[List[str]], rows: List[NDArray], n_tokens: int
) -> Tuple[Floats2d, Backprop]:
    Y = model.ops.alloc2f(n_tokens, model.get_dim("nO"))
    backprops: List[Tuple[Any, Callable]] = []
    for members, batch in get_embedder(model).batches(sequences):
        Y_batch, backprop_batch = model.layers[0](batch, True)
        batch_rows: Any = np.concatenate([rows[i] for i in members])
        Y[batch_rows] = Y_batch
        backprops.append((batch_rows, backprop_batch))

    def backprop(dYs: List[Floats2d]) -> List[Doc]:
        if not backprops:
            return []
        dY = model.ops.xp.concatenate(dYs)  # (n_tokens, n_layers * width)
        for batch_rows, backprop_batch in backprops:
            backprop_batch(dY[batch_rows])
        return []

    return Y, backprop


def compute_layers(model: LayersModel, docs: List[Doc], is_train: bool) -> Iterator[Part]:
    """Compute layers without gradients, some sequences at a time. Those in the activation cache are
    read, others are put into it. YIELDS (Part): arrays of shape (n_tokens, n_layers * width), in
    memory that is used again for the next ones."""
    settings: LayersSettings = model.attrs["settings"]
    sequences, rows = get_sequences(docs, settings.get_spans)
    width, embedder = model.get_dim("nO"), get_embedder(model)
    asked, kept, chosen = [i for i, words in enumerate(sequences) if words], None, set()
    ends = np.cumsum([len(doc) for doc in docs])
    places = {i: _find_place(rows[i], docs, ends) for i in asked}
    if settings.frozen:
        kept = embedder.activations()
    if kept is not None:
        arrays = dict(zip(asked, kept.get([sequences[i] for i in asked])))
        hits = {i: X for i, X in arrays.items() if X is not None and X.shape[1] == width}
        for i, X in hits.items():
            yield [places[i]], model.ops.asarray2f(cast(Any, X))
        asked = [i for i in asked if i not in hits]
        chosen = set(kept.choose([sequences[i] for i in asked], is_train=is_train))
    for members, layers in embedder.compute([sequences[i] for i in asked]):
        Y: Any = model.ops.asarray2f(cast(Any, torch2xp(layers.flatten(1))))
        yield [places[asked[k]] for k in members], Y
        if kept is not None:
            lengths = model.ops.asarray1i([len(sequences[asked[k]]) for k in members])
            pairs = zip(members, model.ops.unflatten(Y, lengths))
            own = [(sequences[asked[k]], model.ops.to_numpy(X)) for k, X in pairs if k in chosen]
            kept.put([words for words, _ in own], [X for _, X in own])


def _find_place(rows: NDArray, docs: List[Doc], ends: NDArray) -> Place:
    """The doc of a sequence, and its rows there; `rows` are those in all docs put end to end."""
    i = int(np.searchsorted(ends, rows[0], side="right"))
    rows = rows - (ends[i] - len(docs[i]))
    first, end = int(rows[0]), int(rows[-1]) + 1
    return i, slice(first, end) if end - first == len(rows) else rows


def make_arrays(model: Model, docs: List[Doc], width: int) -> List[Floats2d]:
    """Zeros of shape (n_tokens, width), each in separate memory: a doc that is kept must not keep
    its whole batch."""
    return [model.ops.alloc2f(len(doc), width) for doc in docs]


def put_sequences(arrays: List[Floats2d], places: List[Place], X: Floats2d) -> None:
    """Put rows of sequences in their places."""
    start = 0
    for i, rows in places:
        n_rows = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        cast(Any, arrays[i])[rows] = X[start : start + n_rows]
        start += n_rows


def elmo_layers_init(model: LayersModel, X: Any = None, Y: Any = None) -> LayersModel:
    """Load the weights; all dimensions are known from the config."""
    get_embedder(model).ensure_ready()
    return model


def get_embedder(model: Model) -> Embedder:
    """Find the embedder in an `elmo_layers`, or in a chain that begins with one."""
    while not model.shims:
        model = model.layers[0]
    return cast(Embedder, cast(Any, model.shims[0])._model)


def is_frozen(model: Model) -> bool:
    """Whether training leaves the biLM of such a model unchanged."""
    while "settings" not in model.attrs:
        model = model.layers[0]
    return cast(LayersSettings, model.attrs["settings"]).frozen


def convert_inputs(
    model: Model, batch: WordBatch, is_train: bool
) -> Tuple[ArgsKwargs, Callable[[ArgsKwargs], List]]:
    """Pass a batch of strings and indices, which have no gradient."""
    return ArgsKwargs(args=(batch,), kwargs={}), _no_gradient


def _no_gradient(dY: Any) -> List:
    return []


def convert_outputs(
    model: Model, inputs_outputs: Tuple[WordBatch, torch.Tensor], is_train: bool
) -> Tuple[Floats2d, Callable[[Floats2d], ArgsKwargs]]:
    Y_torch = inputs_outputs[1].flatten(1)  # (n_tokens, n_layers * width)

    def get_dY_torch(dY: Floats2d) -> ArgsKwargs:
        grads = {"grad_tensors": (xp2torch(dY, device=Y_torch.device),)}
        return ArgsKwargs(args=((Y_torch,),), kwargs=grads)

    return cast(Floats2d, torch2xp(Y_torch)), get_dY_torch


def serialize_embedder(embedder: Embedder) -> bytes:
    """The biLM's weights as safetensors, in the type that they have, or the name of the installed
    model that has them; loaded first if need be."""
    embedder.ensure_ready()
    if embedder.installed_weights is not None:
        return name_weights(embedder.bilm, embedder.installed_weights)
    state = embedder.bilm.state_dict()
    return safetensors.torch.save({name: t.cpu().contiguous() for name, t in state.items()})


def deserialize_embedder(embedder: Embedder, data: bytes, device: torch.device) -> Embedder:
    """Fill an embedder in place, on its own device: `device` is Thinc's current one, which threads
    do not share. Weights of another shape than the config's are refused (EL020, EL021)."""
    state = parse_weights(data, "the saved pipeline")
    load_weights(embedder.bilm, state, "the saved pipeline")
    embedder.set_ready()
    return embedder


def load_model(model: Model, data: bytes, source: str) -> None:
    """Fill the model of a component "elmo" from `model.to_bytes()`, in place; it stays unchanged if
    anything is wrong. Names are compared; dimensions and attributes in the message are not read,
    since the config is their only source."""
    message, nodes, mix = unpack(data, source), list(model.walk()), model.layers[1]
    try:
        found = [node["name"] for node in message["nodes"]]
        names = [node.name for node in nodes]
        if found != names:
            raise ValueError(f"the layers are {found}, expected {names}")
        (shim,) = (i for i, node in enumerate(nodes) if node.shims)
        state = unpack(message["shims"][shim][0], source)["state"]
        saved = dict(message["params"][nodes.index(mix)])
        params = {name: np.asarray(saved[name], dtype="float32") for name in mix.param_names}
        for name, value in params.items():
            shape = cast(Floats1d, mix.get_param(name)).shape
            if value.shape != shape or not np.isfinite(value).all():
                raise ValueError(f"'{name}' of the mix is {value}, expected shape {shape}, finite")
    except (LookupError, TypeError, ValueError) as err:
        error = f"they are not the model of a component elmo ({err})"
        raise ValueError(Errors.EL116.format(source=source, error=error)) from err
    embedder = get_embedder(model)
    deserialize_embedder(embedder, state, embedder.bilm.device)
    for name, value in params.items():
        mix.set_param(name, mix.ops.asarray1f(cast(Any, value.copy())))
