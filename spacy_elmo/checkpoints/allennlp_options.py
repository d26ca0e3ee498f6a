"""options.json of AllenNLP / bilm-tf -> the shape of a biLM.

Sources: bilm-tf `model.py` and `training.py`, AllenNLP `elmo.py`.
"""

from pathlib import Path
from typing import Any, Dict, Optional

from ..bilm.batch import N_CHARACTERS
from ..bilm.config import RANGES, BiLMConfig, is_clip
from ..errors import Errors
from ..files import ContentError, parse_json_object, read_file
from ..utils import show_reason, show_value

# Options of a training run, its settings included, have 2 kB.
_MOST_BYTES = 1_000_000


class _Block:
    """An object of options.json, whose values are asked for with the type that they need.

    values (Any): the object.
    name (str): its key; "" for the whole.
    source (str): the file, for messages.
    RAISES (ValueError): EL036 if it is no object; from all methods for another value.
    """

    def __init__(self, values: Any, name: str, source: str) -> None:
        self.name = name
        self.source = source
        if not isinstance(values, dict):
            self.refuse(f"{name} = {show_value(values)}, expected an object {{...}}")
        self.values: Dict[str, Any] = values

    def refuse(self, problem: str) -> None:
        raise ValueError(Errors.EL036.format(source=self.source, problem=problem))

    def require(self, key: str, is_possible: bool, expected: str) -> None:
        if not is_possible:
            place = f"{self.name}.{key}" if self.name else key
            self.refuse(f"{place} = {show_value(self.values[key])}, expected {expected}")

    def get(self, key: str) -> Any:
        if key not in self.values:
            self.refuse(f"no '{key}' in {self.name}" if self.name else f"no '{key}'")
        return self.values[key]

    def block(self, key: str) -> "_Block":
        return _Block(self.get(key), f"{self.name}.{key}" if self.name else key, self.source)

    def integer(self, key: str, least: int, most: int, default: Optional[int] = None) -> int:
        if default is not None and key not in self.values:
            return default
        value = self.get(key)
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        self.require(
            key, is_integer and least <= value <= most, f"an integer from {least} to {most}"
        )
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        self.require(key, isinstance(value, bool), "true or false")
        return value

    def clip(self, key: str) -> Optional[float]:
        value = self.values.get(key)
        # bilm-tf leaves a clip out with null, AllenNLP with 0 too.
        if value == 0 and not isinstance(value, bool):
            return None
        self.require(key, is_clip(value), "a number above 0, or null or 0 for none")
        return value


def read_options_file(path: Path) -> Dict[str, Any]:
    """path (Path): options.json. RETURNS (Dict[str, Any]): its content. RAISES (ValueError):
    EL100 to EL103 if it cannot be read, EL032 if it is no JSON object."""
    try:
        return parse_json_object(read_file(path, _MOST_BYTES))
    except ContentError as err:
        raise ValueError(Errors.EL032.format(path=path, error=err)) from err


def config_from_options(options: Dict[str, Any], source: str, n_words: int = 0) -> BiLMConfig:
    """Read a shape from options, tolerant of all that bilm-tf accepts.

    options (Dict[str, Any]): the content of options.json.
    source (str): the file, for messages.
    n_words (int): words of a model that reads no characters, the special ones left out.
    RETURNS (BiLMConfig): the shape.
    RAISES (ValueError): EL036 for a missing or impossible option, EL037 for a model
        of words without words.
    """
    whole = _Block(options, "", source)
    if "char_cnn" not in options and n_words == 0:
        raise ValueError(Errors.EL037.format(source=source))
    if not whole.flag("bidirectional", True):
        whole.refuse("bidirectional is false")
    shape = _read_lstm(whole.block("lstm"))
    if "char_cnn" in options:
        shape.update(_read_char_cnn(whole.block("char_cnn")))
    else:
        shape.update(input="words", n_words=n_words)
    try:
        return BiLMConfig(**shape)
    except ValueError as err:
        raise ValueError(Errors.EL036.format(source=source, problem=show_reason(err))) from err


def _read_lstm(lstm: _Block) -> Dict[str, Any]:
    width = lstm.integer("projection_dim", 1, RANGES["width"][1] // 2)
    cell_width = lstm.integer("dim", *RANGES["cell_width"])
    if cell_width < width:
        lstm.refuse(f"dim {cell_width} is below projection_dim {width}")
    return {
        "width": 2 * width,
        "depth": lstm.integer("n_layers", *RANGES["depth"], default=1),
        "cell_width": cell_width,
        "cell_clip": lstm.clip("cell_clip"),
        "proj_clip": lstm.clip("proj_clip"),
        # bilm-tf builds a plain LSTM cell where there is nothing to project down to.
        "projection": cell_width > width,
        "skip_connections": lstm.flag("use_skip_connections", False),
    }


def _read_char_cnn(char_cnn: _Block) -> Dict[str, Any]:
    # 262 in released options (row 0 of the reader's table counted), 261 in training's.
    # A training configuration may leave it 0, to be filled in by the trainer.
    n_characters = char_cnn.integer("n_characters", 0, 1 << 31, default=0) or N_CHARACTERS
    if n_characters not in (N_CHARACTERS, N_CHARACTERS + 1):
        char_cnn.refuse(f"n_characters is {n_characters}, neither 261 nor 262")
    has_highway = char_cnn.values.get("n_highway") is not None
    return {
        "char_width": char_cnn.block("embedding").integer("dim", *RANGES["char_width"]),
        "filters": char_cnn.get("filters"),
        "n_highway": char_cnn.integer("n_highway", *RANGES["n_highway"]) if has_highway else 0,
        "max_chars": char_cnn.integer("max_characters_per_token", *RANGES["max_chars"]),
        "activation": char_cnn.values.get("activation", "relu"),
    }
