"""Sentences of published data -> a Doc."""

from typing import Any, List, Sequence, cast

from spacy.language import Language
from spacy.tokens import Doc


def make_doc(nlp: Language, sentences: Sequence[Sequence[str]], **annotations: Any) -> Doc:
    """nlp (Language): for its vocabulary. sentences (Sequence[Sequence[str]]): words of each.
    **annotations (Any): what else `Doc` takes, such as `spaces`. RETURNS (Doc): with sentence
    starts."""
    words = [word for sentence in sentences for word in sentence]
    starts: List[bool] = [i == 0 for sentence in sentences for i in range(len(sentence))]
    # spaCy's annotation has a list that is not covariant.
    return Doc(nlp.vocab, words=words, sent_starts=cast(Any, starts), **annotations)
