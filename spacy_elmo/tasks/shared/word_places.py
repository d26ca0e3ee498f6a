"""`find_places`: where the words of a text stand, whoever cut it into tokens."""

from typing import List

from spacy.tokens import Doc


def find_places(doc: Doc) -> List[int]:
    """Count characters without whitespace: so that two tokenizers agree, and a doc made of words
    with a doc made of text.

    doc (Doc): any doc.
    RETURNS (List[int]): where each token begins, and the end of the last one.
    """
    places = [0]
    for token in doc:
        places.append(places[-1] + len("".join(token.text.split())))
    return places
