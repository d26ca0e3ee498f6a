"""Gold categories as `doc.cats` has them."""

from typing import Dict, Sequence


def make_cats(labels: Sequence[str], chosen: str) -> Dict[str, float]:
    """labels (Sequence[str]): all of them. chosen (str): the right one. RETURNS
    (Dict[str, float]): 1.0 for that, 0.0 for the others."""
    return {label: float(label == chosen) for label in labels}
