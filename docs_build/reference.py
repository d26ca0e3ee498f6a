"""All pages that are made when the site is built."""

from typing import Dict

from . import commands, config_pages, messages, python_pages, registered
from .sources import ROOT, Sources


def make_pages() -> Dict[str, str]:
    """RETURNS (Dict[str, str]): Markdown of each page by its place in docs/."""
    sources = Sources()
    pages = registered.make_pages(sources)
    pages["reference/commands.md"] = commands.make_page(sources)
    pages["reference/config.md"] = config_pages.make_config_page(sources)
    pages["reference/presets.md"] = config_pages.make_presets_page()
    pages["reference/errors.md"] = messages.make_page(sources)
    pages["reference/python.md"] = python_pages.make_python_page(sources)
    pages["reference/layers.md"] = python_pages.make_layers_page(sources)
    # Its links are from the top of the repository.
    pages["changelog.md"] = (ROOT / "CHANGELOG.md").read_text("utf-8").replace("](docs/", "](")
    return {**pages, **sources.pages}
