"""How far what the network says is from the gold answers."""

from typing import List, Optional, Tuple

from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Ops

from .gold_answers import get_gold
from .qa_model import Scores
from .span_table import SpanTable, find_known, get_gradient, make_table


def make_doc_table(ops: Ops, doc: Doc, scores: Scores, max_answer: int) -> SpanTable:
    """ops (Ops): of the model. doc (Doc): with a question and a context. scores (Scores): of at
    least one window. max_answer (int): most tokens of an answer. RETURNS (SpanTable): the scores
    of its spans that start and end with a word."""
    rows = [ops.to_numpy(array) for array in scores.rows]
    return make_table(scores.windows, rows, doc.to_array("IS_SPACE") == 0, max_answer)


def get_doc_loss(
    ops: Ops, example: Example, scores: Scores, max_answer: int
) -> Optional[Tuple[float, List[NDArray]]]:
    """Compare what was said of a doc with its gold answers.

    ops (Ops): of the model.
    example (Example): the doc.
    scores (Scores): what the model says of it.
    max_answer (int): most tokens of an answer.
    RETURNS (Optional[Tuple[float, List[NDArray]]]): the negative log likelihood in nats, and its
        gradient, arrays as `Scores.rows`; None if there is nothing to be learned: no gold, or an
        answer that is no span of the windows.
    RAISES (ValueError): EL199 and EL221 as `get_gold`.
    """
    gold = get_gold(example)
    if gold is None or not scores.windows:
        return None
    table = make_doc_table(ops, example.predicted, scores, max_answer)
    places = find_known(table, gold.places)
    if gold.texts and not places:
        return None
    return get_gradient(table, places)
