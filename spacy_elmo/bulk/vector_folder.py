"""Read the vectors of sentences that a job has written."""

from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple

from numpy.typing import NDArray

from ..errors import Errors
from ..files import digest_file, is_system_error
from ..utils import show_reason
from .arrow import pa, pq, require_arrow
from .bulk_settings import name_column
from .job_files import read_manifest


class VectorShard(NamedTuple):
    """path (Path): of the file. digest (str): of its content. n_rows (int): in it."""

    path: Path
    digest: str
    n_rows: int


class VectorFolder:
    """The finished output of a job, of which each row is a sentence.

    folder (Path): of the job.
    RAISES (ValueError): EL254 if its rows are others, EL247 if the job is not finished, EL240
        without pyarrow, EL142 if the manifest is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest: Dict[str, Any] = read_manifest(folder)
        settings = self.manifest["settings"]
        if settings["unit"] != "sentences" or settings["format"] == "spacy":
            problem = f"its rows are {settings['unit']}, in the format {settings['format']}"
            raise self._make_error(problem)
        require_arrow(folder)
        self._is_parquet = settings["format"] == "parquet"

    @property
    def shards(self) -> List[VectorShard]:
        """RETURNS (List[VectorShard]): In the order of the input."""
        return [
            VectorShard(self.folder / shard["shard"], shard["digest"], shard["n_rows"])
            for shard in self.manifest["shards"]
        ]

    def has(self, layer: int, weights: str) -> bool:
        """layer (int): of the biLM. weights (str): hash of its weights. RETURNS (bool): Whether
        there are vectors of it."""
        is_same = self.manifest["pipeline"]["biLM"] == weights
        return is_same and str(layer) in self.manifest["settings"]["layers"]

    def check(self, shard: VectorShard) -> str:
        """shard (VectorShard): one of them. RETURNS (str): its digest. RAISES (ValueError): EL254
        if it is not what was written, EL100 to EL103 if it cannot be read."""
        if digest_file(shard.path) != shard.digest:
            raise self._make_error(f"{shard.path.name} is not what was written")
        return shard.digest

    def _make_error(self, problem: str) -> ValueError:
        return ValueError(Errors.EL254.format(path=self.folder, problem=problem))

    def read_words(self, shard: VectorShard) -> List[List[str]]:
        """shard (VectorShard): one of them. RETURNS (List[List[str]]): words of each sentence.
        RAISES (ValueError): EL254 if there are none. RAISES (OSError): if it cannot be read."""
        with self._reading(shard):
            column = self._read(shard, "words").cast(pa.list_(pa.string())).combine_chunks()
            if column.flatten().null_count:
                raise ValueError("a word is missing")
            return column.to_pylist()

    def read_vectors(self, shard: VectorShard, layer: int) -> NDArray:
        """shard (VectorShard): one of them. layer (int): one that there is. RETURNS (NDArray):
        float32, shape (n_sentences, width). RAISES (ValueError): EL254 if there are none.
        RAISES (OSError): if it cannot be read."""
        with self._reading(shard):
            column = self._read(shard, name_column(str(layer))).combine_chunks()
            X = column.flatten().to_numpy(zero_copy_only=False)  # (n_sentences * width,)
            return X.reshape(len(column), column.type.list_size).astype("float32")

    @contextmanager
    def _reading(self, shard: VectorShard) -> Iterator[None]:
        """RAISES (ValueError): EL254 instead of whatever Arrow raises for foreign content."""
        try:
            yield
        except Exception as err:
            if is_system_error(err):
                raise
            raise self._make_error(f"{shard.path.name} cannot be read: {show_reason(err)}") from err

    def _read(self, shard: VectorShard, name: str) -> Any:
        """RETURNS (pyarrow.ChunkedArray): A column. RAISES (ValueError): if a value is missing."""
        if self._is_parquet:
            with pq.ParquetFile(shard.path) as file:
                table = file.read(columns=[name])
        else:
            with pa.OSFile(str(shard.path)) as file:
                table = pa.ipc.open_file(file).read_all().select([name])
        table.validate(full=True)
        if table[name].null_count:
            raise ValueError(f"a value of {name} is missing")
        return table[name]
