"""Options of `embed` that have no effect beside others: they are refused, not passed over."""

from typing import Any, Dict, Iterator, Tuple

import typer

from ..errors import Errors

_NO_PIPELINE = "without `--pipeline`: a new pipeline has one elmo"
_PIPELINE = "beside `--pipeline`, which has a biLM and a language of its own"
_FILES = "for files: the endings of their names say which format they have"
_NO_RAY = "without `--engine ray`"
_DOCS = "beside `--format spacy`: docs have their text, and vectors in float32"


def require_no_conflicts(ctx: typer.Context) -> None:
    """ctx (typer.Context): of the command. RAISES (ValueError): EL301 for an option that is given
    and would have no effect."""
    for name, option, reason in _list_idle(ctx.params):
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(Errors.EL301.format(option=option, reason=reason))


def _list_idle(given: Dict[str, Any]) -> Iterator[Tuple[str, str, str]]:
    """YIELDS (Tuple[str, str, str]): Parameter, option, and why it would have no effect."""
    if given["pipeline"]:
        yield from (("weights", "--weights", _PIPELINE), ("lang", "--lang", _PIPELINE))
    else:
        yield "component", "--component", _NO_PIPELINE
    if given["text"] != "-":
        yield "input_format", "--input-format", _FILES
    if given["engine"] == "local":
        yield from (("address", "--address", _NO_RAY), ("worker_cpus", "--worker-cpus", _NO_RAY))
    if given["format"] == "spacy":
        yield "dtype", "--dtype", _DOCS
        if not given["has_text"]:
            yield "has_text", "--no-text", _DOCS
