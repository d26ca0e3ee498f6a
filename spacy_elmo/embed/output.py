"""The folder of a job: its description, the manifest of a finished one, and the vectors in it."""

from pathlib import Path
from typing import Any, Dict, List

from numpy.typing import NDArray

from ..errors import Errors
from ..files import is_system_error, read_json_object
from ..utils import show_reason
from .pipeline import name_column

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = pq = None

# Readers of a folder of Parquet leave out names that begin with an underscore.
JOB, MANIFEST, REJECTS = "_job.json", "_manifest.json", "_rejects.jsonl"
VERSION = 2
COUNTS = ("n_records", "n_rows", "n_tokens", "n_rejects")
_TYPES = {"shard": str, "size": int, "digest": str, "input": str, **dict.fromkeys(COUNTS, int)}


def require_arrow(path: Path) -> None:
    """Check that pyarrow is there, to read or write a file or folder."""
    if pa is None:
        raise ValueError(Errors.EL038.format(purpose=f"'{path}'", package="pyarrow", extra="bulk"))


def is_job_folder(folder: Path) -> bool:
    """Whether a folder holds a job, finished or not."""
    return any((folder / name).is_file() for name in (JOB, MANIFEST))


def read_manifest(folder: Path) -> Dict[str, Any]:
    """Read the description of a finished job: "settings", "pipeline" (see
    `EmbedPipeline.describe`), counts, and "shards": file name, size, digest and counts of each, and
    the digest of its records."""
    if not (folder / MANIFEST).exists():
        raise ValueError(Errors.EL247.format(path=folder, problem="there is no finished job"))
    manifest = read_json_object(folder / MANIFEST)
    shards = manifest.get("shards")
    is_manifest = (
        manifest.get("version") == VERSION
        and all(isinstance(manifest.get(key), dict) for key in ("settings", "pipeline"))
        and all(type(manifest.get(key)) is int for key in COUNTS)
        and isinstance(shards, list)
        and all(isinstance(shard, dict) for shard in shards)
        and all(type(shard.get(key)) is kind for shard in shards for key, kind in _TYPES.items())
        # A manifest may come from a stranger: it names files of its folder only.
        and all(shard["shard"] == Path(shard["shard"]).name for shard in shards)
    )
    if not is_manifest:
        problem = f"{MANIFEST} is of another version or damaged"
        raise ValueError(Errors.EL247.format(path=folder, problem=problem))
    return manifest


class VectorFolder:
    """The output of a finished job whose rows are sentences."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        settings = self.manifest["settings"]
        self._format = settings.get("format")
        if settings.get("unit") != "sentences" or self._format not in ("parquet", "arrow"):
            raise self._make_error(f"its rows are {settings.get('unit')} in {self._format}")
        require_arrow(folder)
        self.shards: List[Dict[str, Any]] = self.manifest["shards"]

    def has(self, layer: int, weights: str) -> bool:
        """Whether there are vectors of a layer by the biLM with this hash."""
        is_same = self.manifest["pipeline"].get("biLM") == weights
        return is_same and str(layer) in self.manifest["settings"].get("layers", [])

    def read_words(self, shard: str) -> List[List[str]]:
        """Read the words of each sentence of a shard."""
        return self._read(shard, "words").cast(pa.list_(pa.string())).to_pylist()

    def read_places(self, shard: str) -> List[str]:
        """Read where each sentence of a shard comes from: file, record and sentence, from 1."""
        columns = (self._read(shard, name).to_pylist() for name in ("source", "record", "sentence"))
        return [f"{s}, record {r + 1:,}, sentence {n + 1:,}" for s, r, n in zip(*columns)]

    def read_vectors(self, shard: str, layer: int) -> NDArray:
        """Read the vectors of a layer in a shard, float32, shape (n_sentences, width)."""
        column = self._read(shard, name_column(str(layer)))
        X = column.flatten().to_numpy(zero_copy_only=False)  # (n_sentences * width,)
        return X.reshape(len(column), -1).astype("float32")

    def _read(self, shard: str, name: str) -> Any:
        """Read a column, which has to be without missing values."""
        path = self.folder / shard
        try:
            if self._format == "parquet":
                with pq.ParquetFile(path) as file:
                    table = file.read(columns=[name])
            else:
                with pa.OSFile(str(path)) as file:
                    table = pa.ipc.open_file(file).read_all().select([name])
            table.validate(full=True)
            column = table[name].combine_chunks()
            is_nested = pa.types.is_nested(column.type)
            if column.null_count or (is_nested and column.flatten().null_count):
                raise ValueError(f"a value of {name} is missing")
            return column
        # Arrow raises errors of all kinds for damaged content.
        except Exception as err:
            if is_system_error(err):
                raise
            raise self._make_error(f"{shard} cannot be read: {show_reason(err)}") from err

    def _make_error(self, problem: str) -> ValueError:
        return ValueError(Errors.EL247.format(path=self.folder, problem=problem))
