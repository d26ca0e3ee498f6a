"""Sentiment: the biattentive classification network for spaCy's `textcat`, and readers of the
Stanford Sentiment Treebank and of labelled lines."""

import re
from functools import partial
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Tuple

import torch
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Linear, Logistic, Model, Softmax, chain
from thinc.types import Floats2d
from torch import Tensor, nn

from ..text.formats import line_error, read_lines
from ..utils import require_least
from .shared.annotations import make_cats, unescape
from .shared.attention import attend, pad, plan_padded, pool_max, pool_mean, pool_weighted
from .shared.bilstm import BiLSTM, require_even
from .shared.torch_layer import Dropout, Tok2VecModel, drop, run_pooled, torch_layer

CLASSES = ("very negative", "negative", "neutral", "positive", "very positive")
BINARY = ("negative", "positive")
# Spaces of other kinds are parts of words, such as that of "10 1/2".
_PIECE = re.compile(r"\(|\)|[^() \t\r\n]+")


def build_textcat_bcn_v1(
    tok2vec: Tok2VecModel,
    exclusive_classes: bool,
    width: int = 200,
    maxout_pieces: int = 4,
    dropout: float = 0.3,
    nO: Optional[int] = None,
) -> Model[List[Doc], Floats2d]:
    """Classify texts by their contextual vectors: a biLSTM encodes them, attention of the text to
    itself adds context, a second biLSTM integrates both, and the pooled output (max, mean, min,
    attention) goes through two maxout layers (the BCN of McCann et al. 2017).

    tok2vec (Tok2VecModel): any; its width may be unknown until the model is initialized.
    exclusive_classes (bool): true for `textcat`, false for `textcat_multilabel`.
    width (int): of both biLSTMs, half for each direction; even.
    maxout_pieces (int): at least 1.
    dropout (float): probability in [0, 1) that an input of a layer is dropped in training. Not
        driven by [training] dropout.
    nO (Optional[int]): number of labels; null to have the component set it.
    RETURNS (Model[List[Doc], Floats2d]): docs -> shape (n_docs, n_labels): probabilities that sum
        to 1, or one probability each.
    RAISES (ValueError): EL012 without pieces, for an odd width or a `dropout` out of range.
    """
    require_even("width", width)
    require_least("maxout_pieces", maxout_pieces, 1)
    build = partial(BCN, width=width, pieces=maxout_pieces)
    attrs = {"dropout": Dropout(dropout)}
    pooled = torch_layer("bcn", bcn_forward, build, nO=width, attrs=attrs)
    output: Model[Floats2d, Floats2d] = (
        Softmax(nO=nO, nI=width)
        if exclusive_classes
        else chain(Linear(nO=nO, nI=width), Logistic())
    )
    model: Model = chain(tok2vec, pooled, output)
    model.set_ref("tok2vec", tok2vec)
    model.set_ref("output_layer", output)
    # Read by `textcat` to see whether the model fits.
    model.attrs["multi_label"] = not exclusive_classes
    return model


def bcn_forward(
    model: Model, Xs: List[Floats2d], is_train: bool
) -> Tuple[Floats2d, Callable[[Floats2d], List[Floats2d]]]:
    """Shapes (n_tokens, nI) -> (n_docs, width), zeros for empty docs."""
    batches = list(plan_padded([len(X) for X in Xs]))
    groups: List = [([(i, (0, len(Xs[i]))) for i in batch], ()) for batch in batches]
    return run_pooled(model, Xs, batches, groups, is_train)


class BCN(nn.Module):
    """A sequence -> one vector (McCann et al. 2017, section 5, for one text, which attends to
    itself; as in Peters et al. 2018, section 4)."""

    def __init__(self, nI: int, width: int, pieces: int) -> None:
        super().__init__()
        self.project = nn.Linear(nI, width)
        self.encode = BiLSTM(width, width)
        self.integrate = BiLSTM(3 * width, width)
        self.attend = nn.Linear(width, 1)
        self.reduce = nn.ModuleList(
            nn.Linear(n_in, n_out * pieces)
            for n_in, n_out in ((4 * width, 2 * width), (2 * width, width))
        )
        self.pieces = pieces

    def forward(self, X: Tensor, lengths: List[int], dropout: float = 0.0) -> Tensor:
        """X (Tensor): shape (n_tokens, nI), texts of lengths of which not all are 0. RETURNS
        (Tensor): shape (n_docs, width)."""
        X = torch.relu(self.project(drop(X, dropout)))
        X = self.encode(drop(X, dropout), lengths)  # (n_tokens, width)
        padded, mask = pad(X, lengths)
        context = attend(padded, padded, mask, mask)[mask]  # (n_tokens, width)
        joined = torch.cat([X, X - context, X * context], dim=1)
        X = drop(self.integrate(drop(joined, dropout), lengths), dropout)
        padded, mask = pad(X, lengths)
        weighted = pool_weighted(padded, self.attend(padded).squeeze(2), mask)
        pools = [pool_max(padded, mask), pool_mean(padded, mask), -pool_max(-padded, mask)]
        Y = torch.cat([*pools, weighted], dim=1)  # (n_docs, 4 * width)
        for layer in self.reduce:
            Y = layer(drop(Y, dropout)).unflatten(1, (-1, self.pieces)).amax(dim=2)
        return drop(Y, dropout)


def read_sst(
    nlp: Language, path: Path, *, binary: bool = False, phrases: bool = False
) -> Iterator[Doc]:
    """Read trees such as `(3 (2 It) (4 (2 's) (4 good)))`, one in a line.

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    binary (bool): write two classes, and leave neutral texts out.
    phrases (bool): make a Doc for each phrase, too: for training, not for dev and test. A phrase
        that a tree has several times is used once.
    YIELDS (Doc): with `cats`.
    """
    for number, text in read_lines(path):
        if not text.strip():
            continue
        try:
            tree = parse_tree(text)
        except ValueError as err:
            raise line_error(path, number, str(err)) from err
        for rating, words in dict.fromkeys(tree if phrases else tree[:1]):
            if not (binary and rating == 2):
                doc = Doc(nlp.vocab, words=list(words))
                right = BINARY[rating > 2] if binary else CLASSES[rating]
                doc.cats = make_cats(BINARY if binary else CLASSES, right)
                yield doc


def parse_tree(text: str) -> List[Tuple[int, Tuple[str, ...]]]:
    """Rating and words of the subtrees of a tree, the whole first."""
    phrases: List[Tuple[int, List[str]]] = []
    opened: List[Tuple[int, List[str]]] = []
    pieces = iter(_PIECE.findall(text))
    for piece in pieces:
        if not opened and (phrases or piece != "("):
            raise ValueError(f"'{piece}' is outside of the tree")
        if piece == "(":
            rating = next(pieces, "")
            if rating not in set("01234"):
                raise ValueError(f"'{rating}' is not a rating from 0 to 4")
            opened.append((int(rating), []))
            phrases.append(opened[-1])
        elif piece == ")":
            opened.pop()
        else:
            for _, words in opened:
                words.append(unescape(piece))
    if opened or not all(words for _, words in phrases):
        raise ValueError("the tree is not complete")
    return [(rating, tuple(words)) for rating, words in phrases]


def read_labelled_lines(nlp: Language, path: Path) -> Iterator[Doc]:
    """Read lines of a label, a tab and a text. All labels of a file are in all `cats`.

    nlp (Language): its tokenizer is used.
    path (Path): plain or compressed; read twice.
    YIELDS (Doc): with `cats`.
    """
    labels = sorted({label for label, _ in _read_labels(path)})
    for label, text in _read_labels(path):
        doc = nlp.make_doc(text)
        doc.cats = make_cats(labels, label)
        yield doc


def _read_labels(path: Path) -> Iterator[Tuple[str, str]]:
    for number, line in read_lines(path):
        if line.strip():
            label, tab, text = line.partition("\t")
            if not tab or not label.strip() or not text.strip():
                raise line_error(path, number, f"'{line[:50]}' is not a label, a tab and a text")
            yield label.strip(), text.strip()
