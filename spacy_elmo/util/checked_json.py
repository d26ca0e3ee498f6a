"""JSON files that begin with the digest of the rest, so that every flipped bit is detected."""

import json
import re
from pathlib import Path
from typing import Any, Dict, Optional

from ..errors import Errors
from .atomic import write_file
from .digests import digest
from .reading import JSON_BYTES, ContentError, parse_json_object, read_file

_HEAD = re.compile(rb'\{\n  "digest": "([0-9a-f]{32})",\n')


def write_checked_json(path: Path, content: Dict[str, Any], *, indent: Optional[int] = 2) -> None:
    """Write a JSON object atomically, with a first key "digest".

    path (Path): where; folders above it are made.
    content (Dict[str, Any]): in JSON's types, at least one key; numbers keep all digits.
    indent (Optional[int]): for readability; None is ten times as fast.
    RAISES (OSError): if it cannot be written; the old content is kept then.
    """
    body = _dump(content, indent).removeprefix(b"{").removeprefix(b"\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, b'{\n  "digest": "%s",\n%s' % (digest(body).encode("ascii"), body))


def _dump(content: Dict[str, Any], indent: Optional[int]) -> bytes:
    # Python's own: srsly's rounds numbers.
    try:
        text = json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # Half of a pair, as in the name of a file that is not in UTF-8.
        return json.dumps(content, indent=indent, allow_nan=False).encode("ascii")


def has_digest(path: Path) -> bool:
    """path (Path): a file. RETURNS (bool): Whether it begins as what `write_checked_json` wrote.
    RAISES (ValueError): EL100 to EL103 if it cannot be read."""
    return _HEAD.match(read_file(path, JSON_BYTES)) is not None


def read_checked_json(path: Path, *, required: bool = False) -> Dict[str, Any]:
    """Read what `write_checked_json` wrote, without the digest.

    path (Path): the file.
    required (bool): whether a file without a digest is refused, such as one of an older
        version, or one written by hand.
    RETURNS (Dict[str, Any]): the content.
    RAISES (ValueError): EL100 to EL103 if it cannot be read, EL142 if it is not what was
        written.
    """
    content = read_file(path, JSON_BYTES)
    head = _HEAD.match(content)
    if head is None and not required:
        parsed = _parse(content, path)
        if "digest" not in parsed:
            return parsed
    if head is None or head[1].decode("ascii") != digest(content[head.end() :]):
        raise ValueError(Errors.EL142.format(path=path))
    return _parse(b"{" + content[head.end() :], path)


def _parse(content: bytes, path: Path) -> Dict[str, Any]:
    try:
        return parse_json_object(content)
    except ContentError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err
