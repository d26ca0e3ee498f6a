"""The oracle, over packed rows: for layers of torch, whose gates stand as i, f, o, j and
have the forget gate's +1 in the bias."""

import numpy as np
import torch

from . import oracle


def make_oracle_weights(layer):
    """RETURNS the weights of an `LSTMLayer` as bilm-tf would write them."""

    def reorder(array):
        i, f, o, j = np.split(array, 4, axis=-1)
        return np.concatenate([i, j, f, o], axis=-1)

    weight, bias = (part.detach().double().numpy() for part in (layer.weight, layer.bias))
    n = layer.cell_width
    bias = bias.copy()
    bias[n : 2 * n] -= 1.0
    name = "RNN_0/RNN/LSTMCell/"
    weights = {name + "W_0": reorder(weight), name + "B": reorder(bias)}
    if layer.projection is not None:
        weights[name + "W_P_0"] = layer.projection.detach().double().numpy()
    return weights


def run_packed(layer, X, batch_sizes, state):
    """RETURNS the packed outputs and the last hidden and cell, as `LSTMLayer` does; sequence
    by sequence and step by step, in float64."""
    options = {"lstm": {"cell_clip": layer.cell_clip, "proj_clip": layer.proj_clip}}
    weights = make_oracle_weights(layer)
    hidden, cell = (part.detach().double().numpy() for part in state)
    starts = np.cumsum(batch_sizes) - batch_sizes
    Y = np.zeros((sum(batch_sizes), hidden.shape[1]))
    last_hidden, last_cell = np.zeros_like(hidden), np.zeros_like(cell)
    for k in range(batch_sizes[0]):
        rows = [start + k for start, n in zip(starts, batch_sizes) if k < n]
        vectors = X.detach().double().numpy()[rows]
        (outputs,), (last,) = oracle.run_direction(
            options, weights, 0, vectors, [(hidden[k], cell[k])]
        )
        Y[rows], (last_hidden[k], last_cell[k]) = outputs, last
    return [torch.from_numpy(array) for array in (Y, last_hidden, last_cell)]
