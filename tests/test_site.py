"""The documentation site: it builds without a warning, holds all names, and fetches nothing."""

import os
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
import spacy
from spacy.language import Language
from typer.main import get_command

from docs_build.docstrings import read_docstring
from docs_build.messages import list_messages
from docs_build.registered import ELSEWHERE, PAGES, read_entry_points
from spacy_elmo.cli import elmo_cli
from spacy_elmo.errors import Errors, Warnings
from spacy_elmo.pipeline.presets import PRESETS
from spacy_elmo.pretraining.config_files import PRETRAINING_PRESETS

from .support.explore_page import CHROMIUM, open_browser
from .support.helpers import ROOT
from .test_registry import ARGUMENTS, NAMES

pytestmark = pytest.mark.slow
REGISTERED = {group: names for group, names in NAMES.items() if group not in ELSEWHERE}
PAGE_OF = {group: page for page, value in PAGES.items() for group in value.groups}

# Of the page, and of each picture that is shown, with that of its file at most.
WIDTHS = """() => Object.fromEntries([
  ["page", document.documentElement.scrollWidth],
  ...[...document.querySelectorAll(".picture img")].filter((image) => image.checkVisibility()).map(
    (image) => [
      image.src.split("/").pop(),
      [image.offsetWidth, parseInt(image.style.getPropertyValue("--width"))],
    ])
])"""


class Page(HTMLParser):
    """What a built page refers to and what can be referred to in it."""

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
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    # Material's notice of what will be after MkDocs 1.
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
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
    return [
        unescape(re.sub(r"<[^>]+>", "", title)).strip()
        for title in re.findall(r"<h\d[^>]*>(.*?)</h\d>", text, flags=re.DOTALL)
    ]


def find_section(page, heading):
    """The part of a page from a heading to the next one of the same kind."""
    anchor = re.sub(r"[^\w-]", "", heading.lower())
    tag = re.search(rf'<(h\d) id="{re.escape(anchor)}"', page)
    return page[tag.end() :].partition(f"<{tag[1]} ")[0]


@pytest.mark.parametrize("group", REGISTERED)
def test_registered_names_are_on_the_site(group, reference):
    headings = find_headings(reference[PAGE_OF[group]])
    assert set(read_entry_points()[group]) == set(REGISTERED[group])
    assert set(REGISTERED[group]) <= set(headings)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_on_the_site_with_what_they_are(name, reference):
    (group,) = (group for group, names in REGISTERED.items() if name in names)
    section = find_section(reference[PAGE_OF[group]], name)
    for argument in ARGUMENTS[name]:
        row = re.search(rf"<td><code>{argument}</code></td>(.*?)</tr>", section, flags=re.DOTALL)
        *_, meaning = re.findall(r"<td>(.*?)</td>", row[1])
        assert meaning, (name, argument)


def test_commands_and_their_options_are_on_the_site(reference):
    page = reference["commands"]
    for name, command in get_command(elmo_cli).commands.items():
        section = find_section(page, f"elmo-{name}")
        for parameter in command.params:
            for option in parameter.opts:
                shown = option if option.startswith("-") else parameter.name.upper()
                assert shown == "--help" or f"<code>{shown}</code>" in section, (name, option)


def test_messages_are_on_the_site(reference):
    headings = find_headings(reference["errors"])
    messages = {**list_messages(Errors), **list_messages(Warnings)}
    assert len(messages) > 200
    assert set(messages) <= set(headings)
    text = unescape(re.sub(r"<[^>]+>", "", reference["errors"]))
    for code, template in messages.items():
        word = max(re.sub(r"\{[^}]*\}|`", " ", template).split(), key=len)
        assert word in text, code


def test_presets_and_config_sections_are_on_the_site(reference):
    assert {*PRESETS, *PRETRAINING_PRESETS} <= set(find_headings(reference["presets"]))
    sections = {f"[{name}]" for name in ("paths", "nlp", "bilm", "corpus", "training")}
    assert sections <= set(find_headings(reference["config"]))


def test_links_of_the_built_site_lead_somewhere(site, pages):
    parsed = {path: Page(text) for path, text in pages.items()}
    for path, page in parsed.items():
        if path.name == "404.html":
            continue
        for link in page.links:
            if link.startswith(("http://", "https://", "mailto:")):
                continue
            target, _, anchor = unquote(link).partition("#")
            where = (site / path.parent / target).resolve() if target else site / path
            assert where.exists(), (path, link)
            if anchor and where.suffix == ".html":
                assert anchor in parsed[where.relative_to(site.resolve())].ids, (path, link)


def test_pages_fetch_nothing_from_elsewhere(pages):
    for path, text in pages.items():
        assert not [url for url in Page(text).fetched if re.match(r"(https?:)?//", url)], path
        assert "mermaid" not in text


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_scroll_on_a_phone_and_the_page_does_not(scheme, site, pages):
    shown = 0
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
        for path, text in pages.items():
            if 'class="picture' in text:
                page.goto((site / path).as_uri())
                widths = page.evaluate(WIDTHS)
                assert widths.pop("page") == 390, path
                for name, (drawn, most) in widths.items():
                    assert drawn == min(most, 800), (path, name)
                    assert name != f"bank{'-dark' * (scheme == 'light')}.png"
                shown += len(widths)
    assert shown > 20


def test_every_page_has_one_title(pages):
    for path, text in pages.items():
        assert len(re.findall(r"<h1[ >]", text)) == 1, path


def test_docstrings_are_taken_apart():
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


def test_settings_of_components_have_their_defaults(reference):
    for name in REGISTERED["spacy_factories"]:
        section = find_section(reference["components"], name)
        table = section.partition("</table>")[0]
        spacy.blank("en").has_factory(name)  # fills spaCy's table of factories
        for key in Language.get_factory_meta(name).default_config:
            row = re.search(rf"<td><code>{key}</code></td>(.*?)</tr>", table, flags=re.DOTALL)
            assert "required" not in row[1], (name, key)
