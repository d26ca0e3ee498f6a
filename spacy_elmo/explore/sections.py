"""Results of a pipeline's components for a text, to read: lines, and HTML by displaCy."""

from html import escape
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

from spacy import displacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from ..tasks.coref.clusters import PREFIX, get_chains, render_chains
from ..tasks.srl.frames import describe_frame, read_frames

_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title><style>
body {{ font-family: -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; margin: 2rem auto;
  line-height: 1.5; max-width: 60rem; padding: 0 1rem }}
</style></head><body>
<h1>{title}</h1>
{sections}
</body></html>
"""
# spaCy's own default.
_SPANS_KEY = "sc"
_ROLES = "elmo_srl"


class Section(NamedTuple):
    """title (str): of the task. lines (List[str]): the annotations, one each. html (str): the same,
    drawn by displaCy; "" if there is nothing to draw."""

    title: str
    lines: List[str]
    html: str = ""


def render_tasks(title: str, sections: Sequence[Section]) -> str:
    """Render sections as an HTML page: their drawing, or a list of their lines."""
    parts = []
    for section in sections:
        lines = "".join(f"<li>{escape(line)}</li>" for line in section.lines or ["nothing"])
        # displaCy escapes what it draws.
        parts.append(f"<h2>{escape(section.title)}</h2>\n{section.html or f'<ul>{lines}</ul>'}")
    return _PAGE.format(title=escape(title), sections="\n".join(parts))


def describe_doc(doc: Doc, nlp: Language) -> List[Section]:
    """Describe what the components of a pipeline have set: a section for each kind of component
    that has something to show, in their order, and one for each key of spans."""
    sections: Dict[str, Section] = {}
    pipes: List[Tuple[str, Any]] = nlp.pipeline
    for name, pipe in pipes:
        make = _MAKERS.get(nlp.get_pipe_meta(name).factory)
        if make is not None:
            section = make(doc, pipe)
            sections.setdefault(section.title, section)
    return list(sections.values())


def find_all(nlp: Language) -> None:
    """nlp (Language): a pipeline for texts of a person's, in which nothing is marked: predicates
    are found by whoever labels their arguments."""
    pipes: List[Tuple[str, Any]] = nlp.pipeline
    for name, pipe in pipes:
        if nlp.get_pipe_meta(name).factory == _ROLES:
            pipe.predicates = "predicted"


def describes_docs(factories: Iterable[str]) -> bool:
    """factories (Iterable[str]): of components. RETURNS (bool): Whether `describe_doc` has
    something to say of one of them: not of those that read pairs."""
    return not _MAKERS.keys().isdisjoint(factories)


def describe_answers(pipe: Any, nlp: Language, question: str, text: str) -> Section:
    """pipe (Any): an "elmo_qa". nlp (Language): its pipeline. question, text (str): what is asked,
    and where. RETURNS (Section): the likeliest spans with their probabilities; the answer is
    drawn in its text."""
    answer = pipe.answer(nlp, question, text)
    found = f"{_on_a_line(answer)} ({answer.probability:.0%})" if answer.text else "no answer"
    lines = [f"{found}; no answer: {answer.no_answer:.0%}"]
    lines += [
        f"  {_on_a_line(a)} ({a.probability:.0%})" for a in pipe.top_answers(nlp, question, text)
    ]
    place = {"start": answer.start, "end": answer.end, "label": f"{answer.probability:.0%}"}
    html = _draw({"text": text, "ents": [place]}, "ent") if answer.text else ""
    return Section(f"Answers to '{question}'", lines, html)


def describe_entailment(pipe: Any, nlp: Language, premise: str, hypothesis: str) -> Section:
    """pipe (Any): an "elmo_entailment". nlp (Language): its pipeline. premise, hypothesis (str):
    two texts. RETURNS (Section): each label with its probability, the likeliest first."""
    cats = pipe.predict_pair(nlp, premise, hypothesis)
    return Section(f"Does '{hypothesis}' follow?", _rank(cats))


def _describe_tags(doc: Doc, pipe: Any) -> Section:
    words = [token for token in doc if not token.is_space]
    places = [
        {"start_token": i, "end_token": i + 1, "label": token.tag_}
        for i, token in enumerate(words)
        if token.tag_
    ]
    drawn = {"text": doc.text, "tokens": [token.text for token in words], "spans": places}
    html = _draw(drawn, "span") if places else ""
    return Section("Tags", [f"{token.text}: {token.tag_}" for token in words], html)


def _describe_entities(doc: Doc, pipe: Any) -> Section:
    html = _draw(displacy.parse_ents(doc), "ent") if doc.ents else ""
    return Section("Entities", [_label(ent) for ent in doc.ents], html)


def _describe_spans(doc: Doc, pipe: Any) -> Section:
    key: str = pipe.key
    spans = doc.spans.get(key, [])
    html = _draw(displacy.parse_spans(doc, {"spans_key": key}), "span") if spans else ""
    title = "Spans" if key == _SPANS_KEY else f"Spans '{key}'"
    return Section(title, [_label(span) for span in spans], html)


def _describe_ruled(doc: Doc, pipe: Any) -> Section:
    # A ruler of spans may set entities alone.
    return _describe_entities(doc, pipe) if pipe.key is None else _describe_spans(doc, pipe)


def _describe_categories(doc: Doc, pipe: Any) -> Section:
    return Section("Categories", _rank(doc.cats))


def _describe_senses(doc: Doc, pipe: Any) -> Section:
    lines = [
        f"{token.text}: {token._.sense}" + (f" ({gloss})" if (gloss := token._.sense_gloss) else "")
        for token in doc
        if token._.sense
    ]
    return Section("Senses", lines)


def _describe_roles(doc: Doc, pipe: Any) -> Section:
    frames = read_frames(doc)
    lines = []
    for frame in frames:
        roles = [f"{role}: {_on_a_line(span)}" for role, span in frame.arguments]
        lines.append("; ".join([_on_a_line(frame.predicate), *roles]))
    html = "".join(_draw(describe_frame(frame), "span") for frame in frames)
    return Section("Roles", lines, html)


def _describe_chains(doc: Doc, pipe: Any) -> Section:
    prefix: str = pipe.cfg["prefix"]
    chains = get_chains(doc, prefix)
    lines = [" = ".join(map(_on_a_line, chain)) for chain in chains]
    title = "Chains" if prefix == PREFIX else f"Chains '{prefix}'"
    return Section(title, lines, render_chains(doc, prefix) if chains else "")


def _draw(parsed: Dict[str, Any], style: str) -> str:
    """parsed (Dict[str, Any]): what displaCy draws by hand. style (str): "ent" or "span".
    RETURNS (str): HTML. displaCy escapes the text, but neither labels nor identifiers, which
    are the pipeline's."""
    kind = "ents" if style == "ent" else "spans"
    places = [
        {key: escape(value) if isinstance(value, str) else value for key, value in place.items()}
        for place in parsed[kind]
    ]
    drawn = {**parsed, kind: places}
    return displacy.render(drawn, style=style, manual=True, jupyter=False)


def _label(span: Span) -> str:
    return f"{span.label_}: {_on_a_line(span)}"


def _on_a_line(found: Any) -> str:
    """found (Any): with a text, which may have line breaks. RETURNS (str): it on one line."""
    return " ".join(found.text.split())


def _rank(scores: Dict[str, float]) -> List[str]:
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    return [f"{label}: {score:.0%}" for label, score in ranked]


_MAKERS: Dict[str, Callable[[Doc, Any], Section]] = {
    "tagger": _describe_tags,
    "ner": _describe_entities,
    "entity_ruler": _describe_entities,
    "future_entity_ruler": _describe_ruled,
    "span_ruler": _describe_ruled,
    "spancat": _describe_spans,
    "spancat_singlelabel": _describe_spans,
    "textcat": _describe_categories,
    "textcat_multilabel": _describe_categories,
    "elmo_senses": _describe_senses,
    _ROLES: _describe_roles,
    "elmo_coref": _describe_chains,
}
