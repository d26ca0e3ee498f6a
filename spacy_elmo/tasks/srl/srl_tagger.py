"""`srl_tagger`: docs -> which tokens are predicates, and the tags of each predicate's clause."""

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple, Union, cast

from spacy.tokens import Doc
from thinc.api import Linear, Maxout, Model, chain, with_array
from thinc.types import Floats1d, Floats2d

from ...layers.elmo_tok2vec import get_past_width
from ...utils import require_least, split_by_size
from ..shared.dropout import Dropout
from ..shared.places import Place
from ..shared.torch_layer import find_width, run_rows, set_width, torch_layer
from .clauses import Clause, find_rows, make_clauses
from .role_encoder import RoleEncoder

# Of each doc the scores of its tokens -> the predicates.
Choose = Callable[[List[Floats1d]], Sequence[Sequence[Place]]]
Tok2VecModel = Model[List[Doc], List[Floats2d]]
ClauseRows = Tuple[List[Floats2d], List[Clause]]
_FINDER_WIDTH = 128
get_n_tokens = attrgetter("n_tokens")


class SRLScores(NamedTuple):
    """predicates (List[Floats1d]): of each doc shape (n_tokens,), above 0 where a predicate is
    likelier than none. clauses (List[Clause]): what was read for each predicate. tags
    (List[Floats2d]): of each clause shape (n_tokens, n_tags), logits."""

    predicates: List[Floats1d]
    clauses: List[Clause]
    tags: List[Floats2d]


SRLModel = Model[Tuple[List[Doc], Choose], SRLScores]


@dataclass(frozen=True)
class Limits:
    """A dataclass, so that Thinc does not store it with the weights. max_tokens (int): of a
    clause. batch_tokens (int): of the clauses that are predicted at a time."""

    max_tokens: int
    batch_tokens: int


def srl_tagger(
    tok2vec: Tok2VecModel, *, width: int, depth: int, dropout: float, limits: Limits
) -> SRLModel:
    """Make the model. See `build_srl_tagger_v1`."""
    finder: Model = with_array(
        chain(
            Maxout(nO=_FINDER_WIDTH, nP=2, normalize=True, dropout=0.0),
            Linear(nO=1),
        )
    )
    build = partial(RoleEncoder, width=width, depth=depth)
    attrs = {"dropout": Dropout(dropout), "width": width}
    encoder = torch_layer("role_encoder", role_encoder_forward, build, attrs=attrs)
    layers: List[Model] = [tok2vec, finder, encoder, Linear()]
    model: SRLModel = Model(
        "srl_tagger",
        srl_tagger_forward,
        init=srl_tagger_init,
        layers=layers,
        dims={"nO": None},
        attrs={"limits": limits},
    )
    model.set_ref("tok2vec", tok2vec)
    return model


def srl_tagger_forward(
    model: SRLModel, X: Union[Tuple[List[Doc], Choose], List[Doc]], is_train: bool
) -> Tuple[SRLScores, Callable]:
    """X (Union[Tuple[List[Doc], Choose], List[Doc]]): the docs, and what chooses their predicates;
        docs alone, as `spacy debug model` gives them, have none.
    RETURNS (Tuple[SRLScores, Callable]): scores, and the way back to the docs, which takes
    gradients of `predicates` and `tags`."""
    docs, choose = X if isinstance(X, tuple) else (X, _choose_none)
    tok2vec, finder, encoder, output = model.layers
    limits: Limits = model.attrs["limits"]
    rows, backprop_rows = tok2vec(docs, is_train)
    found, backprop_found = finder(rows, is_train)
    predicates = [each[:, 0] for each in found]
    clauses = make_clauses(docs, choose(predicates), limits.max_tokens)
    tags: List[Floats2d] = []
    backprops: List[Callable] = []
    # Gradients want all of a batch at once.
    most_tokens = sum(c.n_tokens for c in clauses) if is_train else limits.batch_tokens
    for part in split_by_size(clauses, get_n_tokens, most_tokens):
        encoded, backprop_encoded = encoder((rows, part), is_train)
        scored, backprop_scored = output(encoded, is_train)
        lengths = model.ops.asarray1i([*map(get_n_tokens, part)])
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


def _choose_none(scores: List[Floats1d]) -> List[List[Place]]:
    return [[] for _ in scores]


def srl_tagger_init(
    model: SRLModel, X: Optional[List[Doc]] = None, Y: Optional[Floats2d] = None
) -> SRLModel:
    """X (Optional[List[Doc]]): some docs. Y (Optional[Floats2d]): anything of shape (n, n_tags)."""
    tok2vec, finder, encoder, output = model.layers
    tok2vec.initialize(X=X)
    nI = find_width(tok2vec, X) if X else tok2vec.get_dim("nO")
    finder.initialize(X=[model.ops.alloc2f(1, nI)], Y=[model.ops.alloc2f(1, 1)])
    n_past = get_past_width(tok2vec)
    set_width(encoder, nI, n_past)
    output.set_dim("nI", encoder.attrs["width"] + n_past, force=True)
    if Y is not None:
        for each in (model, output):
            each.set_dim("nO", Y.shape[1])
    output.initialize()
    return model


def role_encoder_forward(
    model: Model[ClauseRows, Floats2d], X: ClauseRows, is_train: bool
) -> Tuple[Floats2d, Callable[[Floats2d], List[Floats2d]]]:
    """X (ClauseRows): rows of the docs, shape (n_tokens, nI) each, and clauses in them, at least
    one.
    RETURNS (Tuple[Floats2d, Callable]): shape (n_clause_tokens, nO), and the way back to the rows.
    """
    Xs, clauses = X
    rows, marks = find_rows(clauses, [len(rows) for rows in Xs])
    sizes = [clause.n_tokens for clause in clauses]
    dropout = model.attrs["dropout"].rate if is_train else 0.0
    Y, backprop = run_rows(model, Xs, is_train, rows, marks, sizes, dropout=dropout)
    return cast(Floats2d, Y), backprop


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
        ElmoTok2Vec without `encode` is put behind the LSTM.
    width (int): of the LSTM's layers, at least 1.
    depth (int): its layers, at least 1; their directions alternate.
    dropout (float): probability in [0, 1) that a number goes missing between its layers, the same
        ones for all tokens of a sentence. Not driven by [training] dropout.
    max_tokens (int): that are read for a predicate; longer sentences, and docs without sentence
        starts, are cut into windows; at least 2.
    batch_tokens (int): tokens of all clauses that are predicted at a time, at least 1.
    RETURNS (SRLModel): docs and what chooses predicates -> scores.
    RAISES (ValueError): EL012 or EL191 for a value out of range.
    """
    for key, value in (("width", width), ("depth", depth), ("batch_tokens", batch_tokens)):
        require_least(key, value, 1)
    require_least("max_tokens", max_tokens, 2)
    limits = Limits(max_tokens, batch_tokens)
    return srl_tagger(tok2vec, width=width, depth=depth, dropout=dropout, limits=limits)
