"""`scalar_mix`: the layers of a token -> one vector; `mixed_layers`: a chain that ends with it."""

from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Callable, List, Literal, Optional, Tuple, Union, cast

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps, Ops, chain, get_current_ops
from thinc.types import Floats1d, Floats2d
from torch import Tensor
from torch.nn import functional as F

from ..inference.threads import run_parallel
from ..utils import require_valid, split_by_size
from .torch_rows import Rows, as_tensor

MixModel = Model[List[Floats2d], List[Floats2d]]
MixOutput = Union[Literal["mix", "average", "top", "all"], int]

# AllenNLP's.
_NORM_EPSILON = 1e-12
# Layers normalised at a time: 1 MB of the bundled biLM's.
_NORM_ROWS = 512
# Tokens mixed at a time in prediction. All layers of 1,024 tokens of the bundled biLM are 6 MB: the
# arrays in between stay in a processor's cache, and in memory that the process has already.
PART_TOKENS = 1024
# Numbers for which torch starts no threads, and that are mixed before another thread has started.
_FEW_NUMBERS = 2**15


@dataclass(frozen=True)
class MixSettings:
    """Settings of a mix. A dataclass, so that Thinc does not store them with the weights:
    the config is their only source.

    output (MixOutput): "mix" learns softmax weights and a scale; "average" is their
        untrained start; "top" and a number (0 is the word layer) take one layer; "all"
        keeps the layers side by side.
    initial_weights (Optional[List[float]]): one for each layer, before the softmax;
        None for equal ones. Trained further unless fixed.
    fixed_weights (bool): keep weights and scale as they are (AllenNLP's
        `trainable=False`).
    mix_l2 (float): λ of λ·Σw², w before the softmax, added to the loss once per
        update: pulls the weights towards the uniform mix (Peters et al. 2018,
        section 3.3); at least 0.
    mix_layer_norm (bool): normalise each layer of a token to mean 0 and variance 1
        before mixing. AllenNLP's `ScalarMix` and bilm-tf's `weight_layers` take mean and
        variance over all tokens of the batch, with which a token's vector would depend on the
        rest of its batch.
    mix_dropout (float): probability in [0, 1) that a number of the result is dropped
        in training. Not driven by [training] dropout.
    learn_rate_factor (float): learning rate of the weights as a multiple of Adam's (its square
        for plain gradient descent); above 0. The weights are saved divided by it, so it belongs to
        the version of an architecture, not to the config. The scale learns at the optimizer's
        rate.
    """

    output: MixOutput = "mix"
    initial_weights: Optional[List[float]] = None
    fixed_weights: bool = False
    mix_l2: float = 0.0
    mix_layer_norm: bool = False
    mix_dropout: float = 0.0
    learn_rate_factor: float = 1.0

    def validate(self, n_layers: int) -> None:
        """RAISES (ValueError): EL012 if a value does not fit `n_layers` layers."""
        output, initial, depth = self.output, self.initial_weights, n_layers - 1
        is_layer = isinstance(output, int) and 0 <= output < n_layers
        outputs = f'"mix", "average", "top", "all", or a layer from 0 (words) to {depth}'
        numbers = f"null, or {n_layers} numbers: the word layer and {depth} LSTM layers"
        unless_mix = 'null unless output = "mix"'
        for key, value, is_valid, expected in (
            ("output", output, is_layer or output in ("mix", "average", "top", "all"), outputs),
            ("initial_weights", initial, not initial or len(initial) == n_layers, numbers),
            ("initial_weights", initial, not initial or output == "mix", unless_mix),
            ("mix_l2", self.mix_l2, self.mix_l2 >= 0, "at least 0"),
            ("mix_dropout", self.mix_dropout, 0 <= self.mix_dropout < 1, "in [0, 1)"),
        ):
            require_valid(is_valid, key, value, expected)

    @property
    def is_wide(self) -> bool:
        """Whether the result is as wide as all layers together."""
        return self.output == "all"

    @property
    def is_trained(self) -> bool:
        """Whether updates change weights and scale."""
        return self.output == "mix" and not self.fixed_weights


def scalar_mix(n_layers: int, width: int, settings: MixSettings) -> MixModel:
    """Mix layers: y = γ Σ_j softmax(w)_j h_j (Peters et al. 2018, equation 1).

    n_layers (int): layers side by side in an input row, the word layer first.
    width (int): width of one layer.
    settings (MixSettings): what to do; EL012 if it does not fit.
    RETURNS (MixModel): rows of n_layers * width -> rows of width, or as wide as they were
        with `output = "all"`.
    """
    settings.validate(n_layers)
    ops = get_current_ops()
    model: MixModel = Model(
        "scalar_mix",
        scalar_mix_forward,
        init=scalar_mix_init,
        dims={"nI": n_layers * width, "nO": n_layers * width if settings.is_wide else width},
        params={"W": ops.alloc1f(n_layers), "gamma": ops.alloc1f(1)},
        attrs={"settings": settings},
    )
    return scalar_mix_init(model)


def scalar_mix_init(model: MixModel, X: Any = None, Y: Any = None) -> MixModel:
    """Set weights and scale to their initial values."""
    settings: MixSettings = model.attrs["settings"]
    n_layers = len(cast(Floats1d, model.get_param("W")))
    weights = model.ops.asarray1f(settings.initial_weights or [0.0] * n_layers)
    # The parameters are the weights divided by the factor, so that a step of the optimizer changes
    # the weights by that many times as much.
    model.set_param("W", weights / settings.learn_rate_factor)
    model.set_param("gamma", model.ops.asarray1f([1.0]))
    return model


def scalar_mix_forward(
    model: MixModel, Xs: List[Floats2d], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """Xs (List[Floats2d]): one array a doc, shape (n_tokens, n_layers * width), layer by layer
        inside a row.
    RETURNS (Tuple[List[Floats2d], Callable]): arrays of shape (n_tokens, width), or as wide as Xs,
        and the backprop to Xs. Called with `to_layers=False`, that returns [], and goes to weights
        and scale alone.
    """
    _check_widths(model, Xs)
    if is_train or not isinstance(model.ops, NumpyOps):
        return _mix(model, Xs, is_train)
    return _predict(model, Xs), _no_gradient


def _predict(model: MixModel, Xs: List[Floats2d]) -> List[Floats2d]:
    mix, lengths = make_mix(model), [len(X) for X in Xs]
    # Not by torch, whose default type and device may be others.
    Y = torch.from_numpy(np.empty((sum(lengths), model.get_dim("nO")), dtype="float32"))
    pieces = [X[i : i + PART_TOKENS] for X in Xs for i in range(0, len(X), PART_TOKENS)]
    parts = list(split_by_size(pieces, len, PART_TOKENS))
    ends = [0, *accumulate(sum(map(len, part)) for part in parts)]
    outputs = [Y[start:end] for start, end in pairwise(ends)]
    tasks = [partial(_fill, mix, *pair) for pair in zip(parts, outputs)]
    if Y.numel() < _FEW_NUMBERS and not model.attrs["settings"].mix_layer_norm:
        _ = [task() for task in tasks]
    else:
        run_parallel(tasks, 1)
    return cast(List[Floats2d], [part.numpy() for part in Y.split(lengths)])


def _fill(mix: Rows, Xs: List[Floats2d], output: Tensor) -> None:
    X: Any = Xs[0] if len(Xs) == 1 else np.concatenate(cast(Any, Xs))
    with torch.inference_mode():
        output[:] = mix(as_tensor(X))


def _mix(model: MixModel, Xs: List[Floats2d], is_train: bool) -> Tuple[List[Floats2d], Callable]:
    settings: MixSettings = model.attrs["settings"]
    ops, width = model.ops, get_layer_width(model)
    lengths = [len(X) for X in Xs]
    X = _join(model, Xs)
    backprop_norm: Callable[[Floats2d], Floats2d] = _identity
    if settings.mix_layer_norm:
        X, backprop_norm = _normalise(ops, X, width)
    layers = _split(X, width)
    gamma, shares = get_gamma(model), get_shares(model)
    mixed = X if settings.is_wide else _weighted_sum(ops, shares, layers)  # (n_tokens, nO)
    mask = None
    if is_train and settings.mix_dropout:
        mask = draw_mask(ops, mixed.shape, settings.mix_dropout)
    Y = gamma * (mixed if mask is None else mixed * mask)

    def backprop(dYs: List[Floats2d], to_layers: bool = True) -> List[Floats2d]:
        if not to_layers and not settings.is_trained:
            return []
        dY = ops.xp.concatenate(dYs) if dYs else ops.alloc2f(0, model.get_dim("nO"))
        if mask is not None:
            dY = dY * mask
        if settings.is_trained:
            _add_gradients(model, shares, gamma, layers, mixed, dY)
        if not to_layers:
            return []
        parts = _split(dY, width) if settings.is_wide else [dY] * len(shares)
        dlayers = [(gamma * share) * part for share, part in zip(shares, parts)]
        dX = backprop_norm(ops.xp.concatenate(dlayers, axis=1))
        return ops.unflatten(dX, ops.asarray1i(lengths))

    return ops.unflatten(Y, ops.asarray1i(lengths)), backprop


def make_mix(model: MixModel) -> Rows:
    """Make the function of a mix in prediction, on a processor: (n_tokens, n_layers * width) ->
    (n_tokens, nO)."""
    settings: MixSettings = model.attrs["settings"]
    gamma, shares, width = get_gamma(model), get_shares(model), get_layer_width(model)
    scale = torch.from_numpy(np.full(width, gamma, dtype="float32"))

    def mix(X: Tensor) -> Tensor:
        layers = X.unflatten(1, (-1, width))
        if settings.mix_layer_norm:
            layers = F.layer_norm(layers, (width,), scale, None, _NORM_EPSILON**2)
        elif gamma != 1.0:
            layers = layers * scale
        if settings.is_wide:
            return layers.flatten(1)
        Y = X.new_zeros(len(X), width)
        for i, share in enumerate(shares):
            if share:
                Y.add_(layers[:, i], alpha=share)
        return Y

    return mix


def get_layer_width(model: MixModel) -> int:
    """Width of one layer."""
    return model.get_dim("nI") // len(cast(Floats1d, model.get_param("W")))


def get_gamma(model: MixModel) -> float:
    """Scale of a mix."""
    return float(cast(Floats1d, model.get_param("gamma"))[0])


def get_weights(model: MixModel) -> Floats1d:
    """Weights before the softmax, shape (n_layers,)."""
    settings: MixSettings = model.attrs["settings"]
    return settings.learn_rate_factor * cast(Floats1d, model.get_param("W"))


def get_shares(model: MixModel) -> List[float]:
    """Share of each layer, the word layer first. They sum to 1, or each is 1 if all are kept."""
    settings: MixSettings = model.attrs["settings"]
    weights = get_weights(model)
    n_layers = len(weights)
    if settings.output == "mix":
        row = model.ops.reshape2f(weights, 1, n_layers)
        return cast(Any, model.ops.softmax(row))[0].tolist()
    if settings.output == "average":
        return [1.0 / n_layers] * n_layers
    if settings.is_wide:
        return [1.0] * n_layers
    chosen = n_layers - 1 if settings.output == "top" else settings.output
    return [float(i == chosen) for i in range(n_layers)]


def _check_widths(model: MixModel, Xs: List[Floats2d]) -> None:
    expected = model.get_dim("nI")
    for X in Xs:
        if X.shape[1] != expected:
            raise ValueError(
                f"A mix got rows of width {X.shape[1]}, expected {expected}. Set `width` and "
                "`depth` to those of the biLM that sends them."
            )


def _join(model: MixModel, Xs: List[Floats2d]) -> Floats2d:
    """Rows of all docs, shape (n_tokens, n_layers * width); a single array is not copied, unless it
    would be what is returned."""
    if len(Xs) == 1 and not model.attrs["settings"].is_wide:
        return Xs[0]
    return model.ops.xp.concatenate(Xs) if Xs else model.ops.alloc2f(0, model.get_dim("nI"))


def _split(X: Floats2d, width: int) -> List[Floats2d]:
    return [X[:, i : i + width] for i in range(0, X.shape[1], width)]


def _weighted_sum(ops: Ops, shares: List[float], layers: List[Floats2d]) -> Floats2d:
    xp: Any = ops.xp
    # Two arrays are written again and again: most of the time goes into memory.
    total, term = xp.multiply(layers[0], shares[0]), None
    for share, layer in zip(shares[1:], layers[1:]):
        if share:
            term = xp.multiply(layer, share, out=term)
            total += term
    return total


def _add_gradients(
    model: MixModel,
    shares: List[float],
    gamma: float,
    layers: List[Floats2d],
    mixed: Floats2d,
    dY: Floats2d,
) -> None:
    """dγ = Σ dY·m; dw_j = s_j (g_j - Σ_k s_k g_k) with g_j = γ Σ dY·h_j, plus 2 λ w_j, times the
    factor by which w is a multiple of its parameter."""
    settings: MixSettings = model.attrs["settings"]
    xp: Any = model.ops.xp
    g = model.ops.asarray1f([gamma * float(xp.vdot(dY, layer)) for layer in layers])
    s = model.ops.asarray1f(shares)
    dw = s * (g - xp.vdot(s, g))  # (n_layers,)
    # Once for an update, also if it has several batches (`accumulate_gradient`).
    if not model.has_grad("W") or not cast(Any, model.get_grad("W")).any():
        dw = dw + 2 * settings.mix_l2 * get_weights(model)
    model.inc_grad("W", settings.learn_rate_factor * dw)
    model.inc_grad("gamma", model.ops.asarray1f([float(xp.vdot(dY, mixed))]))


def _identity(dX: Floats2d) -> Floats2d:
    return dX


def _no_gradient(dYs: List[Floats2d]) -> List:
    return []


def _normalise(
    ops: Ops, X: Floats2d, width: int
) -> Tuple[Floats2d, Callable[[Floats2d], Floats2d]]:
    """Scale each layer of each token to mean 0 and variance 1; zeros (whitespace) stay zeros."""
    xp: Any = ops.xp
    rows: Any = X.reshape((-1, width))  # (n_tokens * n_layers, width)
    normed, deviations = xp.empty_like(rows), xp.empty((len(rows), 1), dtype=rows.dtype)
    # In parts that stay in a processor's cache: written once, then read and written in place.
    for start in range(0, len(rows), _NORM_ROWS):
        part = slice(start, start + _NORM_ROWS)
        centred = normed[part]
        xp.subtract(rows[part], rows[part].mean(axis=1, keepdims=True), out=centred)
        squares = xp.einsum("ij,ij->i", centred, centred)[:, None]  # (n_rows, 1)
        deviations[part] = xp.sqrt(squares / width) + _NORM_EPSILON
        centred /= deviations[part]

    def backprop(dX: Floats2d) -> Floats2d:
        dN: Any = dX.reshape((-1, width))
        slope = (dN * normed).mean(axis=1, keepdims=True)
        drows = (dN - dN.mean(axis=1, keepdims=True) - normed * slope) / deviations
        # No gradients of zeros.
        drows[deviations[:, 0] <= _NORM_EPSILON] = 0.0
        return cast(Floats2d, drows.reshape(dX.shape))

    return cast(Floats2d, normed.reshape(X.shape)), backprop


def mixed_layers(source: Any, mix: MixModel) -> Model[List[Doc], List[Floats2d]]:
    """Chain a biLM or a listener, with `frozen` in its settings, and a mix. Unlike Thinc's `chain`
    it does not compute gradients of the layers for a frozen biLM: they would take a tenth of the
    time of an update."""
    model: Model = chain(source, mix)
    model._func = mixed_layers_forward
    return model


def mixed_layers_forward(
    model: Model, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    # spaCy's `replace_listeners` may have put another source in its place.
    source, mix = model.layers
    Xs, backprop_layers = source(docs, is_train)
    Ys, backprop_mix = mix(Xs, is_train)

    def backprop(dYs: List[Floats2d]) -> List[Doc]:
        if source.attrs["settings"].frozen:
            backprop_mix(dYs, to_layers=False)
            return []
        return cast(List[Doc], backprop_layers(backprop_mix(dYs)))

    return Ys, backprop


# Values of a random number of 16 bits, of which several are drawn at a time.
N_VALUES = 1 << 16


def round_rate(rate: float) -> Tuple[int, float]:
    """How many of `N_VALUES` are dropped, never all, and the factor of the others, which keeps the
    mean."""
    n_dropped = min(round(rate * N_VALUES), N_VALUES - 1)
    return n_dropped, N_VALUES / (N_VALUES - n_dropped)


def draw_mask(ops: Ops, shape: Tuple[int, ...], rate: float) -> Floats2d:
    """As Thinc's `get_dropout_mask`, on a CPU in a fraction of its time: 0 for dropped numbers, for
    others a scale that keeps the mean. The rate is rounded to a 65,536th."""
    if ops.xp is not np:
        return cast(Floats2d, ops.get_dropout_mask(shape, rate))
    n_dropped, scale = round_rate(rate)
    return (np.random.randint(0, N_VALUES, shape, dtype="uint16") >= n_dropped) * np.float32(scale)
