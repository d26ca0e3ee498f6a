"""HTML pages from the files of `templates/`, each whole in itself: no script, no other file."""

from base64 import b64encode
from pathlib import Path
from typing import List, NamedTuple, Sequence, Tuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from .contexts import Query
from .report_blocks import Heading, Picture, Section, Text


class DrawnSection(NamedTuple):
    """title (str): for people. lines (List[str]): what was found, one thing each. html (str): the
    same, drawn by displaCy; "" for nothing to draw."""

    title: str
    lines: List[str]
    html: str = ""


def render_report(title: str, sections: Sequence[Section]) -> str:
    """Render a report as a page with its pictures inside.

    title (str): of the report.
    sections (Sequence[Section]): its content.
    RETURNS (str): HTML.
    RAISES (OSError): if a picture cannot be read.
    """
    return _PAGES.get_template("report.html").render(title=title, sections=sections)


def render_contexts(queries: Sequence[Query], static: Sequence[Tuple[str, float]]) -> str:
    """Render the nearest contexts of each query, in displaCy's style: a token's colour is its
    similarity to the query's token.

    queries (Sequence[Query]): from `find_contexts`.
    static (Sequence[Tuple[str, float]]): from `nearest_words`; empty to leave them out.
    RETURNS (str): HTML.
    """
    return _PAGES.get_template("contexts.html").render(queries=queries, static=static)


def render_tasks(title: str, sections: Sequence[DrawnSection]) -> str:
    """Render what the components of a pipeline say of a text.

    title (str): for people.
    sections (Sequence[DrawnSection]): drawn where they have `html`, else as a list of lines.
    RETURNS (str): HTML.
    """
    return _PAGES.get_template("tasks.html").render(title=title, sections=sections)


def _read_base64(path: Path) -> str:
    return b64encode(path.read_bytes()).decode("ascii")


# Words of a corpus, and titles, are no markup: everything is escaped.
_PAGES = Environment(
    loader=PackageLoader("spacy_elmo.experiments", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
)
_PAGES.filters["base64"] = _read_base64
for _name, _kind in (("heading", Heading), ("picture", Picture), ("text_block", Text)):
    _PAGES.tests[_name] = _kind.__instancecheck__
