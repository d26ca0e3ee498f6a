"""The documentation site: it builds without a warning, has all names, and fetches nothing."""

import os
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from typer.main import get_command

from docs_build.configs import list_messages
from docs_build.docstrings import read_docstring
from docs_build.registered import ELSEWHERE, PAGES, read_entry_points
from spacy_elmo.cli import elmo_cli
from spacy_elmo.errors import Errors, Warnings
from spacy_elmo.pipeline.presets import PRESETS
from spacy_elmo.pretraining.config import PRETRAINING_PRESETS

from .acceptance.test_names import ARGUMENTS, NAMES
from .support.explore_page import CHROMIUM, open_browser
from .support.helpers import ROOT

REGISTERED = {group: names for group, names in NAMES.items() if group not in ELSEWHERE}
PAGE_OF = {group: page for page, value in PAGES.items() for group in value.groups}


class Page(HTMLParser):
    """Ids, links and fetched files of a built page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.fetched = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.update(attrs[key] for key in ("id", "name") if attrs.get(key))
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag in ("img", "script", "iframe") and attrs.get("src"):
            self.fetched.append(attrs["src"])
        if tag == "link" and attrs.get("rel") not in ("canonical", "next", "prev"):
            self.fetched.append(attrs["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # a notice of Material
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path.relative_to(site): path.read_text("utf-8") for path in site.rglob("*.html")}


@pytest.fixture(scope="module")
def reference(site):
    return {path.stem: path.read_text("utf-8") for path in site.glob("reference/*.html")}


def find_headings(page):
    text = re.sub(r"<a class=\"headerlink\".*?</a>", "", page)
    titles = re.findall(r"<h\d[^>]*>(.*?)</h\d>", text, flags=re.DOTALL)
    return {unescape(re.sub(r"<[^>]+>", "", title)).strip() for title in titles}


def find_section(page, heading):
    """The part of a page from a heading to the next one of the same level."""
    anchor = re.sub(r"[^\w-]", "", heading.lower())
    tag = re.search(rf'<(h\d) id="{re.escape(anchor)}"', page)
    return page[tag.end() :].partition(f"<{tag[1]} ")[0]


@pytest.mark.slow
def test_registered_names_are_on_the_site(reference):
    for group, names in REGISTERED.items():
        assert set(read_entry_points()[group]) == set(names)
        assert set(names) <= find_headings(reference[PAGE_OF[group]])


@pytest.mark.slow
def test_arguments_are_on_the_site_with_their_meaning(reference):
    for name, arguments in ARGUMENTS.items():
        (group,) = (group for group, names in REGISTERED.items() if name in names)
        section = find_section(reference[PAGE_OF[group]], name)
        for argument in arguments:
            row = re.search(rf"<td><code>{argument}</code></td>(.*?)</tr>", section, re.DOTALL)
            *_, meaning = re.findall(r"<td>(.*?)</td>", row[1])
            assert meaning, (name, argument)


@pytest.mark.slow
def test_commands_and_their_options_are_on_the_site(reference):
    for name, command in get_command(elmo_cli).commands.items():
        section = find_section(reference["commands"], f"elmo-{name}")
        for parameter in command.params:
            for option in parameter.opts:
                shown = option if option.startswith("-") else parameter.name.upper()
                assert shown == "--help" or f"<code>{shown}</code>" in section, (name, option)


@pytest.mark.slow
def test_messages_presets_and_config_sections_are_on_the_site(reference):
    messages = {**list_messages(Errors), **list_messages(Warnings)}
    assert set(messages) <= find_headings(reference["errors"])
    assert {*PRESETS, *PRETRAINING_PRESETS} <= find_headings(reference["presets"])
    sections = {f"[{name}]" for name in ("paths", "nlp", "bilm", "corpus", "training")}
    assert sections <= find_headings(reference["config"])


@pytest.mark.slow
def test_links_of_the_built_site_lead_somewhere(site, pages):
    parsed = {path: Page(text) for path, text in pages.items()}
    for path, page in parsed.items():
        for link in page.links if path.name != "404.html" else ():
            if link.startswith(("http://", "https://", "mailto:")):
                continue
            target, _, anchor = unquote(link).partition("#")
            where = (site / path.parent / target).resolve() if target else site / path
            assert where.exists(), (path, link)
            if anchor and where.suffix == ".html":
                assert anchor in parsed[where.relative_to(site.resolve())].ids, (path, link)


@pytest.mark.slow
def test_pages_fetch_nothing_from_elsewhere_and_have_one_title(pages):
    for path, text in pages.items():
        assert not [url for url in Page(text).fetched if re.match(r"(https?:)?//", url)], path
        assert len(re.findall(r"<h1[ >]", text)) == 1, path


def test_docstrings_are_parsed():
    def example(first, second, third):
        """Do a thing.

        More of it.

        first, second: two numbers,
            at least 1.
        third (Optional[List[int]]): see (1, 2). RETURNS (Tuple[int, ...]): both.
        RAISES (ValueError): EL001 if not: never.
        EXAMPLE:
            >>> 1 + 1
            2
        """

    parts = read_docstring(example, ("first", "second", "third"))

    assert (parts.summary, parts.notes) == ("Do a thing.", "More of it.")
    assert parts.parameters["second"].text == "two numbers, at least 1."
    assert parts.parameters["third"].type == "Optional[List[int]]"
    assert [(key, entry.type) for key, entry in parts.outcomes] == [
        ("RETURNS", "Tuple[int, ...]"),
        ("RAISES", "ValueError"),
    ]
    assert parts.outcomes[1][1].text == "EL001 if not: never."
    assert parts.example == ">>> 1 + 1\n2"


SEARCHES = {
    "license": "questions.html#which-license",
    "GPU": "questions.html#do-i-need-a-gpu",
    "memory": "questions.html#how-much-memory",
    "Prodigy": "questions.html#does-it-work-with-prodigy",
    "10 million sentences": "questions.html#how-long-do-10-million",
    "fine-tune": "guides/fine-tune.html#",
    "AllenNLP": "questions.html#can-i-load-allennlps",
    "transformer": "questions.html#elmo-or-a-transformer",
    "multilingual": "questions.html#is-there-a-multilingual",
}


# The words of the query stand between the page and the place in it.
IS_FOUND = """place => [...document.querySelectorAll(".md-search-result__link")].slice(0, 5)
    .some(link => link.href.replace(/\\?h=[^#]*/, "").includes(place))"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_search_of_a_site_that_is_opened_as_files_finds_pages(site):
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        for query, expected in SEARCHES.items():
            page.goto((site / "index.html").as_uri())
            page.locator("[data-md-component=search-query]").first.click()
            page.keyboard.type(query)
            # Else Playwright's error after 30 seconds.
            page.wait_for_function(IS_FOUND, arg=expected)
