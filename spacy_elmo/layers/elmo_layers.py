"""`elmo_layers`: docs -> all biLM layers of each token, side by side in one row."""

from dataclasses import dataclass
from typing import Any, Callable, List, Tuple, cast

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, Ops, PyTorchWrapper_v3, torch2xp, xp2torch
from thinc.types import Floats2d

from ..bilm.state_checks import load_weights
from ..bilm.word_batch import WordBatch
from ..checkpoints.tensors import parse_tensors
from ..inference.activation_cache import KeptLayers
from ..inference.embedder import Embedder
from .spans import SpanGetter, get_sequences

LayersModel = Model[List[Doc], List[Floats2d]]


@dataclass(frozen=True)
class LayersSettings:
    """How docs are read. A dataclass, so that Thinc does not store it with the weights:
    the config is its only source.

    get_spans (SpanGetter): cuts docs into sequences.
    frozen (bool): whether the biLM stays as it is in training.
    """

    get_spans: SpanGetter
    frozen: bool


def elmo_layers(embedder: Embedder, settings: LayersSettings) -> LayersModel:
    """Compute biLM layers. Whitespace tokens are no input to the biLM and get zeros.

    embedder (Embedder): the biLM, its word cache and its batching.
    settings (LayersSettings): how docs are read.
    RETURNS (LayersModel): for each doc shape (n_tokens, n_layers * width), layer by
        layer inside a row, the word layer first.
    """
    config = embedder.bilm.config
    torch_layer = PyTorchWrapper_v3(
        embedder,
        convert_inputs=convert_inputs,
        convert_outputs=convert_outputs,
        serialize_model=serialize_embedder,
        deserialize_model=deserialize_embedder,
    )
    return Model(
        "elmo_layers",
        elmo_layers_forward,
        init=elmo_layers_init,
        layers=[torch_layer],
        dims={"nO": config.n_layers * config.width},
        attrs={"settings": settings},
    )


def elmo_layers_forward(
    model: LayersModel, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """docs (List[Doc]): any docs, empty ones too.
    RETURNS (Tuple[List[Floats2d], Callable]): see `elmo_layers`; the backprop goes to
        the weights and returns [].
    """
    settings: LayersSettings = model.attrs["settings"]
    torch_layer = model.layers[0]
    sequences, rows = get_sequences(docs, settings.get_spans)
    lengths = [len(doc) for doc in docs]
    Y = model.ops.alloc2f(sum(lengths), model.get_dim("nO"))
    backprops: List[Tuple[Any, Callable]] = []
    embedder = get_embedder(model)
    if is_train and not settings.frozen:
        for members, batch in embedder.batches(sequences):
            Y_batch, backprop_batch = torch_layer(batch, is_train)
            batch_rows = np.concatenate([rows[i] for i in members])
            Y[cast(Any, batch_rows)] = Y_batch
            backprops.append((batch_rows, backprop_batch))
    else:
        kept = embedder.activations() if settings.frozen else None
        if kept is None:
            _fill(model.ops, embedder, sequences, rows, Y)
        else:
            missing = _read_kept(model.ops, kept, sequences, rows, Y)
            sequences, rows = [sequences[i] for i in missing], [rows[i] for i in missing]
            _fill(model.ops, embedder, sequences, rows, Y)
            _keep(model.ops, kept, sequences, rows, Y, is_train)

    def backprop(dYs: List[Floats2d]) -> List[Doc]:
        if backprops:
            dY = model.ops.xp.concatenate(dYs)
            for batch_rows, backprop_batch in backprops:
                backprop_batch(dY[batch_rows])
        return []

    return model.ops.unflatten(Y, model.ops.asarray1i(lengths)), backprop


def _fill(
    ops: Ops, embedder: Embedder, sequences: List[List[str]], rows: List[NDArray], Y: Floats2d
) -> None:
    """Fill the rows of sequences, without gradients."""
    config = embedder.bilm.config
    device = embedder.bilm.device
    layers = xp2torch(Y, device=device).view(-1, config.n_layers, config.width)
    embedder.fill(layers, sequences, rows)
    if device.type != ("cpu" if isinstance(Y, np.ndarray) else "cuda"):
        # A copy was filled, not Y itself.
        Y[:] = ops.asarray2f(cast(Any, torch2xp(layers.flatten(1))))


def _read_kept(
    ops: Ops, kept: KeptLayers, sequences: List[List[str]], rows: List[NDArray], Y: Floats2d
) -> List[int]:
    """Fill the rows of sequences that are kept. RETURNS (List[int]): Places of the others."""
    asked = [i for i, words in enumerate(sequences) if words]
    missing: List[int] = []
    for i, array in zip(asked, kept.get([sequences[i] for i in asked])):
        if array is None or array.shape[1] != Y.shape[1]:
            missing.append(i)
        else:
            Y[cast(Any, rows[i])] = ops.asarray2f(cast(Any, array))
    return missing


def _keep(
    ops: Ops,
    kept: KeptLayers,
    sequences: List[List[str]],
    rows: List[NDArray],
    Y: Floats2d,
    is_train: bool,
) -> None:
    """Keep rows that were computed, if it is worth it."""
    chosen = kept.choose(sequences, is_train=is_train)
    arrays = [ops.to_numpy(Y[cast(Any, rows[i])]) for i in chosen]
    kept.put([sequences[i] for i in chosen], arrays)


def elmo_layers_init(model: LayersModel, X: Any = None, Y: Any = None) -> LayersModel:
    """Load the weights; all dimensions are known from the config."""
    get_embedder(model).ensure_ready()
    return model


def get_embedder(model: Model) -> Embedder:
    """Find the embedder in a model. The only place that knows where it is kept.

    model (Model): an `elmo_layers`, or a chain that begins with one.
    RETURNS (Embedder): its embedder.
    """
    while not model.shims:
        model = model.layers[0]
    return cast(Embedder, cast(Any, model.shims[0])._model)


def is_frozen(model: Model) -> bool:
    """model (Model): an `elmo_layers`, or a chain that begins with one. RETURNS (bool):
    Whether its biLM stays as it is in training."""
    while "settings" not in model.attrs:
        model = model.layers[0]
    return cast(LayersSettings, model.attrs["settings"]).frozen


def convert_inputs(
    model: Model, batch: WordBatch, is_train: bool
) -> Tuple[ArgsKwargs, Callable[[ArgsKwargs], List]]:
    """batch (WordBatch): strings and indices: nothing that has a gradient."""
    return ArgsKwargs(args=(batch,), kwargs={}), _no_gradient


def _no_gradient(dX: ArgsKwargs) -> List:
    return []


def convert_outputs(
    model: Model, inputs_outputs: Tuple[WordBatch, torch.Tensor], is_train: bool
) -> Tuple[Floats2d, Callable[[Floats2d], ArgsKwargs]]:
    """RETURNS (Tuple[Floats2d, Callable]): rows of shape (n_tokens, n_layers * width),
    and the way back.
    """
    Y_torch = inputs_outputs[1].flatten(1)  # (n_tokens, n_layers * width)

    def get_dY_torch(dY: Floats2d) -> ArgsKwargs:
        grads = {"grad_tensors": (xp2torch(dY, device=Y_torch.device),)}
        return ArgsKwargs(args=((Y_torch,),), kwargs=grads)

    return cast(Floats2d, torch2xp(Y_torch)), get_dY_torch


def serialize_embedder(embedder: Embedder) -> bytes:
    """embedder (Embedder): loaded first if need be.
    RETURNS (bytes): the biLM's weights as safetensors, the type they have.
    """
    embedder.ensure_ready()
    state = embedder.bilm.state_dict()
    return safetensors.torch.save({name: t.cpu().contiguous() for name, t in state.items()})


def deserialize_embedder(embedder: Embedder, data: bytes, device: torch.device) -> Embedder:
    """embedder (Embedder): filled in place.
    data (bytes): what `serialize_embedder` returned.
    device (torch.device): where the weights go.
    RETURNS (Embedder): the same embedder.
    RAISES (ValueError): EL033 if the data cannot be read; EL020 to EL022 if they are of
        another shape than the config, EL106 and EL114 if they are no weights.
    """
    state = parse_tensors(data, "the saved pipeline")
    load_weights(embedder.bilm, state, "the saved pipeline")
    embedder.set_ready()
    return embedder.to(device)
