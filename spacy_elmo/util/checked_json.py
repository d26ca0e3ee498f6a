"""JSON files that begin with the digest of what follows, so that each flipped bit is told."""

import json
import re
from pathlib import Path
from typing import Any, Dict

from ..errors import Errors
from .atomic import write_file
from .digests import digest
from .reading import read_json_object

_HEAD = re.compile(rb'\{\n  "digest": "([0-9a-f]{32})",\n')


def write_checked_json(path: Path, content: Dict[str, Any]) -> None:
    """Write a JSON object atomically, with a first key "digest".

    path (Path): where; folders above it are made.
    content (Dict[str, Any]): in JSON's types, at least one key.
    RAISES (OSError): if it cannot be written; the old content is kept then.
    """
    # Python's own writer: srsly's keeps ten decimals of a number.
    body = json.dumps(content, indent=2).encode("ascii").removeprefix(b"{\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, b'{\n  "digest": "%s",\n%s' % (digest(body).encode("ascii"), body))


def read_checked_json(path: Path) -> Dict[str, Any]:
    """Read what `write_checked_json` wrote, without the digest. What was written before there
    were digests passes.

    path (Path): the file.
    RETURNS (Dict[str, Any]): the content.
    RAISES (ValueError): EL104 if it is not what was written, EL100 to EL103 if it cannot be
        read.
    """
    found = read_json_object(path)
    if found.pop("digest", None) is None:
        return found
    content = path.read_bytes()
    head = _HEAD.match(content)
    if head is None or head[1].decode("ascii") != digest(content[head.end() :]):
        raise ValueError(Errors.EL104.format(path=path, digests=path))
    return found
