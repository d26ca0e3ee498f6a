"""Mutations of what JSON and msgpack hold: nested lists and tables with values."""

import copy
from random import Random
from typing import Any, Callable, Iterator, List, Tuple

# Values that readers may not have thought of.
VALUES: Tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 255, 65_536, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1,
    -(2**63), 2**64 - 1, 0.0, -0.0, 0.5, 1e-300, 1e308, -1e308, float("inf"), float("nan"), "", " ",
    "\0", "\ud800", "\ufeff", "é", "x" * 3000, "../x", "/", "0", "-1", "1e9", "null", [], {}, [[]],
    [None], [0], [""], {"": None}, {"x": 1}, [[1, 2], [3]], b"", b"\0",
)  # fmt: skip
_DEEP = 1500
# Where a value is, and how to set another one, or to remove it.
Place = Tuple[Any, Any]


def list_places(tree: Any) -> List[Place]:
    """All (container, key or index) of a tree."""
    places: List[Place] = []
    rest = [tree]
    while rest:
        node = rest.pop()
        for key, value in _items(node):
            places.append((node, key))
            rest.append(value)
    return places


def _items(node: Any) -> Iterator[Tuple[Any, Any]]:
    if isinstance(node, dict):
        yield from list(node.items())
    elif isinstance(node, list):
        yield from enumerate(list(node))


def mutate_tree(tree: Any, rng: Random, mutate_bytes: Callable[[bytes], bytes]) -> Any:
    """A copy of a tree with one value changed, moved, added or removed.

    tree (Any): lists and tables; not changed.
    rng (Random): what is drawn from.
    mutate_bytes (Callable[[bytes], bytes]): changes bytes and texts in it.
    """
    tree = copy.deepcopy(tree)
    places = list_places(tree)
    if not places:
        return mutate_value(tree, rng, mutate_bytes)
    node, key = rng.choice(places)
    kind = rng.choice(["value"] * 5 + ["remove", "double", "swap", "rename", "nest"])
    if kind == "value":
        node[key] = mutate_value(node[key], rng, mutate_bytes)
    elif kind == "remove":
        del node[key]
    elif kind == "double" and isinstance(node, list):
        node[key:key] = [copy.deepcopy(node[key])] * rng.choice([1, 2, 50])
    elif kind == "swap":
        other, other_key = rng.choice(places)
        node[key], other[other_key] = copy.deepcopy(other[other_key]), copy.deepcopy(node[key])
    elif kind == "rename" and isinstance(node, dict):
        node[rng.choice([f"{key}x", "", "x", *map(str, node)])] = node.pop(key)
    elif kind == "nest":
        node[key] = _nest(node[key], rng.choice([1, 2, _DEEP]))
    return tree


def _nest(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def mutate_value(value: Any, rng: Random, mutate_bytes: Callable[[bytes], bytes]) -> Any:
    """Another value; of the same type, half of the time."""
    if rng.random() < 0.5:
        return copy.deepcopy(rng.choice(VALUES))
    if isinstance(value, bytes):
        return mutate_bytes(value)
    if isinstance(value, str):
        return mutate_bytes(value.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        changed = (value + 1, value - 1, -value, 2 * value, value * 1000, value ^ 1 << 31, 10**18)
        return rng.choice(changed)
    if isinstance(value, float):
        return rng.choice([-value, value * 1e6, value / 1e6, float("nan"), float("inf"), int(1e9)])
    return copy.deepcopy(rng.choice(VALUES))
