"""ESIM: two texts are encoded, aligned, compared and composed (Chen et al. 2017)."""

from functools import partial
from typing import Callable, List, Optional, Sequence, Tuple

import torch
from spacy.tokens import Doc
from thinc.api import Model, Softmax, chain
from thinc.types import Floats2d
from torch import Tensor, nn

from ...utils import with_defaults
from ..shared.attention import attend, map_parts, pad, plan_padded, pool_max, pool_mean
from ..shared.bilstm import BiLSTM, SkipEncoder, require_even
from ..shared.text_pairs import MATCH_WIDTH, add_matches, find_matches, get_pair
from ..shared.torch_layer import (
    Dropout,
    Tok2VecModel,
    drop,
    init_reader,
    run_pooled,
    run_rows,
    torch_layer,
)
from .readers import PAIR_NAMES

EntailmentModel = Model[List[Doc], Floats2d]


def build_entailment_esim_v1(
    tok2vec: Tok2VecModel,
    width: int = 200,
    dropout: float = 0.3,
    nO: Optional[int] = None,
    word_match: bool = False,
) -> EntailmentModel:
    """Classify pairs of texts by ESIM (Chen et al. 2017).

    tok2vec (Tok2VecModel): any; its width may be unknown until the model is initialized. The
        `output` of an ElmoTok2Vec without `encode` is appended to the output of the first biLSTM.
    width (int): of the encodings, half for each direction; even. The paper's is 600.
    dropout (float): probability in [0, 1) that an input of a layer is dropped in training. Not
        driven by [training] dropout.
    nO (Optional[int]): number of labels; null to have the component set it.
    word_match (bool): whether the network gets which words are in both texts, as in FastQA
        (Weissenborn et al. 2017, section 3.1).
    RETURNS (EntailmentModel): docs -> probabilities of shape (n_docs, n_labels); of docs without
        a pair, those of two texts without tokens.
    RAISES (ValueError): EL012 for an odd width, or a `dropout` out of range.
    """
    require_even("width", width)
    attrs = {"dropout": Dropout(dropout)}
    build = partial(ESIM, width=width, word_match=word_match)
    esim = torch_layer("esim_rows", run_rows, build, nO=width, attrs=attrs)
    pairs: Model = Model(
        "esim", esim_forward, init=init_reader, layers=[tok2vec, esim], dims={"nO": width}
    )
    model = chain(pairs, Softmax(nO=nO, nI=width))
    model.set_ref("tok2vec", tok2vec)
    return model


build_entailment_esim_v2 = with_defaults(build_entailment_esim_v1, word_match=True)


def esim_forward(model: Model, docs: List[Doc], is_train: bool) -> Tuple[Floats2d, Callable]:
    """Docs -> shape (n_docs, width); zeros for docs without a pair, and pairs without tokens."""
    tok2vec, esim = model.layers
    vectors, backprop_vectors = tok2vec(docs, is_train)
    pairs = {i: pair for i, doc in enumerate(docs) if (pair := get_pair(doc, PAIR_NAMES))}
    places = {i: ((a.start, a.end), (b.start, b.end)) for i, (a, b) in pairs.items()}
    rows = list(places)
    lengths = [2 * max(end - start for start, end in pair) for pair in places.values()]
    batches = [[rows[i] for i in group] for group in plan_padded(lengths)]
    groups = []
    for batch in batches:
        # All first texts, then all second ones.
        slices = [(i, places[i][side]) for side in (0, 1) for i in batch]
        groups.append((slices, (find_matches([(docs[i], *places[i]) for i in batch]),)))
    Y, backprop = run_pooled(esim, vectors, batches, groups, is_train)
    return Y, lambda dY: backprop_vectors(backprop(dY))


class ESIM(nn.Module):
    """Two sequences -> one vector (Chen et al. 2017, sections 3.1 to 3.3, the sequential model),
    with the shared words of Weissenborn et al. 2017. nI (int): width of a token, of which
    `skip_width` numbers skip the first encoder."""

    def __init__(self, nI: int, skip_width: int = 0, *, width: int, word_match: bool) -> None:
        super().__init__()
        n_match = MATCH_WIDTH if word_match else 0
        self.match: Optional[nn.Embedding] = nn.Embedding(2, n_match) if word_match else None
        self.encode = SkipEncoder(n_match + nI, skip_width, width)
        self.project = nn.Linear(4 * (width + skip_width) + n_match, width)
        self.compose = BiLSTM(width, width)
        self.output = nn.Linear(4 * width, width)

    def forward(
        self, X: Tensor, lengths: List[int], matches: Sequence[bool], dropout: float = 0.0
    ) -> Tensor:
        """X (Tensor): shape (n_tokens, nI): all first texts, then all second ones, of 2 * n_pairs
        lengths. matches (Sequence[bool]): see `find_matches`. RETURNS (Tensor): shape (n_pairs,
        width)."""
        n_pairs = len(lengths) // 2
        X, more = drop(X, dropout), []
        if self.match is not None:
            X, M = add_matches(self.match, matches, X)
            more = [M]
        X = self.encode(X, lengths)  # (n_tokens, width + skip_width)
        padded, mask = pad(X, lengths)  # (2 * n_pairs, longest, width + skip_width)
        (A, B), (mask_a, mask_b) = padded.split(n_pairs), mask.split(n_pairs)
        other = torch.cat([attend(A, B, mask_a, mask_b), attend(B, A, mask_b, mask_a)])[mask]
        compared = [X, other, X - other, X * other, *more]
        X = torch.relu(map_parts(self.project, compared, dropout))
        padded, mask = pad(self.compose(drop(X, dropout), lengths), lengths)
        pooled = torch.cat([pool_mean(padded, mask), pool_max(padded, mask)], dim=1)
        both = torch.cat(pooled.split(n_pairs), dim=1)  # (n_pairs, 4 * width)
        return drop(torch.tanh(self.output(drop(both, dropout))), dropout)
