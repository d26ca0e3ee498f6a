"""`python -m spacy elmo init-config`: write a training config."""

from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import typer
from wasabi import msg

from .util import exit_on_error

_PRESET_HELP = (
    "shared_mix: one learned mix for all tasks. task_mix: one for each task. allennlp: "
    "published weights. fine_tune: the biLM trains too. word_features: ELMo beside "
    "spaCy's own features. With --pretraining: standard; kim_5m or kim_19m: for a "
    "million words or so."
)


def init_config(
    output: Path = typer.Argument(..., help="File to write", dir_okay=False),
    preset: Optional[str] = typer.Option(None, help=_PRESET_HELP),
    pipeline: str = typer.Option("tagger,ner", help="Components that use the vectors"),
    lang: str = typer.Option("en", help="Language code"),
    weights: Optional[Path] = typer.Option(
        None, help="Folder with weights, or an HDF5 file together with --options"
    ),
    options: Optional[Path] = typer.Option(None, help="options.json of the HDF5 file"),
    cache: Optional[str] = typer.Option(
        None, help="Folder to keep the layers of a frozen biLM in, from epoch to epoch"
    ),
    log_mixes: Optional[str] = typer.Option(
        None, help="File (.jsonl) for the learned mixes, written while training"
    ),
    pretraining: bool = typer.Option(
        False, "--pretraining", help="Write a config for `elmo pretrain` instead"
    ),
) -> None:
    """Write a training config with ELMo in it, the shape filled in from the weights.

    Complete it with `python -m spacy init fill-config`, then `python -m spacy train`.
    """
    from ..loaders import read_config
    from ..presets import make_config
    from ..pretraining_config import make_pretraining_config

    with exit_on_error():
        path = options or weights
        shape = None
        if path is not None:
            shape = read_config(path, weights if options else None)
        if pretraining:
            preset = preset or "standard"
            made = make_pretraining_config(
                preset,
                lang=lang,
                shape=shape,
                init=path,
                init_weights=weights if options else None,
            )
            made.to_disk(output, interpolate=False)
            msg.good(f"Wrote {output}", f"preset {preset}")
            msg.info(f"Next: python -m spacy elmo pretrain {output} OUTPUT --paths.train TEXT")
            return
        preset = preset or "task_mix"
        loader, paths = _find_loader(preset, options, weights)
        names = [name.strip() for name in pipeline.split(",") if name.strip()]
        config = make_config(
            preset,
            names,
            lang=lang,
            shape=shape,
            loader=loader,
            paths=paths,
            cache=cache,
            log_mixes=log_mixes,
        )
    config.to_disk(output, interpolate=False)
    msg.good(f"Wrote {output}", f"preset {preset}, pipeline {config['nlp']['pipeline']}")
    msg.info(f"Next: python -m spacy init fill-config {output} {output}")


def _find_loader(
    preset: str, options: Optional[Path], weights: Optional[Path]
) -> Tuple[Optional[Dict[str, Any]], Dict[str, str]]:
    """The loader's block, None to leave the preset's own, and values of [paths]."""
    if weights is None:
        return None, {}
    if options is not None:
        paths = {"elmo_options": str(options), "elmo_weights": str(weights)}
        return {
            "@misc": "spacy-elmo.AllenNLPLoader.v1",
            "options_path": "${paths.elmo_options}",
            "weights_path": "${paths.elmo_weights}",
        }, paths
    loader = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": "${paths.elmo_weights}"}
    return loader, {"elmo_weights": str(weights)}
