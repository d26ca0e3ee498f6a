"""A second biLM in plain NumPy, from the file formats alone: slow, one word and one
step at a time, nothing cropped, nothing shared with the package."""

import numpy as np

LAYERS = "RNN_{d}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def character_ids(word, max_chars):
    if word == "<S>":
        units = [256]
    elif word == "</S>":
        units = [257]
    else:
        units = list(word.encode("utf-8", "ignore")[: max_chars - 2])
    ids = [258, *units, 259]
    return ids + [260] * (max_chars - len(ids))


def word_vector(options, weights, word):
    char_cnn = options["char_cnn"]
    ids = character_ids(word, char_cnn["max_characters_per_token"])
    chars = weights["char_embed"][ids]
    pooled = []
    for i, (width, _) in enumerate(char_cnn["filters"]):
        W = weights[f"CNN/W_cnn_{i}"][0]  # (width, in, out)
        windows = [chars[p : p + width] for p in range(len(chars) - width + 1)]
        values = [np.einsum("wc,wcn->n", window, W) for window in windows]
        pooled.append(np.max(values, axis=0) + weights[f"CNN/b_cnn_{i}"])
    x = np.concatenate(pooled)
    x = np.tanh(x) if char_cnn.get("activation", "relu") == "tanh" else np.maximum(x, 0)
    for k in range(char_cnn.get("n_highway") or 0):
        high = f"CNN_high_{k}/"
        gate = sigmoid(x @ weights[high + "W_carry"] + weights[high + "b_carry"])
        new = np.maximum(x @ weights[high + "W_transform"] + weights[high + "b_transform"], 0)
        x = gate * new + (1 - gate) * x
    if "CNN_proj/W_proj" in weights:
        x = x @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"]
    return x


def clip(x, bound):
    return np.clip(x, -bound, bound) if bound else x


def run_direction(options, weights, d, vectors, state):
    """Outputs of each layer, (n_steps, width // 2) each, and the state after them."""
    lstm = options["lstm"]
    inputs, outputs, last = list(vectors), [], []
    for layer in range(lstm.get("n_layers", 1)):
        names = LAYERS.format(d=d, layer=layer) + "/"
        if names + "W_0" not in weights:
            names = f"RNN_{d}/RNN/LSTMCell/"
        W, B = weights[names + "W_0"], weights[names + "B"]
        h, c = state[layer]
        ys = []
        for x in inputs:
            i, j, f, o = np.split(np.concatenate([x, h]) @ W + B, 4)
            c = clip(sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j), lstm.get("cell_clip"))
            h = sigmoid(o) * np.tanh(c)
            if names + "W_P_0" in weights:
                h = clip(h @ weights[names + "W_P_0"], lstm.get("proj_clip"))
            ys.append(h + x if lstm.get("use_skip_connections") and layer > 0 else h)
        last.append((h, c))
        outputs.append(np.stack(ys))
        inputs = ys
    return outputs, last


def zero_state(options):
    lstm = options["lstm"]
    width = lstm["projection_dim"]
    return [
        [(np.zeros(width), np.zeros(lstm["dim"])) for _ in range(lstm.get("n_layers", 1))]
        for _ in (0, 1)
    ]


def embed(options, weights, words, state=None):
    """Layers (n_layers, n_tokens, width) of a sentence, and the state after it."""
    weights = {name: np.asarray(array, dtype="float64") for name, array in weights.items()}
    state = state or zero_state(options)
    vectors = [word_vector(options, weights, word) for word in ["<S>", *words, "</S>"]]
    forward, forward_state = run_direction(options, weights, 0, vectors, state[0])
    backward, backward_state = run_direction(options, weights, 1, vectors[::-1], state[1])
    layers = [np.concatenate([vectors, vectors], axis=1)]
    layers += [np.concatenate([f, b[::-1]], axis=1) for f, b in zip(forward, backward)]
    return np.stack(layers)[:, 1:-1], [forward_state, backward_state]
