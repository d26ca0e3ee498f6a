"""What the components of a pipeline found in each line of a text, drawn by displaCy."""

from typing import Any, Dict, List

from spacy.language import Language
from spacy.tokens import Doc

from .safe_markup import parse_markup
from .task_sections import describe_doc


def draw_docs(nlp: Language, docs: List[Doc]) -> List[Dict[str, Any]]:
    """Draw the sections of `elmo tasks`.

    nlp (Language): the pipeline.
    docs (List[Doc]): one for each line, which went through it.
    RETURNS (List[Dict[str, Any]]): of each component that says something its "title" and its
        "lines": of each doc its "items", and "drawing", an `Element`, or None for nothing to
        draw.
    """
    of_docs = [describe_doc(doc, nlp) for doc in docs]
    return [
        {
            "title": sections[0].title,
            "lines": [
                {
                    "items": section.lines,
                    "drawing": parse_markup(section.html) if section.html else None,
                }
                for section in sections
            ],
        }
        for sections in zip(*of_docs)
    ]


def list_factories(nlp: Language) -> List[str]:
    """nlp (Language): a pipeline. RETURNS (List[str]): of its components, in their order."""
    return [nlp.get_pipe_meta(name).factory for name in nlp.pipe_names]
