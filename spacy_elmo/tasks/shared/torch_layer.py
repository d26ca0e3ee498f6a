"""torch modules as Thinc layers that read the rows of docs.

What Thinc's `PyTorchWrapper` leaves open and the tasks need: the width of the input may be known
only when the model is initialized or loaded; weights are saved without pickle. Modules get their
dropout as an argument: their mode (`train`, `eval`) is shared by threads and never read.
"""

from typing import Any, Callable, Dict, List, Optional, Tuple, cast

import safetensors.torch
import srsly
import torch
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, torch2xp, xp2torch
from thinc.types import Floats2d, FloatsXd
from torch import Tensor, nn

from ...bilm.weights import check_headers, get_headers, load_weights
from ...checkpoints.tensors import parse_tensors
from ...errors import Errors
from ...files import unpack
from ...layers.elmo_tok2vec import get_past_width
from ...layers.torch_shim import TorchShim, choose_device

_SOURCE = "the saved component"

# Width of the input -> the module: `build(nI)`, or `build(nI, n_past)` if its last numbers go past
# the module's own encoder. A module's class or a partial of one, so that models can be pickled.
Build = Callable[..., nn.Module]


class SizedModule(nn.Module):
    """A module that is built once the width of its input is known.

    build (Build): makes it.
    """

    def __init__(self, build: Build) -> None:
        super().__init__()
        self.build = build
        self.widths = 0, 0
        self.body: Optional[nn.Module] = None

    def set_width(self, nI: int, n_past: int = 0) -> None:
        """Make the module anew, so that one that was trained starts from scratch.

        nI (int): width of the input. n_past (int): its last numbers, which go past the module's own
        encoder."""
        self.widths = nI, n_past
        self.body = self.build(nI, n_past) if n_past else self.build(nI)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module. RAISES (ValueError): EL190 if there is none yet."""
        if self.body is None:
            raise ValueError(Errors.EL190)
        return self.body(*args, **kwargs)


def torch_layer(
    name: str,
    forward: Callable,
    build: Build,
    *,
    nO: Optional[int] = None,
    attrs: Optional[Dict[str, Any]] = None,
) -> Model:
    """Make a layer of a torch module.

    name (str): of the layer.
    forward (Callable): Thinc's `forward(model, X, is_train)`, which calls `run_rows`.
    build (Build): makes the module.
    nO (Optional[int]): width of its output.
    attrs (Optional[Dict[str, Any]]): of the layer. Dataclasses are not stored with the weights.
    RETURNS (Model): with the input's width unset. Call `set_width` in its `init`.
    """
    shim = TorchShim(SizedModule(build), serialize_model=_serialize, deserialize_model=_deserialize)
    return Model(
        name,
        forward,
        init=init_rows,
        shims=[shim],
        dims={"nI": None, "nO": nO},
        attrs=attrs or {},
    )


def init_rows(model: Model, X: Optional[List[Floats2d]] = None, Y: Any = None) -> Model:
    """Build the module from a sample of its input, or from the width that is set."""
    if X:
        set_width(model, X[0].shape[1])
    elif model.has_dim("nI"):
        set_width(model, model.get_dim("nI"))
    return model


def init_reader(model: Model, X: Optional[List[Doc]] = None, Y: Any = None) -> Model:
    """Initialize a model of two layers: the tok2vec, then what reads it.

    model (Model): the tok2vec and a layer of `torch_layer`. X (Optional[List[Doc]]): some docs.
    """
    tok2vec, reader = model.layers
    tok2vec.initialize(X=X)
    reader.initialize(X=None if X is None else tok2vec.predict(X))
    return model


def init_past_reader(model: Model, X: Optional[List[Doc]] = None, Y: Any = None) -> Model:
    """As `init_reader`, for a module with an encoder, past which some numbers may go."""
    tok2vec, reader = model.layers
    tok2vec.initialize(X=X)
    if X is not None:
        set_width(reader, find_width(tok2vec, X), get_past_width(tok2vec))
    return model


def find_width(tok2vec: Model, docs: List[Doc]) -> int:
    """tok2vec (Model): initialized; it may not say how wide its output is. docs (List[Doc]): at
    least one. RETURNS (int): Width of its output."""
    return int(tok2vec.predict(docs)[0].shape[1])


def set_width(model: Model, nI: int, n_past: int = 0) -> None:
    """Make the module of a layer anew. model (Model): of `torch_layer`. nI (int): width of its
    input. n_past (int): see `SizedModule.set_width`."""
    model.set_dim("nI", nI, force=True)
    shim = cast(TorchShim, model.shims[0])
    # Thinc looks where the weights are: the new ones are not there yet.
    device = shim.device
    shim._model.set_width(nI, n_past)
    shim._model.to(device)


def run_rows(
    model: Model, Xs: List[Floats2d], is_train: bool, *args: Any, **kwargs: Any
) -> Tuple[FloatsXd, Callable[[FloatsXd], List[Floats2d]]]:
    """Call the module as `module(X, lengths, *args, **kwargs)`, with X of shape
    (n_tokens, nI), the docs one after the other, and their lengths.

    model (Model): of `torch_layer`.
    Xs (List[Floats2d]): one array a doc; any may be empty, not all.
    is_train (bool): whether gradients are wanted.
    args, kwargs (Any): what else the module takes; no gradients go back to them.
    RETURNS (Tuple[FloatsXd, Callable]): its output, and the way back to Xs.
    """
    shim = cast(TorchShim, model.shims[0])
    lengths = [len(X) for X in Xs]
    flat = model.ops.xp.concatenate(Xs)
    X = xp2torch(flat, requires_grad=is_train, device=shim.device)
    Y, backprop_torch = shim(ArgsKwargs((X, lengths, *args), kwargs), is_train)

    def backprop(dY: FloatsXd) -> List[Floats2d]:
        grads = {"grad_tensors": (xp2torch(dY, device=shim.device),)}
        backprop_torch(ArgsKwargs(args=((Y,),), kwargs=grads))
        dX: Tensor = torch.zeros_like(X) if X.grad is None else X.grad
        return model.ops.unflatten(cast(Floats2d, torch2xp(dX)), model.ops.asarray1i(lengths))

    return cast(FloatsXd, torch2xp(Y.detach())), backprop


def _serialize(module: SizedModule) -> bytes:
    state = {name: t.cpu().contiguous() for name, t in module.state_dict().items()}
    return srsly.msgpack_dumps({"widths": module.widths, "state": safetensors.torch.save(state)})


def _deserialize(module: SizedModule, data: bytes, device: torch.device) -> SizedModule:
    """RAISES (ValueError): EL116 or EL033 if the data cannot be read, EL020 to EL022 and EL106 if
    they do not fit the config."""
    message = unpack(data, _SOURCE)
    widths = message.get("widths") if isinstance(message, dict) else None
    if not isinstance(widths, list) or [type(width) for width in widths] != [int, int]:
        error = "they hold no weights of a torch layer"
        raise ValueError(Errors.EL116.format(source=_SOURCE, error=error))
    state = parse_tensors(message["state"], _SOURCE)
    if state:
        # Shapes are compared before memory is taken.
        with torch.device("meta"):
            planned = SizedModule(module.build)
            planned.set_width(*widths)
        check_headers(get_headers(planned.state_dict()), get_headers(state), _SOURCE)
        module.set_width(*widths)
    load_weights(module, state, _SOURCE)
    return module.to(choose_device())
