"""Serve the page of `elmo explore`, and open it in Chromium."""

import shutil
import threading
import time
from contextlib import contextmanager

import uvicorn

from spacy_elmo.explore.app import create_app, make_url, open_socket

CHROMIUM = shutil.which("chromium")


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
