"""ESIM: two texts are encoded, aligned, compared and composed (Chen et al. 2017)."""

from functools import partial
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, cast

import torch
from spacy.tokens import Doc
from thinc.api import Model, Softmax, chain
from thinc.types import Floats2d
from torch import Tensor, nn

from ..shared.attention import align, pad, pool_max, pool_mean
from ..shared.bilstm import BiLSTM, EncoderWithPast, require_even
from ..shared.dropout import Dropout, drop
from ..shared.padded_batches import plan_padded
from ..shared.places import Place
from ..shared.text_pairs import TextPair, get_pair
from ..shared.torch_layer import init_past_reader, run_rows, torch_layer
from ..shared.wide_linear import map_parts
from ..shared.word_matches import MATCH_WIDTH, add_matches, find_matches
from .nli_files import PAIR_NAMES

Tok2VecModel = Model[List[Doc], List[Floats2d]]
EntailmentModel = Model[List[Doc], Floats2d]


class ESIM(nn.Module):
    """Two sequences -> one vector (Chen et al. 2017, sections 3.1 to 3.3, the sequential model),
    with the words in question of Weissenborn et al. 2017.

    nI (int): width of a token.
    n_past (int): its last numbers, which go past the first encoder.
    width (int): of the encodings of both directions together, and of the vector.
    word_match (bool): whether it is known which words stand in both texts.
    """

    def __init__(self, nI: int, n_past: int = 0, *, width: int, word_match: bool) -> None:
        super().__init__()
        n_match = MATCH_WIDTH if word_match else 0
        self.match: Optional[nn.Embedding] = nn.Embedding(2, n_match) if word_match else None
        self.encode = EncoderWithPast(n_match + nI, n_past, width)
        self.project = nn.Linear(4 * (width + n_past) + n_match, width)
        self.compose = BiLSTM(width, width)
        self.output = nn.Linear(4 * width, width)

    def forward(
        self, X: Tensor, lengths: List[int], matches: Sequence[bool], dropout: float = 0.0
    ) -> Tensor:
        """X (Tensor): shape (n_tokens, nI): all first texts, then all second ones. lengths
        (List[int]): 2 * n_pairs of them. matches (Sequence[bool]): for each token whether its
        word stands in both texts; not read without `word_match`. dropout (float): before each
        layer of weights.
        RETURNS (Tensor): shape (n_pairs, width)."""
        n_pairs = len(lengths) // 2
        X, more = drop(X, dropout), []
        if self.match is not None:
            X, M = add_matches(self.match, matches, X)
            more = [M]
        X = self.encode(X, lengths)  # (n_tokens, width + n_past)
        padded, mask = pad(X, lengths)  # (2 * n_pairs, longest, width + n_past)
        A, B = padded.split(n_pairs)
        other = torch.cat(align(A, B, *mask.split(n_pairs)))[mask]  # as X
        compared = [X, other, X - other, X * other, *more]
        X = torch.relu(map_parts(self.project, compared, dropout))
        padded, mask = pad(self.compose(drop(X, dropout), lengths), lengths)
        pooled = torch.cat([pool_mean(padded, mask), pool_max(padded, mask)], dim=1)
        both = torch.cat(pooled.split(n_pairs), dim=1)  # (n_pairs, 4 * width)
        return drop(torch.tanh(self.output(drop(both, dropout))), dropout)


def build_entailment_esim_v1(
    tok2vec: Tok2VecModel,
    width: int = 200,
    dropout: float = 0.3,
    nO: Optional[int] = None,
    word_match: bool = False,
) -> EntailmentModel:
    """Classify pairs of texts by ESIM (Chen et al. 2017).

    tok2vec (Tok2VecModel): any; its width may be unknown until the model is initialized. The
        `output` of an ElmoTok2Vec without `encode` is put behind the first biLSTM.
    width (int): of the encodings, half for each direction; even. The paper's is 600.
    dropout (float): probability in [0, 1) that an input of a layer is dropped in training. Not
        driven by [training] dropout.
    nO (Optional[int]): number of labels; null to have the component set it.
    word_match (bool): whether the network is told which words stand in both texts, as FastQA is
        (Weissenborn et al. 2017, section 3.1).
    RETURNS (EntailmentModel): docs -> probabilities of shape (n_docs, n_labels); of docs without
        a pair, those of two texts without tokens.
    RAISES (ValueError): EL192 for an odd width, EL191 for a `dropout` out of range.
    """
    require_even("width", width)
    attrs = {"dropout": Dropout(dropout)}
    build = partial(ESIM, width=width, word_match=word_match)
    esim = torch_layer("esim_rows", run_rows, build, nO=width, attrs=attrs)
    pairs: Model = Model(
        "esim", esim_forward, init=init_past_reader, layers=[tok2vec, esim], dims={"nO": width}
    )
    model = chain(pairs, Softmax(nO=nO, nI=width))
    model.set_ref("tok2vec", tok2vec)
    return model


def build_entailment_esim_v2(
    tok2vec: Tok2VecModel,
    width: int = 200,
    dropout: float = 0.3,
    nO: Optional[int] = None,
    word_match: bool = True,
) -> EntailmentModel:
    """As `build_entailment_esim_v1`, but told which words stand in both texts unless a config says
    otherwise."""
    return build_entailment_esim_v1(tok2vec, width, dropout, nO, word_match)


def esim_forward(model: Model, docs: List[Doc], is_train: bool) -> Tuple[Floats2d, Callable]:
    """docs (List[Doc]): any; those without a pair get zeros, and pairs without tokens.
    RETURNS (Tuple[Floats2d, Callable]): shape (n_docs, width), and the way back.
    """
    tok2vec, esim = model.layers
    vectors, backprop_vectors = tok2vec(docs, is_train)
    found = enumerate(get_pair(doc, PAIR_NAMES) for doc in docs)
    # What is said of two empty texts is the same beside others and alone.
    places = {i: _get_places(p) for i, p in found if p is not None and any(map(len, p))}
    Y: Any = model.ops.alloc2f(len(docs), model.get_dim("nO"))
    dropout = esim.attrs["dropout"].rate if is_train else 0.0
    ways_back = []
    for batch in _batch(places):
        # All first texts, then all second ones.
        slices = [(i, slice(*places[i][side])) for side in (0, 1) for i in batch]
        Xs = [vectors[i][where] for i, where in slices]
        matches = find_matches([(docs[i], *places[i]) for i in batch])
        Y[batch], backprop_rows = run_rows(esim, Xs, is_train, matches, dropout=dropout)
        if is_train:
            ways_back.append((batch, slices, backprop_rows))

    def backprop(dY: Floats2d) -> List[Doc]:
        dvectors = [model.ops.alloc2f(*vector.shape) for vector in vectors]
        for batch, slices, backprop_rows in ways_back:
            for (i, where), dX in zip(slices, backprop_rows(cast(Any, dY)[batch])):
                dvectors[i][where] += dX
        return backprop_vectors(dvectors)

    return Y, backprop


def _batch(places: "dict[int, Tuple[Place, Place]]") -> Iterator[List[int]]:
    """RETURNS (Iterator[List[int]]): Numbers of docs whose pairs are read together."""
    rows = list(places)
    longest = [max(end - start for start, end in pair) for pair in places.values()]
    for group in plan_padded([2 * length for length in longest]):
        yield [rows[i] for i in group]


def _get_places(pair: TextPair) -> Tuple[Place, Place]:
    first, second = ((text.start, text.end) for text in pair)
    return first, second
