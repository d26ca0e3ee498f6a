"""Find and open files of text, compressed or not."""

import gzip
import logging
import lzma
import shutil
import sys
import zlib
from glob import glob, has_magic
from pathlib import Path
from typing import IO, BinaryIO, List, cast

from ..errors import Errors, Warnings
from ..util.atomic import atomic_file

try:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
except ImportError:  # the extra "zstd"
    zstd = None  # type: ignore[assignment]

logger = logging.getLogger("spacy_elmo")

# What reading a damaged file raises.
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, *([zstd.ZstdError] if zstd else []))
COMPRESSIONS = (".gz", ".xz", ".zst")
STDIN = "-"


def find_files(path: str, known: List[str]) -> List[Path]:
    """List the files of a corpus.

    path (str): a file, a folder (all files of known formats below it) or a glob.
    known (List[str]): endings of known formats, without the dot.
    RETURNS (List[Path]): at least one file, sorted by name.
    RAISES (ValueError): EL080 if there is nothing, EL081 for a named file of no known
        format.
    """
    if Path(path).is_dir():
        found = sorted(p for p in Path(path).rglob("*") if p.is_file() and not _is_hidden(p))
        files = [p for p in found if get_format(p) in known]
        others = [p.name for p in found if get_format(p) not in known]
        if others:
            logger.warning(
                Warnings.WL012.format(
                    path=path,
                    n_files=len(others),
                    examples=", ".join(others[:3]),
                    known=", ".join(known),
                )
            )
    elif has_magic(path) and not Path(path).exists():
        files = sorted(Path(name) for name in glob(path, recursive=True) if Path(name).is_file())
    else:
        files = [Path(path)] if Path(path).exists() else []
    if not files:
        raise ValueError(Errors.EL080.format(path=path, known=", ".join(known)))
    for file in files:
        if get_format(file) not in known:
            raise ValueError(Errors.EL081.format(path=file, known=", ".join(known)))
    return files


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".")


def get_format(path: Path) -> str:
    """path (Path): a file. RETURNS (str): The ending of its name without the dot, that of
    a compression left out; "txt" if there is none."""
    suffixes = [s for s in path.suffixes if s not in COMPRESSIONS]
    return suffixes[-1][1:] if suffixes else "txt"


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading, decompressed by the ending of its name.

    path (Path): the file.
    RETURNS (BinaryIO): its bytes.
    RAISES (ValueError): EL082 for .zst without its package.
    """
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    if path.suffix == ".zst":
        if zstd is None:
            raise ValueError(Errors.EL082.format(path=path))
        return cast(BinaryIO, zstd.open(path, "rb"))
    return path.open("rb")


def spool_path(folder: Path) -> Path:
    """folder (Path): a run's. RETURNS (Path): where the standard input is saved."""
    return folder / "stdin.txt"


def spool_stdin(folder: Path, stdin: "IO[bytes] | None" = None) -> Path:
    """Save what comes through the pipe, so that training can start over and go on.

    folder (Path): where to put it.
    stdin (Optional[IO[bytes]]): what to read; the process's own if None.
    RETURNS (Path): the file. If it is there already, nothing is read, and a warning WL011
        says so.
    """
    path = spool_path(folder)
    if path.exists():
        logger.warning(Warnings.WL011.format(path=path))
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as beside, beside.open("wb") as file:
        shutil.copyfileobj(stdin or sys.stdin.buffer, file)
    return path
