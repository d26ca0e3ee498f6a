"""README and the pages of docs/: their code blocks, links and headings."""

import re

from .helpers import ROOT

SERVER = "projects/serve/README.md"
_DOCS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))
PAGES = ["README.md", SERVER, *_DOCS]
# Made from the code when the site is built; tests/test_site.py has their links.
MADE = ("changelog.md", "reference/")
_BLOCK = re.compile(r"^```([\w ]*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def read_page(page):
    return (ROOT / page).read_text("utf-8")


def blocks_in_order(page):
    """All code blocks of a page: pairs of a language and its code."""
    return _BLOCK.findall(read_page(page))


def blocks(page, language):
    """Code blocks of a language, such as "python", or "bash skip" for blocks that are not run."""
    return [code for name, code in blocks_in_order(page) if name == language]


def find_links(page):
    """Targets of a page's links and pictures, without those in code."""
    text = re.sub(r"`[^`]*`", "", _BLOCK.sub("", read_page(page)))
    links = re.findall(r'\]\(([^)\s]+)\)|\bsrc(?:set)?="([^"]+)"', text)
    return [link or source for link, source in links]


def find_anchors(page):
    """Names of a page's headings, as the site makes them."""
    titles = re.findall(r"^#+ (.+)$", _BLOCK.sub("", read_page(page)), flags=re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", t).strip().lower()) for t in titles}
