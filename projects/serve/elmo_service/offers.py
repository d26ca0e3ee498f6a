"""What a pipeline can be asked for."""

from typing import Any

from spacy.language import Language

_ATTRIBUTES = {
    "tags": {"token.tag", "token.pos", "token.morph", "token.lemma"},
    "entities": {"doc.ents", "token.ent_iob", "token.ent_type"},
}


def find_offers(nlp: Language) -> list[str]:
    """Also the first use of the pipeline, which loads and compiles what later ones need.

    RETURNS (list[str]): of "tags", "entities", "vectors" and "similarity".
    """
    assigned = {name for pipe in nlp.pipe_names for name in nlp.get_pipe_meta(pipe).assigns}
    offers = [name for name, attributes in _ATTRIBUTES.items() if attributes & assigned]
    with nlp.memory_zone():
        (doc,) = nlp.pipe(["A first text."])
        if len(doc.tensor):
            offers += ["vectors", "similarity"]
    return offers


def describe_pipeline(nlp: Language, offers: list[str]) -> dict[str, Any]:
    """RETURNS (dict): what a client may know of it."""
    name = f"{nlp.lang}_{nlp.meta['name']}"
    return {
        "name": name,
        "version": nlp.meta["version"],
        "lang": nlp.lang,
        "components": nlp.pipe_names,
        "offers": offers,
    }
