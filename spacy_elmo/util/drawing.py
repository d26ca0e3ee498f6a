"""Common to all pictures: matplotlib (extra "plot"), fonts for every script, an atomic write."""

import warnings
from pathlib import Path
from typing import Any

from ..errors import Errors, Warnings
from .atomic import atomic_file

try:
    from matplotlib import font_manager
    from matplotlib.backend_bases import FigureCanvasBase
    from matplotlib.figure import Figure
    from matplotlib.text import Text
except ImportError:
    Figure = None  # type: ignore[assignment,misc]

# The first that has a letter draws it: matplotlib's own, then those of common systems for
# Korean, Japanese and Chinese.
_FAMILIES = (
    "DejaVu Sans", "Noto Sans CJK KR", "Noto Sans CJK JP", "Noto Sans CJK SC", "NanumGothic",
    "Apple SD Gothic Neo", "Malgun Gothic", "Hiragino Sans", "Yu Gothic", "Microsoft YaHei",
    "Arial Unicode MS",
)  # fmt: skip


def require_matplotlib() -> None:
    """RAISES (ValueError): EL062 if nothing can be drawn."""
    if Figure is None:
        raise ValueError(Errors.EL062)


def require_drawable(path: Path) -> None:
    """path (Path): of a picture, to be checked before it is computed. RAISES
    (ValueError): EL062 if nothing can be drawn, EL166 if its ending names no format."""
    require_matplotlib()
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        endings = ", ".join(f".{name}" for name in sorted(known))
        raise ValueError(Errors.EL166.format(path=path, known=endings))


def has_matplotlib() -> bool:
    """RETURNS (bool): Whether anything can be drawn."""
    return Figure is not None


def save_figure(figure: "Figure", path: Path, **settings: Any) -> None:
    """Draw a picture into a file, by an atomic write.

    figure (Figure): the picture.
    path (Path): file to write; its ending chooses the format. Folders above it are made.
    settings: of matplotlib's `savefig`.
    """
    installed = set(font_manager.get_font_names())
    families = [family for family in _FAMILIES if family in installed]
    for text in figure.findobj(Text):
        text.set_fontfamily(families)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary, warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", "Glyph .* missing from font", UserWarning)
        figure.savefig(temporary, dpi=120, **settings)
    others = [each.message for each in caught if "missing from font" not in str(each.message)]
    for message in others:
        warnings.warn(message, stacklevel=3)
    if len(others) < len(caught):
        warnings.warn(Warnings.WL009.format(path=path), stacklevel=3)
