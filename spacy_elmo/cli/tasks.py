"""`python -m spacy elmo tasks`: print the results of a pipeline's components for a text."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional

import typer

from .common import exit_on_error, require_output
from .options import HTML, QUIET, TRAINED

if TYPE_CHECKING:
    from spacy.language import Language

    from ..explore.sections import Section

_QA, _ENTAILMENT = "elmo_qa", "elmo_entailment"
_OPTIONS = {_QA: "--question TEXT", _ENTAILMENT: "--hypothesis TEXT"}


def tasks(
    pipeline: str = TRAINED,
    text: str = typer.Argument(..., help="The text, or - for the standard input"),
    question: List[str] = typer.Option(
        [], help="Question about the text, for elmo_qa; may be repeated", show_default="none"
    ),
    hypothesis: List[str] = typer.Option(
        [],
        help="Sentence that may follow from the text, for elmo_entailment; may be repeated",
        show_default="none",
    ),
    html: Optional[Path] = HTML,
    quiet: bool = QUIET,
) -> None:
    """Print the tags, entities, spans, categories, roles, coreference chains and answers that a
    trained pipeline finds in a text, and draw them with displaCy."""
    from ..explore.sections import render_tasks
    from ..files import write_file
    from ..pipeline.saving import load_pipeline
    from ..text.corpus import STDIN, read_stdin

    with exit_on_error(quiet) as console:
        require_output(html)
        nlp = load_pipeline(pipeline)
        content = (read_stdin() if text == STDIN else text).strip()
        sections = _describe(nlp, content, question, hypothesis)
        for section in sections:
            console.show_title(section.title)
            console.show("\n".join(section.lines) or "nothing")
        if html is not None:
            page = render_tasks(content[:60], sections)
            write_file(html, page.encode("utf-8"))
        console.finish(html)


def _describe(
    nlp: "Language", text: str, questions: List[str], hypotheses: List[str]
) -> "List[Section]":
    from ..explore.sections import (
        describe_answers,
        describe_doc,
        describe_entailment,
        describes_docs,
        find_all,
    )

    pipes: Dict[str, Any] = {nlp.get_pipe_meta(name).factory: pipe for name, pipe in nlp.pipeline}
    known = ", ".join(nlp.pipe_names) or "none"
    for name, asked in ((_QA, questions), (_ENTAILMENT, hypotheses)):
        if asked and name not in pipes:
            raise ValueError(
                f"Cannot answer '{asked[0]}': the pipeline has no component {name}. Its components "
                f"are: {known}. Give a pipeline that has one."
            )
    find_all(nlp)
    # Components of pairs alone need no sentences, or whatever else others would.
    sections = describe_doc(nlp(text), nlp) if describes_docs(pipes) else []
    sections += [describe_answers(pipes[_QA], nlp, question, text) for question in questions]
    sections += [describe_entailment(pipes[_ENTAILMENT], nlp, text, h) for h in hypotheses]
    if not sections:
        if options := [option for name, option in _OPTIONS.items() if name in pipes]:
            raise ValueError(
                f"The pipeline ({known}) needs a question or a second text. Add "
                f"{' or '.join(options)}."
            )
        raise ValueError(
            f"No component of the pipeline has results to show; its components are: {known}. To "
            "train such components, see the page 'Tasks' of the documentation."
        )
    return sections
