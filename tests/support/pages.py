"""README and the pages of docs/: their code blocks and links."""

import re

from .helpers import ROOT

PAGES = sorted(
    path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
)
# Made from the code when the site is built; `tests/test_site.py` has their links.
MADE = ("changelog.md", "reference/")
_BLOCK = re.compile(r"^```([\w ]*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def read_page(page):
    return (ROOT / page).read_text("utf-8")


def find_blocks(page):
    """Languages and code blocks, in order."""
    return _BLOCK.findall(read_page(page))


def blocks(page, language):
    """Code blocks of a language, such as "python", or "bash skip" for what is not run alone."""
    return [code for name, code in find_blocks(page) if name == language]


def blocks_in_order(page):
    """All code blocks of a page: pairs of a language and its code."""
    return _BLOCK.findall(read_page(page))


def find_links(page):
    """What a page's links and pictures point to, code left out."""
    text = re.sub(r"`[^`]*`", "", _BLOCK.sub("", read_page(page)))
    links = re.findall(r'\]\(([^)\s]+)\)|\bsrc(?:set)?="([^"]+)"', text)
    return [link or source for link, source in links]


def find_anchors(page):
    """Names of a page's headings, as the site makes them."""
    titles = re.findall(r"^#+ (.+)$", _BLOCK.sub("", read_page(page)), flags=re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", t).strip().lower()) for t in titles}
