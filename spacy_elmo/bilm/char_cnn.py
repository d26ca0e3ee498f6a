"""`CharCNN`: character ids -> word vectors, its convolutions with a gradient written by hand."""

from typing import Any, List, Sequence, Tuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .batch import N_CHARACTERS, PADDING
from .config import BiLMConfig

# For each place in a word: how many words have a character there, and how many filters fit in from
# there on.
_Places = Tuple[List[int], List[int]]


class _Filters(torch.autograd.Function):
    """`X` are the characters, the longest word first; `W` the filters, the narrowest first, each
    with zeros up to the window of the widest; `blank` their outputs where all characters are
    padding, -inf for a word without such a place.

    torch's convolutions compute each filter at each place up to the end of the longest word, keep
    all of it, and read it again for the gradient. Here words are read place by place, each only at
    its own places, and only the maximum is kept: a second pass over the places finds the winners.
    """

    @staticmethod
    def forward(
        ctx: Any, X: Tensor, W: Tensor, blank: Tensor, places: _Places, dtype: torch.dtype
    ) -> Tensor:
        ctx.settings = places, X.dtype
        X, W, best = X.to(dtype), W.to(dtype), blank.to(dtype, copy=True)
        for p in range(len(places[0])):
            rows, Y = _convolve(X, W, best, places, p)
            torch.maximum(rows, Y, out=rows)
        ctx.save_for_backward(X, W, best)
        return best

    @staticmethod
    def backward(ctx: Any, d_best: Tensor) -> Tuple[Any, ...]:
        X, W, best = ctx.saved_tensors
        places, dtype = ctx.settings
        dX, d_W = (part.new_zeros(part.shape, dtype=dtype) for part in (X, W))
        # Gradients of maxima whose place is not found yet; at the end, the padding's.
        left, W_t = d_best.clone(), W.t().contiguous()
        for p, (n, k) in enumerate(zip(*places)):
            rows, Y = _convolve(X, W, best, places, p)
            # 1 where this place has the maximum, else 0.
            dY = Y.sub_(rows).sign_().add_(1).mul_(left[:n, :k])
            left[:n, :k].sub_(dY)
            window = _window(X, W, p, n)
            d_W[:, :k] += window.t() @ dY
            dX[:n, p : p + W.size(0) // X.size(2)] += (dY @ W_t[:k]).view(n, -1, X.size(2))
        return dX, d_W, left.to(dtype), None, None


def _convolve(X: Tensor, W: Tensor, best: Tensor, places: _Places, p: int) -> Tuple[Tensor, Tensor]:
    """The part of `best` that a place can change, and the filters' outputs there."""
    n, k = places[0][p], places[1][p]
    return best[:n, :k], _window(X, W, p, n) @ W[:, :k]


def _window(X: Tensor, W: Tensor, p: int, n: int) -> Tensor:
    """The characters that the filters span at a place, shape (n, window * char_width)."""
    return X[:n, p : p + W.size(0) // X.size(2)].reshape(n, -1)


def run_filters(
    characters: Tensor,
    lengths: Tensor,
    padding: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
) -> Tensor:
    """Compute each filter's maximum over the places of each word, places of padding included, shape
    (n_words, n_filters). Under `torch.autocast` the products take its type.

    characters (Tensor): embedded, padding included, shape (n_words, n_chars, char_width).
    lengths (Tensor): characters that are not padding, int64, shape (n_words,).
    padding (Tensor): the embedded padding, shape (char_width,).
    weights (Sequence[Tensor]): of filters of each width, (n_filters, char_width, width).
    biases (Sequence[Tensor]): the same, (n_filters,).
    """
    device, n_chars, dtype = characters.device.type, characters.size(1), characters.dtype
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    with torch.autocast(device, enabled=False):
        widths = torch.cat([lengths.new_full((len(w),), w.size(2)) for w in weights])
        by_width, longest = _sort(widths), _sort(-lengths)
        widest = int(widths[by_width[-1]])
        flat = [F.pad(w, (0, widest - w.size(2))).transpose(1, 2) for w in weights]
        W = torch.cat(flat).flatten(1).t()[:, by_width]  # (window * char_width, n_filters)
        X = F.pad(characters[longest], (0, 0, 0, widest - 1))
        widths, lengths = widths[by_width], lengths[longest]
        has_blank = lengths[:, None] + widths <= n_chars  # (n_words, n_filters)
        blank = torch.where(has_blank, padding.repeat(widest) @ W, -torch.inf)
        best = _Filters.apply(X, W, blank, _plan(lengths, widths, n_chars), dtype)
        return best[_sort(longest)][:, _sort(by_width)] + torch.cat(list(biases)).to(dtype)


def _sort(values: Tensor) -> Tensor:
    return torch.argsort(values, stable=True)


def _plan(lengths: Tensor, widths: Tensor, n_chars: int) -> _Places:
    """Lengths fall, widths rise; `n_chars` are those of a word's row."""
    n_places = min(int(lengths[0]), n_chars - int(widths[0]) + 1)
    places = torch.arange(n_places, device=lengths.device)
    n_rows = (lengths[:, None] > places).sum(dim=0)
    n_filters = (widths[:, None] <= n_chars - places).sum(dim=0)
    return n_rows.tolist(), n_filters.tolist()


_ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


class Highway(nn.Module):
    """Let a learned gate choose between a transformed input and the input:
    y = s * relu(x Wt + bt) + (1 - s) * x with s = sigmoid(x Wc + bc).

    Source: Srivastava et al. 2015; the sign convention is bilm-tf's.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        # One product for both: the first half transforms, the second half gates.
        self.linear = nn.Linear(width, 2 * width)

    def forward(self, X: Tensor) -> Tensor:
        """X, shape (n_words, width) -> the same shape."""
        transform, gate = self.linear(X).chunk(2, dim=1)
        return torch.lerp(X, torch.relu(transform), torch.sigmoid(gate))


class CharCNN(nn.Module):
    """Make a word's vector from its characters: embeddings, convolutions of several
    widths, max-pool over the positions, activation, highway layers, projection.

    Padding characters inside a word are embedded like any other and take part in the
    max-pool, so a row may be cropped only down to its used positions plus the widest
    filter: that keeps every distinct window, the all-padding one included.

    Source: Kim et al. 2016; Peters et al. 2018, section 3.4; bilm-tf `model.py`.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.activation = _ACTIVATIONS[config.activation]
        self.embedding = nn.Embedding(N_CHARACTERS, config.char_width)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.char_width, number, width) for width, number in config.filters
        )
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.n_highway))
        self.projection = nn.Linear(config.n_filters, config.direction_width)

    def forward(self, char_ids: Tensor) -> Tensor:
        """Character ids, int64, shape (n_words, n_chars), n_chars at least the width of the widest
        filter -> word vectors, shape (n_words, width // 2)."""
        pooled = run_filters(
            self.embedding(char_ids),
            (char_ids != PADDING).sum(dim=1),
            self.embedding.weight[PADDING],
            [cast(Tensor, conv.weight) for conv in self.convolutions],
            [cast(Tensor, conv.bias) for conv in self.convolutions],
        )
        # The activation is monotone: after the max it costs n_chars times less.
        Y = self.activation(pooled)  # (n_words, n_filters)
        for highway in self.highways:
            Y = highway(Y)
        return self.projection(Y)
