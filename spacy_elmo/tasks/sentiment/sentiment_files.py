"""Sentiment: the trees of the Stanford Sentiment Treebank, and texts with a label before them."""

import re
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

from spacy.language import Language
from spacy.tokens import Doc

from ...text.formats import line_error, read_lines
from ..shared.categories import make_cats
from ..shared.penn_words import unescape

CLASSES = ("very negative", "negative", "neutral", "positive", "very positive")
BINARY = ("negative", "positive")
# Spaces of other kinds are parts of words, such as that of "10 1/2".
_PIECE = re.compile(r"\(|\)|[^() \t\r\n]+")


class Phrase(NamedTuple):
    """A subtree. rating (int): 0 to 4. words (List[str])."""

    rating: int
    words: List[str]


def read_sst(
    nlp: Language, path: Path, *, binary: bool = False, phrases: bool = False
) -> Iterator[Doc]:
    """Read trees such as `(3 (2 It) (4 (2 's) (4 good)))`, one in a line.

    nlp (Language): for its vocabulary.
    path (Path): plain or compressed.
    binary (bool): two classes, without what is neutral.
    phrases (bool): a Doc for each phrase too, as one trains on; not for dev and test. A phrase
        that a tree has several times comes once.
    YIELDS (Doc): with `cats`.
    RAISES (ValueError): EL197 for a line that is no tree.
    """
    for number, text in read_lines(path):
        if not text.strip():
            continue
        try:
            tree = parse_tree(text)
        except ValueError as err:
            raise line_error(path, number, str(err)) from err
        chosen = {(p.rating, tuple(p.words)): p for p in (tree if phrases else tree[:1])}
        for phrase in chosen.values():
            cats = _rate(phrase.rating, binary)
            if cats is not None:
                doc = Doc(nlp.vocab, words=phrase.words)
                doc.cats = cats
                yield doc


def parse_tree(text: str) -> List[Phrase]:
    """text (str): a tree. RETURNS (List[Phrase]): its subtrees, the whole first. RAISES
    (ValueError): with a clause for a message, if it is none."""
    phrases: List[Phrase] = []
    opened: List[Phrase] = []
    pieces = iter(_PIECE.findall(text))
    for piece in pieces:
        if phrases and not opened:
            raise ValueError(f"'{piece}' stands behind the tree")
        if piece == "(":
            rating = next(pieces, "")
            if rating not in set("01234"):
                raise ValueError(f"'{rating}' is no rating from 0 to 4")
            opened.append(Phrase(int(rating), []))
            phrases.append(opened[-1])
        elif not opened:
            raise ValueError(f"'{piece}' stands where a tree should begin with '('")
        elif piece == ")":
            opened.pop()
        else:
            for phrase in opened:
                phrase.words.append(unescape(piece))
    if opened or not phrases or not all(phrase.words for phrase in phrases):
        raise ValueError("the tree is not whole")
    return phrases


def _rate(rating: int, binary: bool) -> Optional[dict]:
    if not binary:
        return make_cats(CLASSES, CLASSES[rating])
    return None if rating == 2 else make_cats(BINARY, BINARY[rating > 2])


def read_labelled_lines(nlp: Language, path: Path) -> Iterator[Doc]:
    """Read lines of a label, a tab and a text. All labels of a file are in all `cats`.

    nlp (Language): its tokenizer is used.
    path (Path): plain or compressed; read twice.
    YIELDS (Doc): with `cats`.
    RAISES (ValueError): EL197 for a line without a label.
    """
    labels = sorted({label for label, _ in _read_labels(path)})
    for label, text in _read_labels(path):
        doc = nlp.make_doc(text)
        doc.cats = make_cats(labels, label)
        yield doc


def _read_labels(path: Path) -> Iterator[tuple]:
    for number, line in read_lines(path):
        if line.strip():
            label, tab, text = line.partition("\t")
            if not tab or not label.strip() or not text.strip():
                problem = f"'{line[:50]}' is not a label, a tab and a text"
                raise line_error(path, number, problem)
            yield label.strip(), text.strip()
