"""Lines of published data, and what is wrong with one."""

from pathlib import Path
from typing import Iterator, List, Tuple

from ..errors import Errors
from ..files import require_file
from .encoding import BOM, decode
from .text_files import DAMAGED, open_binary

# Of a line: more is no line of text.
_MOST_BYTES = 10_000_000

Line = Tuple[int, str]


def read_lines(path: Path) -> Iterator[Line]:
    """Read the lines of a file.

    path (Path): in UTF-8, plain or .gz, .xz, .zst.
    YIELDS (Line): the number of the line, from 1, and its text without the end.
    RAISES (ValueError): EL083 for a damaged file, EL155 if it is not in UTF-8, EL197 for a line
        of 10 MB or with ends that are not read, EL082 for .zst without its package, EL100 and
        EL101 if there is no file.
    """
    require_file(path)
    number, offset = 0, 0
    try:
        with open_binary(path) as file:
            while content := file.readline(_MOST_BYTES):
                number += 1
                if len(content) == _MOST_BYTES:
                    raise line_error(path, number, f"it has {_MOST_BYTES} bytes or more")
                text = decode(content, path, offset).strip(f"\r\n{BOM}")
                if number == 1 and "\r" in text:
                    raise line_error(path, number, "it ends with \\r alone: \\n or \\r\\n is read")
                yield number, text
                offset += len(content)
    except DAMAGED as err:
        raise ValueError(Errors.EL083.format(path=path, error=err)) from err


def read_blocks(path: Path) -> Iterator[List[Line]]:
    """Read a file whose blocks of lines have empty lines between, such as sentences in columns.

    path (Path): as in `read_lines`.
    YIELDS (List[Line]): the lines of a block, at least one. RAISES (ValueError): as `read_lines`.
    """
    block: List[Line] = []
    for number, text in read_lines(path):
        if text.strip():
            block.append((number, text))
        elif block:
            yield block
            block = []
    if block:
        yield block


def split_cells(text: str) -> List[str]:
    """text (str): a line of columns. RETURNS (List[str]): its cells, by tabs if there are any, else
    by spaces. Spaces of other kinds are parts of words, such as that of "10 000"."""
    stripped = text.strip(" \t\r\n")
    if "\t" in stripped:
        # A first cell may be empty.
        return text.rstrip(" \t\r\n").split("\t")
    return split_spaces(text)


def split_spaces(text: str) -> List[str]:
    """text (str): a line of columns. RETURNS (List[str]): what is between spaces and tabs, however
    many; spaces of other kinds are parts of words."""
    return [cell for cell in text.strip("\r\n").replace("\t", " ").split(" ") if cell]


def line_error(path: Path, number: int, problem: str) -> ValueError:
    """path (Path): a file. number (int): of the line, from 1. problem (str): what is wrong with
    it, a clause. RETURNS (ValueError): EL197, to be raised."""
    return ValueError(Errors.EL197.format(path=path, line=number, problem=problem))
