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
# More is no config.
_MOST_BYTES = 10_000_000


def load_config(path: Path, overrides: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
    """Read a config. What it leaves out is taken from the template; the blocks
    [nlp.tokenizer], [training.optimizer] and [training.softmax] are taken whole. An [nlp] without a
    tokenizer has the language's own.

    path (Path): the file.
    overrides (Optional[Mapping[str, Any]]): such as {"training.seed": 1}. Another softmax
        than the file's comes without the settings of that one.
    RETURNS (Dict[str, Any]): the sections, interpolated.
    RAISES (ValueError): EL098 if it is no config or has another section, EL090 for a path
        that nothing uses, EL100 to EL103 if it cannot be read.
    """
    given = _parse(path, _decode(path), interpolate=False)
    for section in given:
        if section not in _SECTIONS:
            raise _no_config(path, f"[{section}]")
    config = read_template("pretrain")
    known_paths = tuple(config["paths"])
    _overlay(config, given)
    if "nlp" in given and "tokenizer" not in given["nlp"]:
        del config["nlp"]["tokenizer"]
    kind = (overrides or {}).get("training.softmax.kind")
    if kind is not None and kind != config["training"]["softmax"].get("kind"):
        config["training"]["softmax"] = {"kind": kind}
    text = _write(path, config)
    loaded = dict(_parse(path, text, overrides=dict(overrides or {})))
    unused = [key for key in loaded["paths"] if f"${{paths.{key}}}" not in text]
    check_keys(unused, known_paths, "paths")
    return loaded


def _decode(path: Path) -> str:
    try:
        return read_file(path, _MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError as err:
        raise _no_config(path, err) from err


def _parse(path: Path, text: str, **settings: Any) -> Config:
    """Read what the file says, or what it says over the template."""
    try:
        return Config().from_str(text, **settings)
    # What configparser finds wrong comes as it is, what confection does not expect, too.
    except (ConfigValidationError, configparser.Error, ValueError, KeyError, RecursionError) as err:
        raise _no_config(path, err) from err


def _write(path: Path, config: Config) -> str:
    """Interpolate what the file says and the template."""
    try:
        return config.to_str()
    # A "${" that is no reference is found here only.
    except (ConfigValidationError, configparser.Error, ValueError, KeyError, RecursionError) as err:
        raise _no_config(path, err) from err


def _no_config(path: Path, error: object) -> ValueError:
    return ValueError(Errors.EL098.format(path=path, error=error, known=", ".join(_SECTIONS)))


# Languages whose words no space separates: their own tokenizers are needed.
_WITHOUT_SPACES = ("ja", "th", "zh")


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
