"""`python -m spacy elmo report`: the results of experiments as one report."""

from pathlib import Path

import typer

from .common import exit_on_error
from .options import QUIET
from .outputs import require_output, writing


def report(
    folder: Path = typer.Argument(
        ..., help="Folder with results, however deep", exists=True, file_okay=False
    ),
    output: Path = typer.Argument(
        ..., help="Markdown file to write; an HTML page of the same name is added", dir_okay=False
    ),
    title: str = typer.Option("Experiments", help="Heading"),
    quiet: bool = QUIET,
) -> None:
    """Write OUTPUT, OUTPUT's folder figures/, and the same as one .html file."""
    from ..experiments.html_pages import render_report
    from ..experiments.paper_report import make_sections
    from ..experiments.report_markdown import to_markdown
    from ..experiments.results import read_results
    from ..files import write_file

    if output.suffix == ".html":
        raise typer.BadParameter("name the Markdown file; the HTML page gets the same name")
    page = output.with_suffix(".html")
    with exit_on_error(quiet) as console, writing(output):
        for path in (output, page):
            require_output(path)
        sections = make_sections(read_results(folder), output.parent / "figures")
        markdown = to_markdown(title, sections, output.parent)
        write_file(output, markdown.encode("utf-8"))
        write_file(page, render_report(title, sections).encode("utf-8"))
        console.finish(output, page)
