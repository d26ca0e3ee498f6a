"""Where the labels of points go: near them, on no other label and on no point."""

import numpy as np
from numpy.typing import NDArray

# Between places that are tried.
_STEP = 3.0


def place_labels(points: NDArray, size: NDArray, frame: NDArray, *, radius: float = 6.0) -> NDArray:
    """Find a place for the label of each point: the nearest free one.

    points (NDArray): shape (n, 2), inside the frame.
    size (NDArray): width and height of a label, shape (2,), in the unit of the points.
    frame (NDArray): width and height of the frame, shape (2,); it begins at (0, 0).
    radius (float): of the mark at a point, which labels keep off.
    RETURNS (NDArray): centres of the labels, shape (n, 2); a label for which there is no room is
        at its point.
    """
    x, y = (np.arange(side / 2, limit - side / 2, _STEP) for side, limit in zip(size, frame))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)  # (n_places, 2)
    for point in points:
        grid = grid[_lies_off(grid, point, size / 2 + radius)]
    centres = np.array(points, dtype=float).reshape(-1, 2)
    for i, point in enumerate(points):
        if len(grid):
            centres[i] = grid[((grid - point) ** 2).sum(1).argmin()]
            grid = grid[_lies_off(grid, centres[i], size)]
    return centres


def _lies_off(grid: NDArray, centre: NDArray, distance: NDArray) -> NDArray:
    return (np.abs(grid - centre) >= distance).any(1)  # (n_places,)
