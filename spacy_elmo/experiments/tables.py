"""Results -> the cells of tables, for the terminal and for reports."""

from typing import Any, Dict, List, NamedTuple, Tuple

from ..figures import name_layers
from .results import show


class Cells(NamedTuple):
    """header (Tuple[str, ...]), rows (List[Tuple[str, ...]]): of a table."""

    header: Tuple[str, ...]
    rows: List[Tuple[str, ...]]


def tabulate_senses(result: Dict[str, Any]) -> Cells:
    """result (Dict[str, Any]): from `train_senses`. RETURNS (Cells): shares of right senses."""
    splits = [split for split in ("tune", "test") if result[split]]
    layers = list(result["tune"]["layers"])
    names = [*name_layers(len(layers) - 1), "average"]
    keys = {
        "first sense": ("first",),
        "most frequent": ("frequent",),
        **{f"nearest, {name}": ("layers", n) for name, n in zip(names, layers)},
        f"layer {result['layer']}, prior {result['prior']}": ("chosen",),
        "the same, from forms alone": ("forms",),
    }

    def read(split: str, path: Tuple[str, ...]) -> str:
        value = result[split]
        for key in path:
            value = value[key]
        return f"{value:.1%}"

    rows = [(name, *(read(split, path) for split in splits)) for name, path in keys.items()]
    return Cells(("right senses", *splits), rows)


def tabulate_probe(result: Dict[str, Any]) -> Cells:
    """result (Dict[str, Any]): from `probe_layers`. RETURNS (Cells): accuracies in percent."""
    splits = result["splits"]
    rows = [("word alone", *(f"{result['frequent'][split]:.2f}" for split in splits))]
    for name, scores in zip(name_layers(len(result["layers"])), result["layers"]):
        rows.append((name, *(show(scores[split]) for split in splits)))
    return Cells(("layer", *splits), rows)
