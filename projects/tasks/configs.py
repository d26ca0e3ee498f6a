"""Write two configs for each task, which differ in the tok2vec alone."""

from pathlib import Path
from typing import Any

import typer
from tasks import ENGLISH, choose
from thinc.api import Config

from spacy_elmo.loaders import read_config
from spacy_elmo.presets import make_config


def main(
    output: Path = typer.Argument(..., help="Folder to write"),
    weights: str = typer.Argument(..., help='Folder with the biLM; "" for the bundled one'),
    max_steps: int = typer.Option(2000, help="Updates at most"),
    patience: int = typer.Option(800, help="Updates without a better dev score"),
    eval_frequency: int = typer.Option(200, help="Updates between evaluations"),
    tasks: str = typer.Option(ENGLISH, help="Tasks"),
    cache: str = typer.Option("", help="Folder for layers; all runs share them"),
) -> None:
    """Write OUTPUT/<task>_<elmo or plain>.cfg."""
    output.mkdir(parents=True, exist_ok=True)
    steps = {"max_steps": max_steps, "patience": patience, "eval_frequency": eval_frequency}
    shape, loader = None, None
    if weights:
        shape = read_config(weights)
        loader = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": weights}
    for task, about in choose(tasks).items():
        component = about.component
        config = make_config(
            "word_features",
            [component],
            lang=about.lang,
            shape=shape,
            loader=loader,
        )
        config["training"].update(steps)
        if cache:
            block = config["initialize"].setdefault("components", {}).setdefault("elmo", {})
            block["activation_cache"] = {
                "@misc": "spacy-elmo.ActivationCache.v1",
                "path": cache,
                "dtype": "float32",
            }
        # spaCy's own for some languages needs more packages; the data is tokenized.
        config["nlp"]["tokenizer"] = {"@tokenizers": "spacy.Tokenizer.v1"}
        config.to_disk(output / f"{task}_elmo.cfg", interpolate=False)
        make_plain(config, component).to_disk(output / f"{task}_plain.cfg", interpolate=False)


def make_plain(config: Config, component: str) -> Config:
    """Take ELMo out of a config.

    config (Config): as the preset "word_features" makes it.
    component (str): the component that uses ELMo.
    RETURNS (Config): the same embedding and encoder, without ELMo.
    """
    plain = config.copy()
    model: dict[str, Any] = plain["components"][component]["model"]
    parts = {key: model["tok2vec"][key] for key in ("embed", "encode")}
    model["tok2vec"] = {"@architectures": "spacy.Tok2Vec.v2", **parts}
    del plain["components"]["elmo"]
    plain["initialize"].pop("components", None)
    plain["nlp"]["pipeline"] = [component]
    return plain


if __name__ == "__main__":
    typer.run(main)
