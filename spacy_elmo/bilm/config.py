"""`BiLMConfig`: the one description of a biLM's shape."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Dict, List, Optional, Tuple

from ..errors import Errors

ACTIVATIONS = ("relu", "tanh")
INPUTS = ("characters", "words", "vectors")
# Beginning and end of word take a character position each.
N_WORD_MARKERS = 2


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
    input (str): What a word enters as: "characters", "words" (a trained vector of each
        known word) or "vectors" (a given one).
    n_words (int): Words of the table, if no characters are read; else 0.
    vector_width (int): Width of given vectors, with `input = "vectors"`; else 0.
    RAISES (ValueError): EL010 if a value is out of its range.

    Source: options.json of bilm-tf (Peters et al. 2018, section 3.4).
    """

    width: int = 256
    depth: int = 2
    cell_width: int = 512
    char_width: int = 16
    filters: Tuple[Tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 128))
    n_highway: int = 1
    max_chars: int = 50
    cell_clip: Optional[float] = None
    proj_clip: Optional[float] = None
    projection: bool = True
    skip_connections: bool = True
    activation: str = "relu"
    input: str = "characters"
    n_words: int = 0
    vector_width: int = 0

    def __post_init__(self) -> None:
        # Configs and JSON hand over lists; equality needs one form.
        object.__setattr__(self, "filters", tuple(tuple(f) for f in self.filters))
        for name in ("width", "depth", "cell_width", "char_width"):
            self._require(name, getattr(self, name) >= 1, "at least 1")
        self._require("width", self.width % 2 == 0, "even: half for each direction")
        self._require("filters", self._filters_valid(), "pairs [width, number], each at least 1")
        self._require("n_highway", self.n_highway >= 0, "at least 0")
        # The markers, one byte, and room for the widest filter.
        least = max(N_WORD_MARKERS + 1, *(w for w, _ in self.filters))
        self._require("max_chars", self.max_chars >= least, f"at least {least}")
        for name in ("cell_clip", "proj_clip"):
            clip = getattr(self, name)
            self._require(name, clip is None or clip > 0, "above 0, or null for none")
        self._require("activation", self.activation in ACTIVATIONS, f"one of {ACTIVATIONS}")
        if self.input not in INPUTS:
            raise ValueError(Errors.EL011.format(value=self.input, known=", ".join(INPUTS)))
        has_table, has_vectors = self.input != "characters", self.input == "vectors"
        self._require(
            "n_words",
            self.n_words >= 0 and (has_table or self.n_words == 0),
            "0 with characters, else the words of the table",
        )
        self._require(
            "vector_width",
            self.vector_width > 0 if has_vectors else self.vector_width == 0,
            'the width of the given vectors with input = "vectors", else 0',
        )
        self._require(
            "cell_width",
            self.projection or self.cell_width == self.direction_width,
            f"width // 2 = {self.direction_width} when projection is false",
        )

    def _filters_valid(self) -> bool:
        return bool(self.filters) and all(
            len(f) == 2 and f[0] >= 1 and f[1] >= 1 for f in self.filters
        )

    def _require(self, key: str, valid: bool, expected: str) -> None:
        if not valid:
            value = getattr(self, key)
            raise ValueError(Errors.EL010.format(key=key, value=value, expected=expected))

    @property
    def n_layers(self) -> int:
        """RETURNS (int): Representations of a token: the word layer and each LSTM layer."""
        return self.depth + 1

    @property
    def direction_width(self) -> int:
        """RETURNS (int): Width of one direction of a layer, and of a word vector."""
        return self.width // 2

    @property
    def n_filters(self) -> int:
        """RETURNS (int): Number of convolution filters of all widths."""
        return sum(number for _, number in self.filters)

    @property
    def widest_filter(self) -> int:
        """RETURNS (int): Characters that the widest filter spans."""
        return max(width for width, _ in self.filters)

    @property
    def n_operations(self) -> int:
        """RETURNS (int): Multiplications and additions of all LSTM layers for a token, both
        directions: 4 gates from input and recurrence, and the projection."""
        inputs = 2 * self.depth * self.direction_width * 4 * self.cell_width
        return 2 * (inputs + self.n_recurrent)

    @property
    def n_recurrent(self) -> int:
        """RETURNS (int): Weights that each step of time needs, all LSTM layers and both
        directions: of the recurrence and of the projection."""
        gates = self.direction_width * 4 * self.cell_width
        projection = self.cell_width * self.direction_width if self.projection else 0
        return 2 * self.depth * (gates + projection)

    def to_dict(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): The fields in JSON's types, tuples as lists."""
        values = asdict(self)
        values["filters"] = [list(f) for f in self.filters]
        return values

    def differences(self, other: "BiLMConfig") -> List[str]:
        """Name the fields in which two shapes differ.

        other (BiLMConfig): The shape to compare with.
        RETURNS (List[str]): Lines of the form "key: ours, theirs", in field order.
        """
        mine, theirs = self.to_dict(), other.to_dict()
        return [
            f"{f.name}: {mine[f.name]}, {theirs[f.name]}"
            for f in fields(self)
            if mine[f.name] != theirs[f.name]
        ]
