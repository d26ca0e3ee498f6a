"""Read pretraining configs: spaCy's format, our sections."""

import configparser
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from confection import Config, ConfigValidationError

from ..bilm.config import BiLMConfig
from ..errors import Errors
from ..files import read_file
from ..text.languages import require_language
from ..utils import read_template
from .config import check_keys

PRETRAINING_PRESETS = ("standard", "toy", "kim_5m", "kim_19m")
_SECTIONS = ("paths", "nlp", "bilm", "corpus", "training")
_MOST_BYTES = 10_000_000
# Languages whose words no space separates: they need their own tokenizers.
_WITHOUT_SPACES = ("ja", "th", "zh")


def load_config(path: Path, overrides: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
    """Read a config. Missing keys are taken from the template; the blocks [nlp.tokenizer],
    [training.optimizer] and [training.softmax] are replaced as a whole. Without a tokenizer,
    [nlp] has the one of the language.

    path (Path): the file.
    overrides (Optional[Mapping[str, Any]]): such as {"training.seed": 1}. Another softmax
        than in the file starts without the settings of that one.
    RETURNS (Dict[str, Any]): the sections, interpolated.
    RAISES (ValueError): EL098 if it is not a config or has another section, EL090 for an
        unused path, EL100 to EL103 if it cannot be read.
    """
    overrides = dict(overrides or {})
    try:
        given = Config().from_str(read_file(path, _MOST_BYTES).decode("utf-8"), interpolate=False)
        unknown = [section for section in given if section not in _SECTIONS]
        if unknown:
            raise configparser.Error(f"[{unknown[0]}]")
        config = read_template("pretrain")
        known_paths = tuple(config["paths"])
        _overlay(config, given)
        if "nlp" in given and "tokenizer" not in given["nlp"]:
            del config["nlp"]["tokenizer"]
        kind = overrides.get("training.softmax.kind", config["training"]["softmax"].get("kind"))
        if kind != config["training"]["softmax"].get("kind"):
            config["training"]["softmax"] = {"kind": kind}
        text = config.to_str()
        loaded = dict(Config().from_str(text, overrides=overrides))
    # confection raises KeyError and RecursionError for impossible references.
    except (ConfigValidationError, configparser.Error, ValueError, KeyError, RecursionError) as err:
        if str(err).startswith("[EL"):
            raise
        known = ", ".join(_SECTIONS)
        raise ValueError(Errors.EL098.format(path=path, error=err, known=known)) from err
    unused = [key for key in loaded["paths"] if f"${{paths.{key}}}" not in text]
    check_keys(unused, known_paths, "paths")
    return loaded


def make_pretraining_config(
    preset: str = "standard",
    *,
    lang: str = "en",
    tokenizer: Optional[Dict[str, Any]] = None,
    shape: Optional[BiLMConfig] = None,
    init: Optional[Path] = None,
    init_weights: Optional[Path] = None,
) -> Config:
    """Make a pretraining config.

    preset (str): one of `PRETRAINING_PRESETS`.
    lang (str): language code.
    tokenizer (Optional[Dict[str, Any]]): block of [nlp.tokenizer]; {} for that of the language,
        None for the preset's.
    shape (Optional[BiLMConfig]): another shape than the preset's.
    init (Optional[Path]): weights to start from, which have that shape.
    init_weights (Optional[Path]): the HDF5 file, if `init` is an options.json.
    RETURNS (Config): all sections, not interpolated.
    RAISES (ValueError): EL060 for an unknown preset, EL161 for an unknown language.
    """
    require_language(lang)
    if preset not in PRETRAINING_PRESETS:
        known = ", ".join(PRETRAINING_PRESETS)
        raise ValueError(Errors.EL060.format(preset=preset, presets=known))
    config = read_template("pretrain")
    if preset != "standard":
        _overlay(config, read_template(preset))
    config["nlp"]["lang"] = lang
    if tokenizer is None and lang in _WITHOUT_SPACES:
        tokenizer = {}
    if tokenizer:
        config["nlp"]["tokenizer"] = tokenizer
    elif tokenizer is not None:
        del config["nlp"]["tokenizer"]
    if shape is not None:
        config["bilm"].update(shape.to_dict())
    if init is not None:
        config["paths"]["init"] = str(init)
    if init_weights is not None:
        config["paths"]["init_weights"] = str(init_weights)
    return config


def _overlay(config: Config, given: Config) -> None:
    """Replace the keys that are given. A block below a section is one key."""
    for section, block in given.items():
        config.setdefault(section, {}).update(block)
