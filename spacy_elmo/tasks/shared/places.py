"""Where something stands in a doc."""

from typing import Tuple

# Start and end, tokens of the doc, the end not included.
Place = Tuple[int, int]
