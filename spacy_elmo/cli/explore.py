"""`python -m spacy elmo explore`: a local web page to try out a pipeline."""

import threading
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Optional

import typer

from .common import exit_on_error
from .options import INDEX_WEIGHTS, QUIET, optional

_PACKAGES = ("fastapi", "uvicorn")


def explore(
    pipeline: str = typer.Argument(..., help="Folder or package of a pipeline with elmo"),
    index: Optional[Path] = optional(
        "Folder that `elmo index` wrote, to search for contexts", file_okay=False
    ),
    weights: str = INDEX_WEIGHTS,
    language_model: str = optional(
        "Folder or name (en_small) of a biLM with its softmax, for surprisal and substitutes, "
        "if the pipeline has no elmo_lm",
        default="",
    ),
    host: str = typer.Option(
        "127.0.0.1", help="Address to listen at; 127.0.0.1: this machine only"
    ),
    port: int = typer.Option(8080, min=0, max=65535, help="Port; 0: any free port"),
    open_browser: bool = typer.Option(
        False, "--open/--no-browser", help="Open the page in the browser, or only print its address"
    ),
    max_chars: int = typer.Option(2_000, min=1, help="Most characters of a text"),
    max_lines: int = typer.Option(20, min=1, help="Most lines of a text"),
    max_tokens: int = typer.Option(500, min=1, help="Most tokens of a text"),
    seconds: float = typer.Option(20.0, min=1.0, help="Most seconds to wait for other requests"),
    quiet: bool = QUIET,
) -> None:
    """Serve a local web page about a pipeline: similarity of tokens in each layer, surprisal,
    substitutes, nearest contexts in a corpus, annotations of the components, and learned mixes.
    Press Ctrl-C to stop."""
    with exit_on_error(quiet) as console:
        if missing := [name for name in _PACKAGES if find_spec(name) is None]:
            raise ValueError(
                f"The page needs the packages {' and '.join(missing)}. Install them with "
                '`pip install "spacy-elmo[explore]"`.'
            )
        from ..explore.app import create_app, is_loopback, make_url, open_socket, run_server
        from ..explore.explorer import ExploreLimits, Explorer, find_embedder, prepare_pipeline
        from ..pipeline.saving import load_pipeline
        from ..search.search_index import open_index

        limits = ExploreLimits(
            max_chars=max_chars, max_lines=max_lines, max_tokens=max_tokens, seconds=seconds
        )
        # Before the pipeline is loaded, which takes seconds.
        with open_socket(host, port) as opened:
            nlp = load_pipeline(pipeline)
            prepare_pipeline(nlp, pipeline, language_model)
            embedder = find_embedder(nlp)
            searched = None if index is None else open_index(index, weights, embedder=embedder)
            explorer = Explorer(nlp, searched, limits)
            url = make_url(opened, host)
            if not is_loopback(host):
                console.warn(
                    f"Everybody who can reach this machine at '{host}' can open the page without "
                    "a password. To serve only this machine, omit `--host`."
                )
            console.show(f"The page is at {url} (Ctrl-C ends it)")
            if open_browser:
                # In a thread: a browser may wait for the server, which starts after it.
                threading.Thread(target=webbrowser.open, args=[url], daemon=True).start()
            run_server(create_app(explorer, host), opened)
        console.finish(summary="The page is no longer served")
