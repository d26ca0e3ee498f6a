"""The command that serves a saved pipeline.

Each option is also an environment variable: --max-tokens is ELMO_SERVICE_MAX_TOKENS.
"""

import inspect
import os
import textwrap
import traceback
from dataclasses import fields
from typing import Any

import spacy
import typer
from fastapi import FastAPI
from uvicorn.config import LOG_LEVELS

from .app import create_app
from .limits import Limits
from .open_files import allow_files
from .server import count_files, make_server, open_socket

# Characters of an error: those of configs have many lines.
_MOST_CHARS = 500
# At these levels of the log, where an error is from is of use.
_DETAILED = ("debug", "trace")


def make_option(name: str, default: Any, **settings: Any) -> Any:
    """RETURNS (typer.Option): with its environment variable."""
    return typer.Option(default, envvar=f"ELMO_SERVICE_{name.upper()}", **settings)


def serve(
    pipeline: str = typer.Argument(..., help="Saved or installed pipeline"),
    host: str = make_option("host", "127.0.0.1"),
    port: int = make_option("port", 8000, min=0, max=65_535, help="0 for any that is free"),
    zones: bool = make_option("zones", True),
    log_level: str = make_option("log_level", "info", help=", ".join(LOG_LEVELS)),
    **limits: Any,
) -> None:
    """Serve a pipeline until SIGTERM or Ctrl-C."""
    if log_level not in LOG_LEVELS:
        known = ", ".join(LOG_LEVELS)
        raise typer.BadParameter(f"log_level = '{log_level}' is not possible, only: {known}.")
    try:
        settings = Limits(**limits)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        allow_files(count_files(settings))
    except OSError as error:
        raise SystemExit(
            f"Cannot have connections = {settings.connections}: {error}. Give fewer, or raise "
            "`ulimit -Hn`."
        ) from None
    try:
        opened = open_socket(host, port, settings.write_seconds)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SystemExit(f"Cannot listen on {host}:{port}: {reason}.") from None
    with opened:
        app = load_app(pipeline, settings, zones, show_traceback=log_level in _DETAILED)
        server = make_server(app, settings, log_level)
        name = f"[{host}]" if ":" in host else host
        print(f"Serving on http://{name}:{opened.getsockname()[1]}", flush=True)
        server.run(sockets=[opened])
    if app.state.batcher.is_busy:
        # Its time is over, and Python would wait for the thread.
        os._exit(1)


def load_app(
    pipeline: str, limits: Limits, zones: bool, *, show_traceback: bool = False
) -> FastAPI:
    """show_traceback (bool): print where an error is from.
    RETURNS (FastAPI): of the pipeline, which has read a text. RAISES (SystemExit): if it
        cannot be loaded or cannot read."""
    try:
        return create_app(spacy.load(pipeline), limits, zones=zones)
    except Exception as error:  # each component and each file format has its own
        if show_traceback:
            traceback.print_exc()
        reason = textwrap.shorten(f"{type(error).__name__}: {error}", _MOST_CHARS).rstrip(".")
        raise SystemExit(
            f"Cannot load '{pipeline}': {reason}. Give a pipeline that spaCy can load and use."
        ) from None


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
