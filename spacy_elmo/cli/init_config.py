"""`python -m spacy elmo init-config`: write a training config."""

from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import typer

from .common import exit_on_error, require_output
from .options import QUIET, optional

_STDOUT = Path("-")
_PRESET_HELP = (
    "shared_mix: all tasks share one learned mix. task_mix: each task has its own mix. allennlp: "
    "for published weights. word_features: ELMo beside spaCy's features. fine_tune: the same, and "
    "the biLM is trained, too. static_vectors: as word_features, with static vectors as well. "
    "With --pretraining: standard; toy: takes minutes, to try it out; kim_5m or kim_19m: for "
    "about a million words."
)


def init_config(
    output: Path = typer.Argument(
        ..., help="File to write, or - for the standard output", dir_okay=False, allow_dash=True
    ),
    preset: Optional[str] = optional(_PRESET_HELP, "word_features; with --pretraining: standard"),
    pipeline: str = typer.Option("tagger,ner", help="Components that use the vectors, with commas"),
    lang: str = optional("Language code", "the weights' language, or en", default=""),
    weights: Optional[Path] = optional(
        "Folder with weights, a model's name, or an HDF5 file together with --options",
        "the preset's weights",
    ),
    options: Optional[Path] = optional("options.json of the HDF5 file"),
    vectors: Optional[str] = optional("Pipeline with static vectors: a package or a folder"),
    cache: Optional[str] = optional("Folder that keeps the layers of a frozen biLM between epochs"),
    log_mixes: Optional[str] = optional("JSONL file that training writes the learned mixes to"),
    base: Optional[str] = optional(
        "Trained pipeline, such as en_core_web_sm: what is not in --pipeline stays as it is"
    ),
    pretraining: bool = typer.Option(
        False, "--pretraining", help="Write a config for `elmo pretrain` instead"
    ),
    force: bool = typer.Option(False, "--force", "-F", help="Replace OUTPUT if it exists"),
    quiet: bool = QUIET,
) -> None:
    """Write a training config with ELMo in it. The biLM's shape is that of the weights.

    Complete it with `python -m spacy init fill-config`, then run `python -m spacy train`.
    """
    from ..checkpoints.loaders import read_config
    from ..files import write_file
    from ..language_model.evaluation import find_recorded_tokenizer
    from ..pipeline.presets import PRESETS, STATIC_VECTORS, keeps_boundaries, make_config
    from ..pretraining.config import PRETRAINING_PRESETS, make_pretraining_config

    with exit_on_error(quiet) as console:
        if output != _STDOUT:
            if output.exists() and not force:
                raise ValueError(
                    f"'{output}' exists. Add `--force` to replace it, or give another path."
                )
            require_output(output)
        preset = preset or ("standard" if pretraining else "word_features")
        if not pretraining and preset in PRETRAINING_PRESETS:
            raise ValueError(
                f"The preset '{preset}' is for pretraining. Add `--pretraining`; or, for a "
                f"pipeline that uses a biLM, choose one of: {', '.join(PRESETS)}."
            )
        if pretraining and preset in PRESETS:
            raise ValueError(
                f"The preset '{preset}' is for a pipeline that uses a biLM. Omit `--pretraining`; "
                f"or, to pretrain a biLM, choose one of: {', '.join(PRETRAINING_PRESETS)}."
            )
        tokenizer = shape = None
        if options is not None:
            shape = read_config(options, weights)
        elif weights is not None:
            lang, tokenizer = find_recorded_tokenizer(str(weights), lang)
            shape = read_config(weights)
        lang = lang or "en"
        if pretraining:
            config = make_pretraining_config(
                preset,
                lang=lang,
                tokenizer=tokenizer,
                shape=shape,
                init=options or weights,
                init_weights=weights if options else None,
            )
            summary = f"preset {preset}"
            command = "elmo pretrain {} OUTPUT --paths.train TEXT"
        else:
            loader, paths = _find_loader(options, weights)
            if vectors is not None:
                if preset != STATIC_VECTORS:
                    raise ValueError(
                        f"The preset '{preset}' reads no static vectors. Omit `--vectors`, or "
                        "choose the preset static_vectors."
                    )
                paths["vectors"] = vectors
            elif preset == STATIC_VECTORS:
                raise ValueError(
                    f"The preset '{preset}' reads static vectors, but none are given. Add "
                    "`--vectors PIPELINE`, such as en_core_web_md, or choose another preset."
                )
            components = [name.strip() for name in pipeline.split(",") if name.strip()]
            config = make_config(
                preset,
                components,
                lang=lang,
                tokenizer=tokenizer,
                shape=shape,
                loader=loader,
                paths=paths,
                cache=cache,
                log_mixes=log_mixes,
                base=base,
            )
            summary = f"preset {preset}, pipeline {config['nlp']['pipeline']}"
            command = "init fill-config {0} {0}"
            for name in components:
                if keeps_boundaries(preset, name):
                    console.warn(
                        f"With the preset {preset}, '{name}' keeps the sentence boundaries of the "
                        "sentencizer before 'elmo', which joins sentences without final "
                        f"punctuation. To let '{name}' set them, remove the sentencizer, and use "
                        "spacy-elmo.window_spans.v1 as [components.elmo.model.get_spans]."
                    )
        if output == _STDOUT:
            console.show(config.to_str())
            return
        write_file(output, config.to_str().encode("utf-8"))
        console.finish(output, summary=summary)
        console.inform(f"Next: python -m spacy {command.format(output)}")


def _find_loader(
    options: Optional[Path], weights: Optional[Path]
) -> Tuple[Optional[Dict[str, Any]], Dict[str, str]]:
    """The loader's block, None for that of the preset, and values of [paths]."""
    from ..checkpoints.formats import find_name

    if weights is None:
        return None, {}
    if options is not None:
        paths = {"elmo_options": str(options), "elmo_weights": str(weights)}
        return {
            "@misc": "spacy-elmo.AllenNLPLoader.v1",
            "options_path": "${paths.elmo_options}",
            "weights_path": "${paths.elmo_weights}",
        }, paths
    name = find_name(weights)
    if name is not None:
        return {"@misc": "spacy-elmo.BundledLoader.v2", "name": name}, {}
    loader = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": "${paths.elmo_weights}"}
    return loader, {"elmo_weights": str(weights)}
