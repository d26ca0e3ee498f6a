"""The command that serves a saved pipeline.

Each option is also an environment variable: --max-tokens is ELMO_SERVICE_MAX_TOKENS.
"""

import inspect
import os
from dataclasses import fields
from typing import Any

import spacy
import typer

from .app import create_app
from .limits import Limits
from .server import make_server, open_socket


def make_option(name: str, default: Any) -> Any:
    """RETURNS (typer.Option): with its environment variable."""
    return typer.Option(default, envvar=f"ELMO_SERVICE_{name.upper()}")


def serve(
    pipeline: str = typer.Argument(..., help="Saved or installed pipeline"),
    host: str = make_option("host", "127.0.0.1"),
    port: int = make_option("port", 8000),
    zones: bool = make_option("zones", True),
    log_level: str = make_option("log_level", "info"),
    **limits: Any,
) -> None:
    """Serve a pipeline until SIGTERM or Ctrl-C."""
    try:
        settings = Limits(**limits)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        opened = open_socket(host, port, settings.write_seconds)
    except OSError as error:
        raise SystemExit(f"Cannot listen on {host}:{port}: {error.strerror}.") from None
    try:
        nlp = spacy.load(pipeline)
    except OSError as error:
        opened.close()
        raise SystemExit(f"Cannot load '{pipeline}': {error}") from None
    app = create_app(nlp, settings, zones=zones)
    server = make_server(app, settings, log_level)
    print(f"Serving on http://{host}:{opened.getsockname()[1]}", flush=True)
    server.run(sockets=[opened])
    if app.state.batcher.is_busy:
        # Its time is over, and Python would wait for the thread.
        os._exit(1)


def add_limits(function: Any) -> Any:
    """RETURNS (Any): the function with an option for each limit, which Typer reads."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = [
        inspect.Parameter(
            limit.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=make_option(limit.name, limit.default),
            annotation=limit.type,
        )
        for limit in fields(Limits)
    ]
    function.__signature__ = signature.replace(parameters=[*own, *options])
    function.__annotations__ = {p.name: p.annotation for p in (*own, *options)}
    return function


cli = typer.Typer(add_completion=False)
cli.command()(add_limits(serve))
