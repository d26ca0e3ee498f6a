"""`QABiDAF`: readings of docs -> scores of their windows."""

from functools import partial
from itertools import accumulate
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple, Union, cast

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ...errors import Errors
from ..shared.bilstm import require_even
from ..shared.dropout import Dropout
from ..shared.padded_batches import plan_padded
from ..shared.places import Place
from ..shared.torch_layer import init_past_reader, run_rows, torch_layer
from ..shared.word_matches import find_matches
from .bidaf import BiDAF
from .qa_readings import QAReading

Tok2VecModel = Model[List[Doc], List[Floats2d]]


class Scores(NamedTuple):
    """What the network says of a doc.

    windows (List[Place]): what was read.
    rows (List[Floats2d]): for each window, shape (n_tokens + 1, 2): start and end of each token;
        in the last row the no-answer score and 0.
    """

    windows: List[Place]
    rows: List[Floats2d]


QAModel = Model[List[QAReading], List[Scores]]


class _Part(NamedTuple):
    """A window: the doc's number, its question, the window, its number in the doc."""

    doc: int
    question: Place
    window: Place
    number: int


def build_qa_bidaf_v1(
    tok2vec: Tok2VecModel,
    width: int = 128,
    self_attention: bool = True,
    dropout: float = 0.2,
    word_match: bool = False,
) -> QAModel:
    """Find answers by bidirectional attention flow (Seo et al. 2017), with the self-attention and
    the no-answer score of Clark & Gardner 2018.

    tok2vec (Tok2VecModel): any; its width may be unknown until the model is initialized. The
        `output` of an ElmoTok2Vec without `encode` is put behind the first biLSTM.
    width (int): of the encodings, half for each direction; even.
    self_attention (bool): whether contexts read themselves, too.
    dropout (float): probability in [0, 1) that an input of a layer is dropped in training. Not
        driven by [training] dropout.
    word_match (bool): whether the network is told which words stand in question and context, too,
        as FastQA is (Weissenborn et al. 2017, section 3.1).
    RETURNS (QAModel): what is to be read of docs -> scores of starts and ends.
    RAISES (ValueError): EL192 for an odd width, EL191 for a `dropout` out of range.
    """
    require_even("width", width)
    build = partial(BiDAF, width=width, self_attention=self_attention, word_match=word_match)
    bidaf = torch_layer("bidaf_rows", run_rows, build, nO=2, attrs={"dropout": Dropout(dropout)})
    model: QAModel = Model("bidaf", bidaf_forward, init=bidaf_init, layers=[tok2vec, bidaf])
    model.set_ref("tok2vec", tok2vec)
    return model


def build_qa_bidaf_v2(
    tok2vec: Tok2VecModel,
    width: int = 128,
    self_attention: bool = True,
    dropout: float = 0.2,
    word_match: bool = True,
) -> QAModel:
    """As `build_qa_bidaf_v1`, but told which words stand in both texts unless a config says
    otherwise."""
    return build_qa_bidaf_v1(tok2vec, width, self_attention, dropout, word_match)


def bidaf_init(model: QAModel, X: Optional[List[QAReading]] = None, Y: Any = None) -> QAModel:
    """X (Optional[List[QAReading]]): some readings; their windows do not matter."""
    return init_past_reader(model, None if X is None else [reading.doc for reading in X])


def bidaf_forward(
    model: QAModel, X: Union[List[QAReading], List[Doc]], is_train: bool
) -> Tuple[List[Scores], Callable]:
    """X (Union[List[QAReading], List[Doc]]): any; those without windows, and docs alone, as
        `spacy debug model` gives them, get no scores.
    RETURNS (Tuple[List[Scores], Callable]): the scores, and the way back from arrays of the same
        shapes, List[List[Floats2d]].
    RAISES (ValueError): EL190 if the model was never initialized or loaded.
    """
    tok2vec, bidaf = model.layers
    if not bidaf.has_dim("nI"):
        raise ValueError(Errors.EL190)
    readings = [QAReading(x, (0, 0), []) if isinstance(x, Doc) else x for x in X]
    vectors, backprop_vectors = tok2vec([reading.doc for reading in readings], is_train)
    scores = [Scores(r.windows, [cast(Any, None)] * len(r.windows)) for r in readings]
    dropout = bidaf.attrs["dropout"].rate if is_train else 0.0
    ways_back = []
    for parts in _batch(readings):
        slices = _find_slices(parts)
        Xs = [vectors[i][start:end] for i, (start, end) in slices]
        matches = find_matches([(readings[p.doc].doc, p.question, p.window) for p in parts])
        Y, backprop_rows = run_rows(bidaf, Xs, is_train, matches, dropout=dropout)
        for part, rows in zip(parts, _split(model, cast(Floats2d, Y), parts)):
            scores[part.doc].rows[part.number] = rows
        if is_train:
            ways_back.append((parts, slices, backprop_rows))

    def backprop(d_rows: List[List[Floats2d]]) -> List[Doc]:
        d_vectors = [model.ops.alloc2f(*vector.shape) for vector in vectors]
        for parts, slices, backprop_rows in ways_back:
            dY = _join(model, [d_rows[part.doc][part.number] for part in parts])
            for (i, (start, end)), dX in zip(slices, backprop_rows(dY)):
                d_vectors[i][start:end] += dX
        return backprop_vectors(d_vectors)

    return scores, backprop


def _batch(readings: List[QAReading]) -> Iterator[List[_Part]]:
    """Windows of about the same length together, in bounded memory."""
    parts = [
        _Part(i, reading.question, window, k)
        for i, reading in enumerate(readings)
        for k, window in enumerate(reading.windows)
    ]
    lengths = [part.window[1] - part.window[0] for part in parts]
    for group in plan_padded(lengths):
        yield [parts[i] for i in group]


def _find_slices(parts: List[_Part]) -> List[Tuple[int, Place]]:
    """RETURNS (List[Tuple[int, Place]]): Doc and tokens of all questions, then of all windows."""
    return [(p.doc, p.question) for p in parts] + [(p.doc, p.window) for p in parts]


def _split(model: Model, Y: Floats2d, parts: List[_Part]) -> List[Floats2d]:
    """Y (Floats2d): of the module, the no-answer scores last. RETURNS (List[Floats2d]): Rows of
    each window, that score last."""
    xp, n = model.ops.xp, len(parts)
    ends = [*accumulate(end - start for start, end in (part.window for part in parts))]
    tokens = xp.split(Y, ends)[:n]
    return [
        xp.concatenate([rows, Y[ends[-1] + i : ends[-1] + i + 1]]) for i, rows in enumerate(tokens)
    ]


def _join(model: Model, rows: List[Floats2d]) -> Floats2d:
    """The way back of `_split`."""
    return model.ops.xp.concatenate([*(each[:-1] for each in rows), *(each[-1:] for each in rows)])
