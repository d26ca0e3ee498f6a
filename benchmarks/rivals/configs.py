"""Training configs of the rows: one way to make vectors in each."""

from collections.abc import Callable
from typing import Any

from common import set_weights
from thinc.api import Config

from spacy_elmo.pipeline.presets import make_config

from .inputs import DEPTHS, Inputs
from .pretraining import make_pretraining_block

# Component and inputs -> config.
Make = Callable[[str, Inputs], Config]


def make_elmo(preset: str, factor: float = 0.0, bilm: str = "biLM") -> Make:
    """RETURNS (Make): With a preset of ELMo and one of the biLMs. With a factor, this is trained,
    too, at this part of the learning rate; its layers are cached where it is frozen."""

    def make(component: str, inputs: Inputs) -> Config:
        weights = inputs.find_weights(bilm)
        config = make_config(preset, [component], **set_weights(weights, "${paths.weights}"))
        config["paths"]["weights"] = weights or None
        config["paths"]["cache"] = str(inputs.work / "cache")
        elmo = config["components"]["elmo"]
        if factor:
            elmo["learn_rate_factor"], elmo["model"]["frozen"] = factor, False
        if elmo["model"]["frozen"]:
            config["initialize"]["components"]["elmo"]["activation_cache"] = {
                "@misc": "spacy-elmo.ActivationCache.v1",
                "path": "${paths.cache}",
                "dtype": "float32",
            }
        return config

    return make


def make_plain(component: str, inputs: Inputs | None = None) -> Config:
    """RETURNS (Config): With spaCy's word features and encoder, as in `word_features`."""
    config = make_config("word_features", [component])
    del config["components"]["elmo"], config["initialize"]["components"]
    config["nlp"]["pipeline"] = [component]
    tok2vec = config["components"][component]["model"]["tok2vec"]
    parts = {key: tok2vec[key] for key in ("embed", "encode")}
    config["components"][component]["model"]["tok2vec"] = {
        "@architectures": "spacy.Tok2Vec.v2",
        **parts,
    }
    return config


def with_vectors(make: Make, name: str) -> Make:
    """RETURNS (Make): The same, with static vectors: where a preset has no block for them, among
    the word features."""

    def make_with(component: str, inputs: Inputs) -> Config:
        config = make(component, inputs)
        tok2vec = config["components"][component]["model"]["tok2vec"]
        if "vectors" not in tok2vec:
            tok2vec["embed"]["include_static_vectors"] = True
        config["paths"]["vectors"] = str(inputs.find(name))
        return config

    return make_with


def make_pretrained(component: str, inputs: Inputs) -> Config:
    """RETURNS (Config): The plain one, from the weights of `spacy pretrain`. As spaCy's templates
    have it, with the tok2vec as a component: that of a parser is not the pretrained layer alone."""
    config = make_plain(component, inputs)
    model = config["components"][component]["model"]
    config["components"]["tok2vec"] = {"factory": "tok2vec", "model": model["tok2vec"]}
    config["nlp"]["pipeline"] = ["tok2vec", component]
    model["tok2vec"] = {
        "@architectures": "spacy.Tok2VecListener.v1",
        "width": model["tok2vec"]["encode"]["width"],
        "upstream": "tok2vec",
    }
    config["paths"]["init_tok2vec"] = str(inputs.find("pretrained"))
    config["initialize"]["init_tok2vec"] = "${paths.init_tok2vec}"
    config["pretraining"] = make_pretraining_block()
    return config


def make_transformer(depth: int) -> Make:
    """RETURNS (Make): A transformer's first layers, frozen, in ELMo's place in
    `word_features`."""

    def make(component: str, inputs: Inputs) -> Config:
        config = _add_transformer(make_plain(component, inputs), inputs, depth)
        preset = make_config("word_features", [component])
        ours = preset["components"][component]["model"]["tok2vec"]
        config["components"][component]["model"]["tok2vec"] = {
            **ours,
            "input": _make_transformer_listener(),
        }
        config["training"]["frozen_components"] = ["transformer"]
        # Listeners of a frozen transformer read what it has written to the doc.
        config["training"]["annotating_components"] = ["transformer"]
        return config

    return make


def make_tuned_transformer(rate: float) -> Make:
    """RETURNS (Make): The whole transformer, trained, and nothing else before the task."""

    def make(component: str, inputs: Inputs) -> Config:
        config = _add_transformer(make_plain(component, inputs), inputs, max(DEPTHS))
        config["components"][component]["model"]["tok2vec"] = _make_transformer_listener()
        # As in spaCy's own template for transformers.
        config["training"]["optimizer"] = {
            "@optimizers": "Adam.v1",
            "L2_is_weight_decay": True,
            "L2": 0.01,
            "grad_clip": 1.0,
            "use_averages": False,
            "learn_rate": {
                "@schedules": "warmup_linear.v1",
                "warmup_steps": 250,
                "total_steps": "${training.max_steps}",
                "initial_rate": rate,
            },
        }
        return config

    return make


def _add_transformer(config: Config, inputs: Inputs, depth: int) -> Config:
    # From a pipeline: spaCy initializes no frozen component.
    config["components"]["transformer"] = {"source": "${paths.transformer}"}
    config["paths"]["transformer"] = str(inputs.find(f"minilm_{depth}"))
    config["nlp"]["pipeline"] = ["transformer", *config["nlp"]["pipeline"]]
    return config


def _make_transformer_listener() -> dict[str, Any]:
    return {
        "@architectures": "spacy-transformers.TransformerListener.v1",
        "grad_factor": 1.0,
        "pooling": {"@layers": "reduce_mean.v1"},
        "upstream": "transformer",
    }
