"""Two texts in one Doc: a span group for each, which `DocBin` and `to_bytes` keep."""

from typing import List, NamedTuple, Optional, Sequence, Union

from spacy.language import Language
from spacy.tokens import Doc, Span

from ...errors import Errors


class TextPair(NamedTuple):
    """first, second (Span): the two texts; either may be empty."""

    first: Span
    second: Span


def make_pair(
    nlp: Language, first: str, second: str, names: Sequence[str], *, keep_space: bool = False
) -> Doc:
    """Put two texts into one Doc, each tokenized on its own. The second one starts a sentence, so
    that spacy-elmo.sentence_spans.v1 has the biLM read each alone.

    nlp (Language): its tokenizer is used; no component runs.
    first, second (str): the texts, without the whitespace around them.
    names (Sequence[str]): of the two span groups, such as ("premise", "hypothesis").
    keep_space (bool): whether the second text keeps the whitespace around it: then its span has
        the characters that were given.
    RETURNS (Doc): first and second text, with a space between; tokens have the tokenizer's norms.
    """
    second = second if keep_space else second.strip()
    parts = [nlp.make_doc(text) for text in (first.strip(), second)]
    tokens = [token for part in parts for token in part]
    words = [token.text for token in tokens]
    spaces = [bool(token.whitespace_) for token in tokens]
    n_first = len(parts[0])
    if 0 < n_first < len(words):
        spaces[n_first - 1] = True
    starts: List[Union[bool, int, None]] = [i in (0, n_first) for i in range(len(words))]
    doc = Doc(nlp.vocab, words=words, spaces=spaces, sent_starts=starts)
    # What the tokenizer's exceptions say ("not" of "n't"), as a corpus reader's docs have it.
    for token, source in zip(doc, tokens):
        if token.norm != source.norm:
            token.norm_ = source.norm_
    set_pair(doc, n_first, names)
    return doc


def set_pair(doc: Doc, n_first: int, names: Sequence[str]) -> None:
    """Mark the two texts of a doc that has both. The group of an empty text is empty: spaCy can
    make spans without tokens, but not copy them.

    doc (Doc): marked in place.
    n_first (int): tokens of the first text; the others are the second.
    names (Sequence[str]): of the two span groups.
    """
    for name, start, end in zip(names, (0, n_first), (n_first, len(doc))):
        doc.spans[name] = [Span(doc, start, end, label=name)] if start < end else []


def get_pair(doc: Doc, names: Sequence[str]) -> Optional[TextPair]:
    """Find the two texts of a doc.

    doc (Doc): any doc.
    names (Sequence[str]): of the two span groups.
    RETURNS (Optional[TextPair]): None if it has neither group, or words in neither.
    RAISES (ValueError): EL195 if it has one of them alone, or one of several spans.
    """
    groups = {name: list(doc.spans[name]) for name in names if name in doc.spans}
    if not any(groups.values()) and (len(doc) or len(groups) < 2):
        return None
    if len(groups) < 2 or any(len(group) > 1 for group in groups.values()):
        counts = ", ".join(f"'{name}': {len(groups.get(name, ()))}" for name in names)
        raise ValueError(Errors.EL195.format(text=doc.text[:50], counts=counts))
    spans = [
        groups[name][0] if groups[name] else Span(doc, place, place, label=name)
        for name, place in zip(names, (0, len(doc)))
    ]
    return TextPair(*spans)
