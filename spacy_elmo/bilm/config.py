"""`BiLMConfig`: the shape of a biLM, described in one place."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from ..errors import Errors
from ..utils import show_name, show_value
from .batch import N_CHARACTERS

ACTIVATIONS = ("relu", "tanh")
INPUTS = ("characters", "words", "vectors")
# Beginning and end of word take a character position each.
N_WORD_MARKERS = 2
# Words that every table has: the two boundaries and the unknown word.
N_SPECIAL_WORDS = 3
# The least and the most of each size, far above the largest published biLM (width 1024, 4096 cells,
# 2048 filters up to 7 wide): a description from a stranger cannot ask for much time or memory.
RANGES = {
    "width": (2, 32_768),
    "depth": (1, 100),
    "cell_width": (1, 32_768),
    "char_width": (1, 4_096),
    "n_highway": (0, 100),
    "max_chars": (N_WORD_MARKERS + 1, 65_536),
    "n_words": (0, 100_000_000),
    "vector_width": (0, 32_768),
}
MOST_FILTERS = 16_384
MOST_FILTER_WIDTH = 64
# 16 GB; the largest published biLM has 94 million.
MOST_WEIGHTS = 4_000_000_000
# Beyond it a 32-bit number is infinite.
_MOST_CLIP = 3e38


@dataclass(frozen=True)
class BiLMConfig:
    """Describe a biLM. Built by the architecture, stored with a checkpoint,
    compared by the loaders. The defaults are the small English shape.

    width (int): Width of one layer, both directions together; even.
    depth (int): Number of LSTM layers in each direction.
    cell_width (int): Width of an LSTM cell, before the projection.
    char_width (int): Width of a character embedding.
    filters (Tuple[Tuple[int, int], ...]): (width in characters, number) of each
        group of convolution filters.
    n_highway (int): Number of highway layers after the convolutions.
    max_chars (int): Character positions of a word, its two markers included.
    cell_clip (Optional[float]): Bound of the cell's absolute value, None for none.
    proj_clip (Optional[float]): Bound of the output's absolute value after the
        projection, None for none.
    projection (bool): Whether the LSTM's output is projected from `cell_width`
        to `width // 2`. Without it, the two must be equal.
    skip_connections (bool): Whether an LSTM layer above the first adds its input
        to its output.
    activation (str): "relu" or "tanh", after the max-pool of the convolutions.
    input (str): How a word is read: "characters", "words" (a trained vector of each
        known word) or "vectors" (a given one).
    n_words (int): Words of the table, if no characters are read; else 0.
    vector_width (int): Width of given vectors, with `input = "vectors"`; else 0.
    RAISES (ValueError): EL010 if a value is of another type or out of its range (`RANGES`).

    Source: options.json of bilm-tf (Peters et al. 2018, section 3.4).
    """

    width: int = 512
    depth: int = 2
    cell_width: int = 256
    char_width: int = 16
    filters: Tuple[Tuple[int, int], ...] = (
        (1, 32), (2, 64), (3, 128), (4, 256), (5, 256), (6, 288),
    )  # fmt: skip
    n_highway: int = 1
    max_chars: int = 50
    cell_clip: Optional[float] = None
    proj_clip: Optional[float] = None
    projection: bool = False
    skip_connections: bool = True
    activation: str = "relu"
    input: str = "characters"
    n_words: int = 0
    vector_width: int = 0

    def __post_init__(self) -> None:
        # Configs and JSON have lists; equality needs one form.
        if isinstance(self.filters, (list, tuple)):
            pairs = tuple(tuple(f) if isinstance(f, list) else f for f in self.filters)
            object.__setattr__(self, "filters", pairs)
        for key, expected in _find_problems(self):
            value = getattr(self, key)
            shown = show_name(value) if isinstance(value, str) else show_value(value)
            raise ValueError(Errors.EL010.format(key=key, value=shown, expected=expected))
        # torch takes no integer of more than 64 bits.
        for key in ("cell_clip", "proj_clip"):
            if getattr(self, key) is not None:
                object.__setattr__(self, key, float(getattr(self, key)))

    @property
    def n_layers(self) -> int:
        """Representations of a token: the word layer and each LSTM layer."""
        return self.depth + 1

    @property
    def direction_width(self) -> int:
        """Width of one direction of a layer, and of a word vector."""
        return self.width // 2

    @property
    def n_filters(self) -> int:
        """Number of convolution filters of all widths."""
        return sum(number for _, number in self.filters)

    @property
    def widest_filter(self) -> int:
        """Characters that the widest filter spans."""
        return max(width for width, _ in self.filters)

    @property
    def n_operations(self) -> int:
        """Multiplications and additions of all LSTM layers for a token, both directions: 4 gates
        from input and recurrence, and the projection."""
        n_products = 2 * 4 + int(self.projection)
        return 2 * 2 * self.depth * n_products * self.direction_width * self.cell_width

    @property
    def n_weights(self) -> int:
        """All numbers of the biLM, the keys of a word table included."""
        half, n_filters = self.direction_width, self.n_filters
        lstms = self.n_operations // 2 + 2 * self.depth * 4 * self.cell_width
        if self.input != "characters":
            width = self.vector_width or half
            table = (self.n_words + N_SPECIAL_WORDS) * width + self.n_words
            return lstms + table + (half * (width + 1) if self.input == "vectors" else 0)
        filters = sum(number * (self.char_width * width + 1) for width, number in self.filters)
        highways = self.n_highway * 2 * n_filters * (n_filters + 1)
        return lstms + N_CHARACTERS * self.char_width + filters + highways + half * (n_filters + 1)

    def to_dict(self) -> Dict[str, Any]:
        """The fields in JSON's types, tuples as lists."""
        values = asdict(self)
        values["filters"] = [list(f) for f in self.filters]
        return values

    def differences(self, other: "BiLMConfig", *, but: Sequence[str] = ()) -> List[str]:
        """Name the fields in which two shapes differ, except for some: lines of the form
        "key: ours, theirs", in field order."""
        values, others = self.to_dict(), other.to_dict()
        return [
            f"{f.name}: {values[f.name]}, {others[f.name]}"
            for f in fields(self)
            if f.name not in but and values[f.name] != others[f.name]
        ]


def _find_problems(config: BiLMConfig) -> Iterator[Tuple[str, str]]:
    """Find wrong keys, and the values that are expected of them. Each relies on those before."""
    if config.input not in INPUTS:
        yield "input", f"one of {', '.join(INPUTS)}"
    for key, (least, most) in RANGES.items():
        if not _is_integer(getattr(config, key), least, most):
            yield key, f"an integer from {least} to {most}"
    if config.width % 2:
        yield "width", "an even number: half for each direction"
    filters = config.filters if isinstance(config.filters, tuple) else ()
    if not filters or not all(map(_is_filter, filters)) or config.n_filters > MOST_FILTERS:
        expected = f"widths at most {MOST_FILTER_WIDTH}, and at most {MOST_FILTERS} filters in all"
        yield "filters", f"pairs [width, number] of integers, each at least 1, {expected}"
    if config.max_chars < config.widest_filter:
        yield "max_chars", f"at least {config.widest_filter}, the width of the widest filter"
    for key in ("cell_clip", "proj_clip"):
        if not is_clip(getattr(config, key)):
            yield key, "a number above 0, or null for none"
    for key in ("projection", "skip_connections"):
        if not isinstance(getattr(config, key), bool):
            yield key, "true or false"
    if config.activation not in ACTIVATIONS:
        yield "activation", f"one of {', '.join(ACTIVATIONS)}"
    if config.input == "characters" and config.n_words:
        yield "n_words", "0 with characters, else the words of the table"
    if (config.input == "vectors") != (config.vector_width > 0):
        yield "vector_width", 'the width of the given vectors with input = "vectors", else 0'
    if not config.projection and config.cell_width != config.direction_width:
        yield "cell_width", f"width // 2 = {config.direction_width} when projection is false"
    # The ranges above bound each size, not the product.
    if config.n_weights > MOST_WEIGHTS:
        advice = "lower width, cell_width, depth, filters, n_highway or n_words"
        yield "width", f"at most {MOST_WEIGHTS} weights in all, not {config.n_weights}: {advice}"


def _is_filter(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and _is_integer(value[0], 1, MOST_FILTER_WIDTH)
        and _is_integer(value[1], 1, MOST_FILTERS)
    )


def _is_integer(value: Any, least: int, most: int) -> bool:
    # bool is an int, and JSON's true is not a number.
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_clip(value: Any) -> bool:
    """Whether a bound of absolute values is a finite number above 0, or None for no bound."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None or (is_number and 0 < value <= _MOST_CLIP)
