"""The page of `elmo explore` in Debian's Chromium. `python -m tests.support.explore_page PIPELINE
INDEX` makes the pictures of docs/guides/explore.md."""

import shutil
import sys
import threading
import time
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import uvicorn
from PIL import Image

from spacy_elmo.explore.app import create_app
from spacy_elmo.explore.explore_limits import ExploreLimits
from spacy_elmo.explore.explored_pipeline import find_embedder, prepare_pipeline
from spacy_elmo.explore.explorer import Explorer
from spacy_elmo.explore.page_server import make_url, open_socket
from spacy_elmo.pipeline.saving import load_pipeline
from spacy_elmo.search.search_index import open_index

from .helpers import ROOT

CHROMIUM = shutil.which("chromium")
# Name, colour scheme, width and height in CSS pixels.
SHOTS = (("explore-light", "light", 1280, 1500),)


@contextmanager
def serve_page(explorer, host="127.0.0.1"):
    """The page's address, while a server runs in a thread of this process."""
    opened = open_socket("127.0.0.1", 0)
    config = uvicorn.Config(create_app(explorer, host), log_level="error", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield make_url(opened, "127.0.0.1")
    finally:
        server.should_exit = True
        thread.join()
        opened.close()


@contextmanager
def open_browser():
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def wait_until_described(page):
    """Until the page knows the pipeline, and so can be used."""
    page.wait_for_selector("#components:has-text('Components')")


def wait_until_read(page):
    """Until the first text is shown with all that belongs to it."""
    page.wait_for_selector("#status:has-text('Read ')")
    page.wait_for_load_state("networkidle")


def take_shots(explorer, folder):
    """Pictures of the whole page in both colour schemes, and on a phone."""
    with serve_page(explorer) as url, open_browser() as browser:
        for name, scheme, width, height in SHOTS:
            size = {"width": width, "height": height}
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(url)
            wait_until_read(page)
            show_all(page)
            shot = page.screenshot(full_page=name != "explore-phone")
            path = folder / f"{name}.png"
            # 96 colours are a third of the bytes, and look the same.
            Image.open(BytesIO(shot)).convert("RGB").quantize(96, dither=0).save(
                path, optimize=True
            )
            print(path, path.stat().st_size)
            page.close()


def show_all(page):
    """Click what is shown at a click."""
    page.click(".token >> nth=-1" if page.locator(".token").count() < 5 else ".token >> nth=4")
    page.wait_for_selector("#substitutes dl")
    if page.is_visible("#search"):
        page.click("#search button")
        page.wait_for_selector("#found li")
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")


def main(pipeline, index):
    nlp = load_pipeline(pipeline)
    prepare_pipeline(nlp, pipeline, "en_small")
    opened = open_index(Path(index), embedder=find_embedder(nlp))
    take_shots(Explorer(nlp, opened, ExploreLimits()), ROOT / "docs" / "assets")


if __name__ == "__main__":
    main(*sys.argv[1:])
