"""pyarrow, which is an extra ("bulk")."""

from pathlib import Path

from ..errors import Errors

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError:
    pa = pc = pq = None


def require_arrow(path: Path) -> None:
    """path (Path): to be read or written. RAISES (ValueError): EL240 if there is no pyarrow."""
    if pa is None:
        raise ValueError(Errors.EL240.format(path=path))
