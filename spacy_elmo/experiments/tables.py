"""Results -> the cells of tables, for the terminal and for reports."""

from typing import Collection, List, NamedTuple, Tuple

from .figures import name_layers
from .results import Result
from .summary import format_scores

# What layers are compared with, as `train_senses` and `probe_layers` name it.
SENSE_BASELINES = {"first sense": "first", "most frequent": "frequent"}
PROBE_BASELINES = {"word alone": "frequent"}


class Cells(NamedTuple):
    """header (Tuple[str, ...]), rows (List[Tuple[str, ...]]): of a table."""

    header: Tuple[str, ...]
    rows: List[Tuple[str, ...]]


def name_options(options: Collection[str]) -> List[str]:
    """options (Collection[str]): each layer, and behind them their average. RETURNS
    (List[str]): their titles."""
    return [*name_layers(len(options) - 1), "average"]


def tabulate_senses(result: Result) -> Cells:
    """result (Dict[str, Any]): from `train_senses`. RETURNS (Cells): shares of right senses."""
    splits = [split for split in ("tune", "test") if result[split]]
    layers = list(result["tune"]["layers"])
    keys = {
        **{name: (key,) for name, key in SENSE_BASELINES.items()},
        **{f"nearest, {name}": ("layers", n) for name, n in zip(name_options(layers), layers)},
        f"layer {result['layer']}, prior {result['prior']}": ("chosen",),
        "the same, from forms alone": ("forms",),
    }

    def get_share(split: str, path: Tuple[str, ...]) -> str:
        value = result[split]
        for key in path:
            value = value[key]
        return f"{value:.1%}"

    rows = [(name, *(get_share(split, path) for split in splits)) for name, path in keys.items()]
    return Cells(("right senses", *splits), rows)


def tabulate_probe(result: Result) -> Cells:
    """result (Dict[str, Any]): from `probe_layers`. RETURNS (Cells): accuracies in percent."""
    splits = result["splits"]
    rows = [
        (name, *(f"{result[key][split]:.2f}" for split in splits))
        for name, key in PROBE_BASELINES.items()
    ]
    for name, scores in zip(name_layers(len(result["layers"])), result["layers"]):
        rows.append((name, *(format_scores(scores[split]) for split in splits)))
    return Cells(("layer", *splits), rows)
