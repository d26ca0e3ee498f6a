"""Two texts in one Doc: a span group for each, which `DocBin` and `to_bytes` keep; and which words
both have."""

from typing import List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from torch import Tensor, nn

from ...errors import Errors
from .annotations import Place

# Numbers that tell a network whether a token's word is in both texts.
MATCH_WIDTH = 32
# For tokens that are not words: no form but "" has this hash.
_NO_WORD = 0


class TextPair(NamedTuple):
    """Two texts; either may be empty."""

    first: Span
    second: Span


def make_pair(
    nlp: Language, first: str, second: str, names: Sequence[str], *, keep_space: bool = False
) -> Doc:
    """Put two texts into one Doc, tokenized separately and without whitespace around them. The
    second one starts a sentence, so that spacy-elmo.sentence_spans.v1 has the biLM read each alone.
    names (Sequence[str]): of the two span groups. keep_space (bool): keep the whitespace around the
    second text, so that its span has the characters of the original."""
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
    # Norms of the tokenizer's exceptions ("not" of "n't"), as a corpus reader's docs have them.
    for token, source in zip(doc, tokens):
        if token.norm != source.norm:
            token.norm_ = source.norm_
    # The group of an empty text is empty: spaCy cannot copy spans without tokens.
    for name, start, end in zip(names, (0, n_first), (n_first, len(doc))):
        doc.spans[name] = [Span(doc, start, end, label=name)] if start < end else []
    return doc


def get_pair(doc: Doc, names: Sequence[str]) -> Optional[TextPair]:
    """Find the two texts of a doc: None if it has neither span group, or words in neither. RAISES
    (ValueError): EL195 if it has only one of them, or one of several spans."""
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


def find_matches(parts: Sequence[Tuple[Doc, Place, Place]]) -> List[bool]:
    """Find the words that the two texts of each doc have in common, ignoring case (Weissenborn et
    al. 2017, section 3.1): a flag for each token of all first texts, then of all second ones."""
    matches: Tuple[List[bool], List[bool]] = ([], [])
    for doc, *places in parts:
        A, B = (
            [_NO_WORD if t.is_punct or t.is_space else t.lower for t in doc[start:end]]
            for start, end in places
        )
        shared = {*A} & {*B} - {_NO_WORD}
        matches[0].extend(word in shared for word in A)
        matches[1].extend(word in shared for word in B)
    return matches[0] + matches[1]


def add_matches(
    embedding: nn.Embedding, matches: Sequence[bool], X: Tensor
) -> Tuple[Tensor, Tensor]:
    """Prepend `find_matches` to X, shape (n_tokens, nI), whose last numbers may skip an encoder.
    Returns also the part that was added."""
    M = embedding(torch.tensor(matches, dtype=torch.long, device=X.device))
    return torch.cat([M, X], dim=1), M
