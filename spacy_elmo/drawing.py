"""Common to all pictures: matplotlib (extra "plot"), fonts for every script, an atomic write."""

import warnings
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Dict, List

from .errors import Errors, Warnings
from .files import atomic_file

try:
    from matplotlib import font_manager, rc_context
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
# Pixels of an inch: sharp on a page whose column is as wide as a picture of eight inches.
_DPI = 200
# Okabe and Ito's colours, which people of all kinds of colour vision tell apart.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
# The ground is that of the documentation site when it is dark.
_DARK: Dict[Any, Any] = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "#1e2129"),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), "#e2e4e9"),
    **dict.fromkeys(("xtick.color", "ytick.color"), "#e2e4e9"),
}


def require_matplotlib() -> None:
    """RAISES (ValueError): EL038 if nothing can be drawn."""
    if Figure is None:
        text = Errors.EL038.format(purpose="Drawing", package="matplotlib", extra="plot")
        raise ValueError(text)


def require_drawable(path: Path) -> None:
    """Check the path of a picture before it is computed. RAISES (ValueError): EL038 if nothing can
    be drawn; also if its ending is not one of a picture."""
    require_matplotlib()
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        expected = f"only with one of the endings {', '.join(f'.{name}' for name in sorted(known))}"
        raise ValueError(f"A picture cannot be written as '{path}', {expected}.")


def has_matplotlib() -> bool:
    """Whether anything can be drawn."""
    return Figure is not None


def color_scheme(*, dark: bool) -> "AbstractContextManager[None]":
    """Colours of figures that are made and saved within it: with `dark`, light letters on a dark
    ground."""
    return rc_context(_DARK if dark else {})


def _list_families() -> List[str]:
    installed = set(font_manager.get_font_names())
    return [family for family in _FAMILIES if family in installed]


def save_figure(figure: "Figure", path: Path, **settings: Any) -> None:
    """Draw a picture into a file, by an atomic write. The file's ending chooses the format; folders
    above it are made. `settings` are those of matplotlib's `savefig`."""
    families = _list_families()
    for text in figure.findobj(Text):
        text.set_fontfamily(families)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary, warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", "Glyph .* missing from font", UserWarning)
        figure.savefig(temporary, dpi=_DPI, **settings)
    others = [each.message for each in caught if "missing from font" not in str(each.message)]
    for message in others:
        warnings.warn(message, stacklevel=3)
    if len(others) < len(caught):
        warnings.warn(Warnings.WL009.format(path=path), stacklevel=3)
