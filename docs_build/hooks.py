"""Hooks of MkDocs: add the pages that are made from the code."""

import re
import sys
from pathlib import Path
from typing import Any, Dict

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# MkDocs loads this file by its path.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from docs_build import commands, configs, objects, registered


def make_pages() -> Dict[str, str]:
    """RETURNS (Dict[str, str]): Markdown of each page by its place in docs/."""
    changelog = (objects.ROOT / "CHANGELOG.md").read_text("utf-8")
    return {
        **registered.make_pages(),
        "reference/commands.md": commands.make_page(),
        "reference/config.md": configs.make_config_page(),
        "reference/presets.md": configs.make_presets_page(),
        "reference/errors.md": configs.make_errors_page(),
        "changelog.md": changelog.replace("](docs/", "]("),
    }


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """files (Files): of docs/. RETURNS (Files): these and the pages that are made."""
    for place, text in make_pages().items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """markdown (str): a page. RETURNS (str): without the second words of fences, such as
    `bash skip`, which are for the tests."""
    titled = re.sub(r"^(```\w+) theirs$", r'\1 title="theirs"', markdown, flags=re.MULTILINE)
    return re.sub(r"^(```\w+) \w+$", r"\1", titled, flags=re.MULTILINE)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """output (str): HTML. RETURNS (str): with our own worker for pages that are opened as files,
    instead of the one that the plugin `offline` fetches from the network."""
    return _replace_worker(output, "../" * page.url.count("/"))


def on_post_template(output: str, **_: Any) -> str:
    """As `on_post_page`, for 404.html."""
    return _replace_worker(output, "")


def _replace_worker(output: str, up: str) -> str:
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{up}assets/file_worker.js")
