"""Find files of text, open them, compressed or not, and decode UTF-8."""

import codecs
import gzip
import logging
import lzma
import os
import re
import sys
import zlib
from glob import glob, has_magic
from pathlib import Path
from typing import BinaryIO, Callable, Iterator, List, Optional, Tuple, cast

from ..errors import Errors, Warnings
from ..files import require_file
from ..registry import corpus_readers
from ..utils import count_things

try:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
except ImportError:  # the extra "zstd"
    zstd = None  # type: ignore[assignment]

logger = logging.getLogger("spacy_elmo")

# Errors that are raised while a damaged file is read.
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, *([zstd.ZstdError] if zstd else []))
COMPRESSIONS = (".gz", ".xz", ".zst")
# The mark (BOM) of UTF-8: in front of a file, and inside of files that were joined.
BOM = "\ufeff"
# Bytes around a wrong one that are inspected.
_N_AROUND = 2048
# Share of zero bytes that UTF-16 has at least: its spaces have one, whatever the script.
_MIN_ZEROS = 0.02
# The first bytes of files in other formats, their names, and what to do.
_CONVERT = "Convert it, such as with `iconv -f {} -t UTF-8`"
_DECOMPRESS = "Give its name the ending {}"
_SIGNATURES = (
    # UTF-32's mark begins as UTF-16's does.
    (codecs.BOM_UTF32_LE, "UTF-32LE with a mark (BOM)", _CONVERT.format("UTF-32LE")),
    (codecs.BOM_UTF32_BE, "UTF-32BE with a mark (BOM)", _CONVERT.format("UTF-32BE")),
    (codecs.BOM_UTF16_LE, "UTF-16LE with a mark (BOM)", _CONVERT.format("UTF-16LE")),
    (codecs.BOM_UTF16_BE, "UTF-16BE with a mark (BOM)", _CONVERT.format("UTF-16BE")),
    (b"\x1f\x8b", "gzip data", _DECOMPRESS.format(".gz")),
    (b"\xfd7zXZ\0", "xz data", _DECOMPRESS.format(".xz")),
    (b"\x28\xb5\x2f\xfd", "zstd data", _DECOMPRESS.format(".zst")),
    (b"BZh", "bzip2 data", "Decompress it, or compress it as .gz, .xz or .zst"),
    (b"PK\x03\x04", "a ZIP archive (or .docx, .xlsx, .epub)", "Extract the text from it"),
    (b"%PDF-", "a PDF", "Extract the text from it"),
)


def is_hidden(path: Path) -> bool:
    """Whether the name of a file, or of a folder above it, begins with a dot."""
    return any(part.startswith(".") for part in path.parts)


def find_files(
    path: str,
    known: Optional[List[str]] = None,
    is_excluded: Callable[[Path], bool] = is_hidden,
    but: Optional[Path] = None,
    *,
    may_be_none: bool = False,
) -> List[Path]:
    """List the files of a file, folder or glob, sorted by name, without those that `is_excluded`,
    and those in the folder `but`, into which a program writes. RAISES (ValueError): EL080 if there
    is no file, EL081 for a named file of an unknown format, EL100 for a pipe (text is read more
    than once), EL103 for a folder that may not be read."""
    known = sorted(corpus_readers.get_all()) if known is None else known
    endings = ", ".join(known)
    is_folder = os.path.isdir(path)
    if is_folder:
        folder = Path(path)
        found = sorted(_walk(folder, lambda path: is_excluded(path.relative_to(folder))))
    elif has_magic(path) and not os.path.exists(path):
        found = sorted(Path(name) for name in glob(path, recursive=True) if Path(name).is_file())
    else:
        found = [Path(path)] if os.path.exists(path) else []
    if but is not None:
        written = but.resolve()
        found = [file for file in found if written not in file.resolve().parents]
    others = [file for file in found if get_format(file) not in known]
    if others and not is_folder:
        raise ValueError(Errors.EL081.format(path=others[0], known=endings))
    if others:
        n_files, examples = count_things(len(others), "file"), ", ".join(p.name for p in others[:3])
        text = Warnings.WL012.format(path=path, n_files=n_files, examples=examples, known=endings)
        logger.warning(text)
    files = [file for file in found if get_format(file) in known]
    if not files and not (may_be_none and (is_folder or has_magic(path))):
        raise ValueError(Errors.EL080.format(path=path, known=endings))
    for file in files:
        require_file(file)
    return files


def _walk(folder: Path, is_excluded: Callable[[Path], bool]) -> Iterator[Path]:
    """Find files below a folder, also below links to other folders, each folder once."""

    def refuse(err: OSError) -> None:
        # Its text would be missing.
        raise ValueError(Errors.EL103.format(path=err.filename, error=err.strerror)) from err

    seen = set()
    for parent, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        real = os.path.realpath(parent)
        # A link may lead back, or to a folder that is found by its own name first.
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        below = [path for name in folders if not is_excluded(path := Path(parent, name))]
        folders[:] = [path.name for path in sorted(below, key=lambda p: (p.is_symlink(), p))]
        files = [Path(parent, name) for name in names]
        yield from (path for path in files if path.is_file() and not is_excluded(path))


def get_format(path: Path) -> str:
    """Get the ending of a file's name, without the dot and without that of a compression; "txt"
    without one."""
    suffixes = [s for s in path.suffixes if s not in COMPRESSIONS]
    return suffixes[-1][1:] if suffixes else "txt"


def open_binary(path: Path, raw: Optional[BinaryIO] = None) -> BinaryIO:
    """Open a file for reading, decompressed by the ending of its name. `raw` is the file of the
    stored bytes, if it is open already."""
    stored = path if raw is None else raw
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(stored, "rb"))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(stored, "rb"))
    if path.suffix == ".zst":
        if zstd is None:
            text = Errors.EL038.format(purpose=f"'{path}'", package="backports.zstd", extra="zstd")
            raise ValueError(text)
        return cast(BinaryIO, zstd.open(stored, "rb"))
    return path.open("rb") if raw is None else raw


def decode(line: bytes, path: Path, offset: int) -> str:
    """Decode a part of a file that begins at `offset` (in decompressed bytes) and has whole
    characters. RAISES (ValueError): EL155 if it is not UTF-8, or contains NUL."""
    try:
        if b"\0" not in line:
            return line.decode("utf-8")
        line.partition(b"\0")[0].decode("utf-8")
        wrong = line.find(b"\0")
    except UnicodeDecodeError as err:
        wrong = err.start
    place = offset + wrong
    start = max(0, place - _N_AROUND)
    with open_binary(path) as file:
        head = file.read(8)
        file.seek(0)
        number, left = 1, start
        while left and (part := file.read(min(1 << 20, left))):
            number += part.count(b"\n")
            left -= len(part)
        sample = file.read(2 * _N_AROUND)
    number += sample[: place - start].count(b"\n")
    guess, remedy = _guess_encoding(head, sample, start)
    details = {"byte": place, "line": number, "found": f"0x{sample[place - start]:02x}"}
    raise ValueError(Errors.EL155.format(path=path, guess=guess, remedy=remedy, **details))


def _guess_encoding(head: bytes, sample: bytes, start: int) -> Tuple[str, str]:
    """Guess the format of a file, and what to do, from its first bytes and a sample around a wrong
    byte, which begins at `start`."""
    for signature, kind, remedy in _SIGNATURES:
        if head.startswith(signature):
            return kind, remedy
    n_zeros = sample.count(0)
    text = sample.decode("utf-8", "replace")
    n_wrong = text.count("\ufffd")
    n_right = sum(not char.isascii() for char in text) - n_wrong
    n_control = sum(byte < 0x20 and byte not in b"\t\n\r\f\0" for byte in sample)
    if n_zeros > max(1, _MIN_ZEROS * len(sample)) and n_control <= n_zeros:
        # The high bytes of spaces and of ASCII are zero: the second of two in little-endian.
        n_even = sample[start % 2 :: 2].count(0)
        name = "UTF-16BE" if 2 * n_even > n_zeros else "UTF-16LE"
        return name, _CONVERT.format(name)
    if n_control > 0.05 * len(sample):
        return "no text at all", "Give a text"
    if n_zeros:
        return "text with NUL in it", "Remove that, such as with `tr -d '\\000'`"
    if n_right > n_wrong:
        remedy = "Drop the damaged bytes, such as with `iconv -c -f UTF-8 -t UTF-8`"
        return "UTF-8 with damaged bytes in it", remedy
    # Accented letters stand alone in latin-1; other scripts use high bytes throughout.
    runs = re.findall(rb"[\x80-\xff]+", sample)
    if sum(map(len, runs)) < 2 * len(runs):
        return "latin-1 or cp1252", _CONVERT.format("CP1252")
    kind = "an encoding of another script, such as EUC-KR, GB18030, Shift-JIS or cp1251"
    return kind, _CONVERT.format("EUC-KR")
