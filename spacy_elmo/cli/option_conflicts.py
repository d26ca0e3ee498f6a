"""Options that have no effect beside others: they are refused, not passed over."""

from typing import Any, Dict, Iterable, Iterator, Tuple

import typer

from ..errors import Errors

_NO_PIPELINE = "without `--pipeline`: a new pipeline has one elmo"
_PIPELINE = "beside `--pipeline`, which has a biLM and a language of its own"
_FILES = "for files: the endings of their names say which format they have"
_NO_RAY = "without `--engine ray`"
_PRETRAINING = "with `--pretraining`"
_NO_SOFTMAX = "beside `--no-softmax`"
_DOCS = "beside `--format spacy`: docs have their text, and vectors of all tokens in float32"


# Parameter, option, and why it would have no effect.
Idle = Tuple[str, str, str]


def require_no_conflicts(ctx: typer.Context, idle: Iterable[Idle]) -> None:
    """ctx (typer.Context): of the command. idle (Iterable[Idle]): its options that have no effect.
    RAISES (ValueError): EL301 for one that is given."""
    for name, option, reason in idle:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(Errors.EL301.format(option=option, reason=reason))


def list_idle_of_embed(given: Dict[str, Any]) -> Iterator[Idle]:
    """given (Dict[str, Any]): the parameters of `embed`. YIELDS (Idle): what has no effect."""
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
        if given["unit"] == "tokens":
            yield "unit", "--unit", _DOCS
        if not given["has_text"]:
            yield "has_text", "--no-text", _DOCS


def list_idle_of_init_config(given: Dict[str, Any]) -> Iterator[Idle]:
    """given (Dict[str, Any]): the parameters of `init-config`. YIELDS (Idle): what has no
    effect."""
    if given["pretraining"]:
        yield "vectors", "--vectors", f"{_PRETRAINING}: `elmo pretrain` has --paths.vectors"
        for name in ("pipeline", "cache", "log_mixes"):
            yield name, f"--{name.replace('_', '-')}", _PRETRAINING


def list_idle_of_convert(given: Dict[str, Any]) -> Iterator[Idle]:
    """given (Dict[str, Any]): the parameters of `convert`. YIELDS (Idle): what has no effect."""
    if given["to"].value == "allennlp":
        for option in ("half", "round_weights", "round_softmax", "meta", "force"):
            reason = "with `--to allennlp`: the format has 32 bits a number, and no notes"
            yield option, f"--{option.replace('_', '-')}", reason
    if not given["softmax"]:
        yield "round_softmax", "--round-softmax", _NO_SOFTMAX
    if given["round_weights"] and (given["round_softmax"] or not given["softmax"]):
        yield "half", "--half", "beside `--round-weights`: all numbers are rounded to 8 bits"


def list_idle_of_explore(given: Dict[str, Any]) -> Iterator[Idle]:
    """given (Dict[str, Any]): the parameters of `explore`. YIELDS (Idle): what has no effect."""
    if given["index"] is None:
        yield "weights", "--weights", "without `--index`: the pipeline has its own"


def list_idle_of_report(given: Dict[str, Any]) -> Iterator[Idle]:
    """given (Dict[str, Any]): the parameters of a command that may write a part of a report.
    YIELDS (Idle): what has no effect."""
    if given["json"] is None:
        yield "title", "--title", "without `--json`"


def list_idle_of_experiment(given: Dict[str, Any]) -> Iterator[Idle]:
    """given (Dict[str, Any]): the parameters of `experiment`. YIELDS (Idle): what has no effect."""
    for option, suite in (("vectors", "vectors"), ("shares", "samples")):
        if given["suite"] != suite:
            yield option, f"--{option}", f"with another suite than `{suite}`"
