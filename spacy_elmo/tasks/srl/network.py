"""`srl_tagger`: docs -> which tokens are predicates, and the tags of each predicate's clause."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Callable, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union, cast

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Linear, Maxout, Model, chain, with_array
from thinc.types import Floats1d, Floats2d
from torch import Tensor, nn

from ...layers.elmo_tok2vec import get_skip_width
from ...layers.spans import SentenceSpans, WindowSpans
from ...utils import require_least, split_by_size
from ..shared.annotations import Place
from ..shared.bilstm import order_sequences, run_lstm
from ..shared.torch_layer import Dropout, Tok2VecModel, find_width, run_rows, set_width, torch_layer

# Scores of the tokens of each doc -> its predicates.
Choose = Callable[[List[Floats1d]], Sequence[Sequence[Place]]]
_FINDER_WIDTH = 128
_get_n_tokens = attrgetter("n_tokens")


class Clause(NamedTuple):
    """The part of a doc that is read for a predicate: its sentence, or a window."""

    # Which one of the batch.
    doc: int
    start: int
    end: int
    predicate: Place

    @property
    def n_tokens(self) -> int:
        """Tokens that are read."""
        return self.end - self.start


class SRLScores(NamedTuple):
    """Logits: of each doc shape (n_tokens,), whether tokens are predicates; of each clause shape
    (n_tokens, n_tags)."""

    predicates: List[Floats1d]
    clauses: List[Clause]
    tags: List[Floats2d]


SRLModel = Model[Tuple[List[Doc], Choose], SRLScores]
ClauseRows = Tuple[List[Floats2d], List[Clause]]


@dataclass(frozen=True)
class Limits:
    """See `build_srl_tagger_v1`. A dataclass: Thinc would save plain numbers."""

    max_tokens: int
    batch_tokens: int


def build_srl_tagger_v1(
    tok2vec: Tok2VecModel,
    width: int = 200,
    depth: int = 4,
    dropout: float = 0.1,
    max_tokens: int = 128,
    batch_tokens: int = 8192,
) -> SRLModel:
    """Find predicates, and tag the tokens of each one's sentence with their roles (He et al.
    2017). Predicates come from a classifier of single tokens, roles from a deep LSTM of
    alternating directions, which reads the sentence once for each predicate.

    tok2vec (Tok2VecModel): docs -> arrays of any width; ELMo's or another. The `output` of an
        ElmoTok2Vec without `encode` is appended to the output of the LSTM.
    width (int): of the LSTM's layers, at least 1.
    depth (int): its layers, at least 1; their directions alternate.
    dropout (float): probability in [0, 1) that a number between its layers is dropped, the same
        ones for all tokens of a sentence. Not driven by [training] dropout.
    max_tokens (int): tokens that are read for a predicate; longer sentences, and docs without
        sentence starts, are cut into windows; at least 2.
    batch_tokens (int): tokens of all clauses that are predicted at a time, at least 1.
    RETURNS (SRLModel): docs and a function that chooses predicates -> scores.
    RAISES (ValueError): EL012 for a value out of range.
    """
    for key, value in (("width", width), ("depth", depth), ("batch_tokens", batch_tokens)):
        require_least(key, value, 1)
    require_least("max_tokens", max_tokens, 2)
    finder: Model = with_array(
        chain(Maxout(nO=_FINDER_WIDTH, nP=2, normalize=True, dropout=0.0), Linear(nO=1))
    )
    build = partial(RoleEncoder, width=width, depth=depth)
    attrs = {"dropout": Dropout(dropout), "width": width}
    encoder = torch_layer("role_encoder", role_encoder_forward, build, attrs=attrs)
    model: SRLModel = Model(
        "srl_tagger",
        srl_tagger_forward,
        init=srl_tagger_init,
        layers=[tok2vec, finder, encoder, Linear()],
        dims={"nO": None},
        attrs={"limits": Limits(max_tokens, batch_tokens)},
    )
    model.set_ref("tok2vec", tok2vec)
    return model


def srl_tagger_forward(
    model: SRLModel, X: Union[Tuple[List[Doc], Choose], List[Doc]], is_train: bool
) -> Tuple[SRLScores, Callable]:
    """Docs, and a function that chooses their predicates -> scores. Docs alone, as `spacy debug
    model` gives them, have none. Backprop takes gradients of predicates and tags."""
    docs, choose = X if isinstance(X, tuple) else (X, lambda scores: [[] for _ in scores])
    tok2vec, finder, encoder, output = model.layers
    limits: Limits = model.attrs["limits"]
    rows, backprop_rows = tok2vec(docs, is_train)
    found, backprop_found = finder(rows, is_train)
    predicates = [each[:, 0] for each in found]
    clauses = make_clauses(docs, choose(predicates), limits.max_tokens)
    tags: List[Floats2d] = []
    backprops: List[Callable] = []
    # In training all clauses are one batch.
    most_tokens = sum(c.n_tokens for c in clauses) if is_train else limits.batch_tokens
    for part in split_by_size(clauses, _get_n_tokens, most_tokens):
        encoded, backprop_encoded = encoder((rows, part), is_train)
        scored, backprop_scored = output(encoded, is_train)
        lengths = model.ops.asarray1i([*map(_get_n_tokens, part)])
        tags += model.ops.unflatten(scored, lengths)
        backprops = [backprop_scored, backprop_encoded]

    def backprop(gradients: Tuple[List[Floats1d], List[Floats2d]]) -> List[Doc]:
        d_predicates, d_tags = gradients
        d_rows = backprop_found([model.ops.reshape2f(d, len(d), 1) for d in d_predicates])
        if d_tags:
            d_encoded = backprops[1](backprops[0](model.ops.xp.concatenate(d_tags)))
            d_rows = [a + b for a, b in zip(d_rows, d_encoded)]
        return backprop_rows(d_rows)

    return SRLScores(predicates, clauses, tags), backprop


def srl_tagger_init(
    model: SRLModel, X: Optional[List[Doc]] = None, Y: Optional[Floats2d] = None
) -> SRLModel:
    """Y (Optional[Floats2d]): anything of shape (n, n_tags)."""
    tok2vec, finder, encoder, output = model.layers
    tok2vec.initialize(X=X)
    nI = find_width(tok2vec, X) if X else tok2vec.get_dim("nO")
    finder.initialize(X=[model.ops.alloc2f(1, nI)], Y=[model.ops.alloc2f(1, 1)])
    skip_width = get_skip_width(tok2vec)
    set_width(encoder, nI, skip_width)
    output.set_dim("nI", encoder.attrs["width"] + skip_width, force=True)
    if Y is not None:
        for each in (model, output):
            each.set_dim("nO", Y.shape[1])
    output.initialize()
    return model


def role_encoder_forward(
    model: Model[ClauseRows, Floats2d], X: ClauseRows, is_train: bool
) -> Tuple[Floats2d, Callable[[Floats2d], List[Floats2d]]]:
    """Vectors of docs and clauses in them, at least one -> shape (n_clause_tokens, nO)."""
    Xs, clauses = X
    offsets = np.cumsum([0, *map(len, Xs)])
    rows = np.concatenate([offsets[c.doc] + np.arange(c.start, c.end) for c in clauses])
    marks = np.concatenate([np.arange(c.start, c.end) == c.predicate[0] for c in clauses])
    sizes = [clause.n_tokens for clause in clauses]
    Y, backprop = run_rows(model, Xs, is_train, rows, marks, sizes)
    return cast(Floats2d, Y), backprop


def make_clauses(
    docs: Sequence[Doc], predicates: Sequence[Sequence[Place]], max_tokens: int
) -> List[Clause]:
    """Find the part of its doc that is read for each predicate: its sentence, or a window of
    `max_tokens`. A predicate that crosses the end of its sentence ends there."""
    clauses = []
    for i, (doc, places) in enumerate(zip(docs, predicates)):
        if not places:
            continue
        divide = SentenceSpans if doc.has_annotation("SENT_START") else WindowSpans
        bounds = [*(span.start for span in divide(max_tokens)([doc])[0]), len(doc)]
        for start, end in places:
            k = bisect_right(bounds, start) - 1
            clauses.append(Clause(i, bounds[k], bounds[k + 1], (start, min(end, bounds[k + 1]))))
    return clauses


class RoleEncoder(nn.Module):
    """The deep LSTM of He et al. (2017): layers read in alternating directions, each with a highway
    connection around it and one dropout mask for all tokens of a clause. Their highway gates are
    inside of the recurrence, these are around the layer, so that torch's own LSTM can be used."""

    def __init__(self, nI: int, skip_width: int = 0, *, width: int, depth: int) -> None:
        super().__init__()
        self.skip_width = skip_width
        self.project = nn.Linear(nI - skip_width, width)
        self.indicator = nn.Embedding(2, width)
        self.lstms = nn.ModuleList(nn.LSTM(width, width) for _ in range(depth))
        self.gates = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(
        self,
        X: Tensor,
        lengths: List[int],
        rows: NDArray,
        marks: NDArray,
        sizes: List[int],
        dropout: float = 0.0,
    ) -> Tensor:
        """X (Tensor): shape (n_rows, nI). rows (NDArray): of the tokens of clauses in X; marks
        (NDArray): whether a predicate begins there. sizes (List[int]): tokens of the
        clauses. RETURNS (Tensor): (n_tokens, width + skip_width), clause after clause."""
        X, skipped = X.split([X.shape[1] - self.skip_width, self.skip_width], dim=1)
        read = torch.from_numpy(rows).to(X.device)
        orders = order_sequences(sizes, X.device)
        # Projected once for each token, not for each predicate of its sentence.
        Y = self.project(X)[read]
        Y = Y + self.indicator(torch.from_numpy(marks).long().to(X.device))
        lstms = cast(Iterable[nn.LSTM], self.lstms)
        clauses = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)).to(X.device)
        for i, (lstm, gate) in enumerate(zip(lstms, self.gates)):
            Y = _drop(Y, clauses, dropout)
            carried = torch.sigmoid(gate(Y))
            Y = (1 - carried) * run_lstm(lstm, Y, orders[i % 2]) + carried * Y
        return torch.cat([_drop(Y, clauses, dropout), skipped[read]], dim=1)


def _drop(Y: Tensor, clauses: Tensor, dropout: float) -> Tensor:
    """Dropout with one mask for all tokens of a clause. clauses (Tensor): shape (n_tokens,), the
    clause of each token, rising."""
    if not dropout:
        return Y
    n_clauses = int(clauses[-1]) + 1
    mask = Y.new_empty(n_clauses, Y.shape[1]).bernoulli_(1 - dropout) / (1 - dropout)
    return Y * mask[clauses]
