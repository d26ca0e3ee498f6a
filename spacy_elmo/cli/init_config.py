"""`python -m spacy elmo init-config`: write a training config."""

from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import typer
from wasabi import msg

from .util import exit_on_error

_PRESET_HELP = (
    "shared_mix: one learned mix for all tasks. task_mix: one for each task. allennlp: "
    "published weights. fine_tune: the biLM trains too. word_features: ELMo beside "
    "spaCy's own features."
)


def init_config(
    output: Path = typer.Argument(..., help="File to write", dir_okay=False),
    preset: str = typer.Option("task_mix", help=_PRESET_HELP),
    pipeline: str = typer.Option("tagger,ner", help="Components that use the vectors"),
    lang: str = typer.Option("en", help="Language code"),
    weights: Optional[Path] = typer.Option(
        None, help="Folder with weights, or an HDF5 file together with --options"
    ),
    options: Optional[Path] = typer.Option(None, help="options.json of the HDF5 file"),
) -> None:
    """Write a training config with ELMo in it, the shape filled in from the weights.

    Complete it with `python -m spacy init fill-config`, then `python -m spacy train`.
    """
    from ..loaders import read_config
    from ..presets import make_config

    with exit_on_error():
        path = options or weights
        shape = None
        if path is not None:
            shape = read_config(path, weights if options else None)
        loader, paths = _find_loader(preset, options, weights)
        names = [name.strip() for name in pipeline.split(",") if name.strip()]
        config = make_config(preset, names, lang=lang, shape=shape, loader=loader, paths=paths)
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
