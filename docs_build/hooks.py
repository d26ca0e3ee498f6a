"""What MkDocs calls while it builds the site: adds the pages that are made from the code."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

# MkDocs loads this file by its path.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from docs_build.pictures import frame_pictures, make_dark_drawings
from docs_build.reference import make_pages


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """files (Files): of docs/. config (MkDocsConfig): mkdocs.yml. RETURNS (Files): these and the
    pages and drawings that are made."""
    for place, text in {**make_pages(), **make_dark_drawings()}.items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """markdown (str): a page. RETURNS (str): the same without the second words of fences, such as
    `bash skip`, which are for the tests; code of other libraries says so above it."""
    titled = re.sub(r"^(```\w+) theirs$", r'\1 title="theirs"', markdown, flags=re.MULTILINE)
    return re.sub(r"^(```\w+) \w+$", r"\1", titled, flags=re.MULTILINE)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """html (str): of a page. page (Page): where it lies. config (MkDocsConfig): mkdocs.yml. files
    (Files): of the site. RETURNS (str): the page with its pictures in frames."""
    return frame_pictures(html, page.url, {file.url for file in files})
