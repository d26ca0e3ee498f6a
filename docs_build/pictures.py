"""Pictures of the pages: each is a link to its file, in a frame that scrolls by itself on a small
screen; what has a dark variant changes with the colour scheme."""

import re
from pathlib import Path
from typing import Collection, Dict, Iterator, Tuple
from xml.etree import ElementTree

from PIL import Image

DOCS = Path(__file__).resolve().parent.parent / "docs"
# Drawings whose dark variants are made from them, by the colours.
DRAWINGS = tuple(p for p in sorted(DOCS.glob("figures/*.svg")) if p.stem != "favicon")
# The ground is that of Material's scheme "slate".
DARK = {
    "#fff": "#1e2129", "#111": "#e8eaf0", "#333": "#c9ccd6", "#444": "#a9adba", "#666": "#8f94a3",
    "#f2f2f2": "#2d313c", "#fde8c8": "#5a3b0c", "#a35a00": "#f0a94b", "#cfe4f7": "#173f61",
    "#0a5a9c": "#6db7f2", "#d7eee2": "#14482f", "#00704a": "#54c795", "#ece4f5": "#3f2f5c",
    "#5d3a9b": "#b79cea", "#e8edf7": "#26324a", "#33507f": "#9db5e0",
}  # fmt: skip
_COLOR = re.compile(r"#[0-9a-f]{3,6}\b")
_URL = re.compile(r'src="([^"]+)"')
# What MkDocs makes of a picture in a paragraph of its own.
_ALONE = re.compile(r"<p>(<img [^>]*>)</p>")


def darken(drawing: str) -> str:
    """drawing (str): an SVG. RETURNS (str): the same in dark colours. RAISES (KeyError): for a
    colour that has no dark one."""
    return _COLOR.sub(lambda match: DARK[match[0]], drawing)


def make_dark_drawings() -> Dict[str, str]:
    """RETURNS (Dict[str, str]): the drawings in dark colours, by their places in docs/."""
    return {
        _darken_name(path.relative_to(DOCS).as_posix()): darken(path.read_text("utf-8"))
        for path in DRAWINGS
    }


def frame_pictures(html: str, page: str, files: Collection[str]) -> str:
    """Put each picture of a page into a frame.

    html (str): the page, links resolved.
    page (str): its place in the site, to which links are relative.
    files (Collection[str]): places in the site of all files.
    RETURNS (str): with a link, and a second one to the dark variant if there is such a file.
    """
    return _ALONE.sub(lambda match: "\n".join(_frame(match[1], page, files)), html)


def _frame(tag: str, page: str, files: Collection[str]) -> Iterator[str]:
    url = _URL.findall(tag)[0]
    dark = _darken_name(url)
    # The size keeps the page still while a picture loads; "--width" is for a small screen.
    width, height, legible = read_size(DOCS / _resolve(url, page))
    size = f' width="{width}" height="{height}" style="--width: {legible}px"'
    sized = re.sub(r"\s*/?>$", f"{size}>", tag)
    if _resolve(dark, page) in files:
        yield f'<p class="picture only-light"><a href="{url}">{sized}</a></p>'
        yield f'<p class="picture only-dark"><a href="{dark}">{sized.replace(url, dark)}</a></p>'
    else:
        yield f'<p class="picture"><a href="{url}">{sized}</a></p>'


def read_size(path: Path) -> Tuple[int, int, int]:
    """path (Path): a PNG or an SVG. RETURNS (Tuple[int, int, int]): its width and height in pixels,
    and the width at which a letter of ten points has ten pixels."""
    if path.suffix == ".svg":
        box = ElementTree.parse(path).getroot().attrib["viewBox"]
        _, _, width, height = (int(number) for number in box.split())
        return width, height, width
    with Image.open(path) as image:
        width, height = image.size
        # Of a screenshot no resolution is known.
        dpi, _ = image.info.get("dpi", (72, 72))
    return width, height, round(72 * width / dpi)


def _darken_name(name: str) -> str:
    stem, _, ending = name.rpartition(".")
    return f"{stem}-dark.{ending}"


def _resolve(url: str, page: str) -> str:
    """RETURNS (str): The place in the site of what a page refers to."""
    return (DOCS / page).parent.joinpath(url).resolve().relative_to(DOCS).as_posix()
