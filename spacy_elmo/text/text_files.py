"""Find and open files of text, compressed or not."""

import gzip
import logging
import lzma
import os
import sys
import zlib
from glob import glob, has_magic
from pathlib import Path
from typing import BinaryIO, Callable, Iterator, List, Optional, cast

from ..errors import Errors, Warnings
from ..files import require_file
from ..utils import count_things

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


def is_hidden(path: Path) -> bool:
    """path (Path): a file, from the folder on that is searched. RETURNS (bool): Whether its name,
    or that of a folder which it is in, says that it is no text."""
    return any(part.startswith(".") for part in path.parts)


def find_files(
    path: str,
    known: List[str],
    is_excluded: Callable[[Path], bool] = is_hidden,
    but: Optional[Path] = None,
    *,
    may_be_none: bool = False,
) -> List[Path]:
    """List the files of a corpus.

    path (str): a file, a folder (all files of known formats below it) or a glob.
    known (List[str]): endings of known formats, without the dot.
    is_excluded (Callable[[Path], bool]): which files below a folder are left out, as paths from
        it on.
    but (Optional[Path]): a folder that a program writes into: what is in there, by whatever path,
        is left out.
    may_be_none (bool): whether a folder or glob without any file is no error.
    RETURNS (List[Path]): at least one file, unless it may be none; sorted by name.
    RAISES (ValueError): EL080 if there is nothing, EL304 if all is in `but`, EL081 for a named
        file of no known format, EL101 for a pipe or a device: text is read more than once; EL103
        for a folder that may not be read.
    """
    is_folder = os.path.isdir(path)
    if is_folder:
        folder = Path(path)
        found = sorted(_walk(folder, lambda path: is_excluded(path.relative_to(folder))))
    elif has_magic(path) and not os.path.exists(path):
        found = sorted(Path(name) for name in glob(path, recursive=True) if Path(name).is_file())
    else:
        found = [Path(path)] if os.path.exists(path) else []
    found = found if but is None else _list_outside(found, path, but)
    files = [p for p in found if get_format(p) in known] if is_folder else found
    if len(files) < len(found):
        others = [p.name for p in found if get_format(p) not in known]
        logger.warning(
            Warnings.WL012.format(
                path=path,
                n_files=count_things(len(others), "file"),
                examples=", ".join(others[:3]),
                known=", ".join(known),
            )
        )
    if not files and not (may_be_none and (is_folder or has_magic(path))):
        raise ValueError(Errors.EL080.format(path=path, known=", ".join(known)))
    for file in files:
        if get_format(file) not in known:
            raise ValueError(Errors.EL081.format(path=file, known=", ".join(known)))
        require_file(file)
    return files


def _walk(folder: Path, is_excluded: Callable[[Path], bool]) -> Iterator[Path]:
    """YIELDS (Path): Files below a folder, also below links to other folders, each folder once.
    RAISES (ValueError): EL103 for a folder that may not be read: its text would be missing."""

    def refuse(err: OSError) -> None:
        raise ValueError(Errors.EL103.format(path=err.filename, error=err.strerror)) from err

    seen = set()
    for parent, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        real = os.path.realpath(parent)
        # Links may lead back, or to a folder that comes by its own name, too, which is first.
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        below = [path for name in folders if not is_excluded(path := Path(parent, name))]
        folders[:] = [path.name for path in sorted(below, key=lambda p: (p.is_symlink(), p))]
        files = [Path(parent, name) for name in names]
        yield from (path for path in files if path.is_file() and not is_excluded(path))


def _list_outside(files: List[Path], path: str, folder: Path) -> List[Path]:
    """RETURNS (List[Path]): Those that are not below a folder. RAISES (ValueError): EL304 if there
    were some, and all are."""
    written = folder.resolve()
    outside = [file for file in files if written not in file.resolve().parents]
    if files and not outside:
        raise ValueError(Errors.EL304.format(path=path, folder=folder))
    return outside


def get_format(path: Path) -> str:
    """path (Path): a file. RETURNS (str): The ending of its name without the dot, that of
    a compression left out; "txt" if there is none."""
    suffixes = [s for s in path.suffixes if s not in COMPRESSIONS]
    return suffixes[-1][1:] if suffixes else "txt"


def open_binary(path: Path, raw: Optional[BinaryIO] = None) -> BinaryIO:
    """Open a file for reading, decompressed by the ending of its name.

    path (Path): the file.
    raw (Optional[BinaryIO]): its bytes as they are stored, if it is open already.
    RETURNS (BinaryIO): its bytes.
    RAISES (ValueError): EL082 for .zst without its package.
    """
    stored = path if raw is None else raw
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(stored, "rb"))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(stored, "rb"))
    if path.suffix == ".zst":
        if zstd is None:
            raise ValueError(Errors.EL082.format(path=path))
        return cast(BinaryIO, zstd.open(stored, "rb"))
    return path.open("rb") if raw is None else raw
