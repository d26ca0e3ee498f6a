"""torch modules as Thinc layers over the token vectors of docs.

Beyond Thinc's `PyTorchWrapper`: the width of the input may be unknown until the model is
initialized or loaded, and weights are saved without pickle. Modules take their dropout as an
argument, because threads share their mode (`train`, `eval`).
"""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, cast

import safetensors.torch
import srsly
import torch
import torch.nn.functional as F
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, torch2xp, xp2torch
from thinc.types import Floats2d, FloatsXd
from torch import Tensor, nn

from ...bilm.weights import check_headers, get_headers, load_weights, usual_numbers, without_memory
from ...checkpoints.tensors import parse_tensors
from ...errors import Errors
from ...files import unpack
from ...layers.elmo_tok2vec import get_skip_width
from ...layers.scalar_mix import N_VALUES, round_rate
from ...layers.torch_shim import TorchShim, choose_device
from ...utils import require_valid
from .annotations import Place

Tok2VecModel = Model[List[Doc], List[Floats2d]]
# `build(nI)`, or `build(nI, skip_width)` if the last numbers of the input skip the encoder. A
# class or a partial of one, so that models can be pickled.
Build = Callable[..., nn.Module]

_SOURCE = "the saved component"


@dataclass(frozen=True)
class Dropout:
    """rate (float): probability in [0, 1). A dataclass: Thinc would save a plain number."""

    rate: float

    def __post_init__(self) -> None:
        require_valid(0 <= self.rate < 1, "dropout", self.rate, "a probability in [0, 1)")


def drop(X: Tensor, rate: float) -> Tensor:
    """Apply dropout with a probability in [0, 1), rounded to a 65,536th; X itself for 0. On a CPU
    several times as fast as torch's function, which draws random bits for each number; this one
    draws 64 for each four."""
    if not rate:
        return X
    if X.device.type != "cpu":
        return F.dropout(X, rate)
    n_dropped, scale = round_rate(rate)
    draws = torch.empty(-(-X.numel() // 4), dtype=torch.int64, device="cpu").random_(-(2**63), None)
    values = draws.view(torch.int16)[: X.numel()].view(X.shape)  # at least -2^15
    kept = (values >= n_dropped - N_VALUES // 2).to(X.dtype)
    return X * kept.mul_(scale)


class SizedModule(nn.Module):
    """A module that is built when the width of its input is known."""

    def __init__(self, build: Build) -> None:
        super().__init__()
        self.build = build
        self.widths = 0, 0
        self.body: Optional[nn.Module] = None

    def set_width(self, nI: int, skip_width: int = 0) -> None:
        """Build the module anew. skip_width (int): last input numbers that skip the encoder."""
        self.widths = nI, skip_width
        self.body = self.build(nI, skip_width) if skip_width else self.build(nI)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
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
    """Make a layer of a torch module, whose input has any width. forward (Callable): Thinc's, which
    calls `run_rows`. attrs (Optional[Dict[str, Any]]): of the layer; dataclasses are not saved."""
    shim = TorchShim(SizedModule(build), serialize_model=_serialize, deserialize_model=_deserialize)
    dims: Dict[str, Optional[int]] = {"nI": None, "nO": nO}
    return Model(name, forward, init=init_rows, shims=[shim], dims=dims, attrs=attrs or {})


def init_rows(model: Model, X: Optional[List[Floats2d]] = None, Y: Any = None) -> Model:
    """Build the module from a sample of its input, or from the width that is set."""
    if X:
        set_width(model, X[0].shape[1])
    elif model.has_dim("nI"):
        set_width(model, model.get_dim("nI"))
    return model


def init_reader(model: Model, X: Optional[List[Doc]] = None, Y: Any = None) -> Model:
    """Initialize a tok2vec, and a layer of `torch_layer` after it, whose encoder may be skipped."""
    tok2vec, reader = model.layers
    tok2vec.initialize(X=X)
    if X is not None:
        set_width(reader, find_width(tok2vec, X), get_skip_width(tok2vec))
    return model


def find_width(tok2vec: Tok2VecModel, docs: List[Doc]) -> int:
    """Width of the output of an initialized tok2vec, which may not declare it."""
    return int(tok2vec.predict(docs)[0].shape[1])


def set_width(model: Model, nI: int, skip_width: int = 0) -> None:
    """Build the module of a layer anew. See `SizedModule.set_width`."""
    model.set_dim("nI", nI, force=True)
    shim = cast(TorchShim, model.shims[0])
    # Read before the weights are replaced, which are made on the CPU.
    device = shim.device
    with usual_numbers():
        shim._model.set_width(nI, skip_width)
    shim._model.to(device)


def run_rows(
    model: Model, Xs: List[Floats2d], is_train: bool, *args: Any
) -> Tuple[FloatsXd, Callable[[FloatsXd], List[Floats2d]]]:
    """Call the module of a layer as `module(X, lengths, *args, dropout)`, X of shape (n_tokens,
    nI), for sequences of which any may be empty, not all. RETURNS: its output, and backprop to
    Xs."""
    shim = cast(TorchShim, model.shims[0])
    lengths = [len(X) for X in Xs]
    X = xp2torch(model.ops.xp.concatenate(Xs), requires_grad=is_train, device=shim.device)
    dropout = model.attrs["dropout"].rate if is_train else 0.0
    Y, backprop_torch = shim(ArgsKwargs((X, lengths, *args, dropout), {}), is_train)

    def backprop(dY: FloatsXd) -> List[Floats2d]:
        grads = {"grad_tensors": (xp2torch(dY, device=shim.device),)}
        backprop_torch(ArgsKwargs(args=((Y,),), kwargs=grads))
        dX: Tensor = torch.zeros_like(X) if X.grad is None else X.grad
        return model.ops.unflatten(cast(Floats2d, torch2xp(dX)), model.ops.asarray1i(lengths))

    return cast(FloatsXd, torch2xp(Y.detach())), backprop


Slices = List[Tuple[int, Place]]


def run_slices(
    model: Model,
    vectors: List[Floats2d],
    groups: Sequence[Tuple[Slices, Tuple[Any, ...]]],
    is_train: bool,
) -> Tuple[List[FloatsXd], Callable[[List[FloatsXd]], List[Floats2d]]]:
    """Call `run_rows` for groups of slices of docs: number of the doc and tokens of each slice; and
    further arguments of the module. RETURNS: outputs of the groups, and backprop to the vectors of
    the docs."""
    outputs, backprops = [], []
    for slices, args in groups:
        Xs = [vectors[i][start:end] for i, (start, end) in slices]
        Y, backprop_rows = run_rows(model, Xs, is_train, *args)
        outputs.append(Y)
        if is_train:
            backprops.append(backprop_rows)

    def backprop(d_outputs: List[FloatsXd]) -> List[Floats2d]:
        d_vectors = [model.ops.alloc2f(*vector.shape) for vector in vectors]
        for (slices, _), backprop_rows, dY in zip(groups, backprops, d_outputs):
            for (i, (start, end)), dX in zip(slices, backprop_rows(dY)):
                d_vectors[i][start:end] += dX
        return d_vectors

    return outputs, backprop


def run_pooled(
    model: Model,
    vectors: List[Floats2d],
    batches: Sequence[List[int]],
    groups: Sequence[Tuple[Slices, Tuple[Any, ...]]],
    is_train: bool,
) -> Tuple[Floats2d, Callable[[Floats2d], List[Floats2d]]]:
    """As `run_slices`, for modules that make a row of each doc: batches are the numbers of the docs
    of each group. RETURNS: shape (n_docs, nO), zeros for docs in no batch; and backprop."""
    outputs, backprop_slices = run_slices(model, vectors, groups, is_train)
    Y: Any = model.ops.alloc2f(len(vectors), model.get_dim("nO"))
    for batch, rows in zip(batches, outputs):
        Y[batch] = rows

    def backprop(dY: Any) -> List[Floats2d]:
        return backprop_slices([dY[batch] for batch in batches])

    return Y, backprop


def _serialize(module: SizedModule) -> bytes:
    state = {name: t.cpu().contiguous() for name, t in module.state_dict().items()}
    return srsly.msgpack_dumps({"widths": module.widths, "state": safetensors.torch.save(state)})


def _deserialize(module: SizedModule, data: bytes, device: torch.device) -> SizedModule:
    message = unpack(data, _SOURCE)
    widths, state = message["widths"], parse_tensors(message["state"], _SOURCE)
    if state:
        # Compare shapes before memory is allocated.
        with without_memory():
            planned = SizedModule(module.build)
            planned.set_width(*widths)
        check_headers(get_headers(planned.state_dict()), get_headers(state), _SOURCE)
        with usual_numbers():
            module.set_width(*widths)
    load_weights(module, state, _SOURCE)
    return module.to(choose_device())
