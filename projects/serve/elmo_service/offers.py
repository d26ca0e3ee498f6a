"""What a pipeline can be asked for."""

from typing import Any

from spacy.language import Language

_ATTRIBUTES = {
    "tags": {"token.tag", "token.pos", "token.morph", "token.lemma"},
    "entities": {"doc.ents", "token.ent_iob", "token.ent_type"},
}


def find_offers(nlp: Language) -> tuple[list[str], int]:
    """Also the first use of the pipeline, which loads and compiles what later ones need.

    RETURNS (tuple): of "tags", "entities", "vectors" and "similarity"; the width of vectors, 0 if
        there are none.
    """
    assigned = {name for pipe in nlp.pipe_names for name in nlp.get_pipe_meta(pipe).assigns}
    offers = [name for name, attributes in _ATTRIBUTES.items() if attributes & assigned]
    with nlp.memory_zone():
        (doc,) = nlp.pipe(["A first text."])
        # spaCy's `doc_cleaner` takes the tensor away.
        width = doc.tensor.shape[-1] if doc.tensor is not None and len(doc.tensor) else 0
    return offers + (["vectors", "similarity"] if width else []), width


def describe_pipeline(nlp: Language, offers: list[str], width: int) -> dict[str, Any]:
    """RETURNS (dict): what a client may know of it."""
    name = f"{nlp.lang}_{nlp.meta['name']}"
    return {
        "name": name,
        "version": nlp.meta["version"],
        "lang": nlp.lang,
        "components": nlp.pipe_names,
        "offers": offers,
        "width": width,
    }
