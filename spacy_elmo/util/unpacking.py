"""Read untrusted msgpack, in time and memory in proportion to its size, with one error."""

from typing import Any

from srsly import msgpack

from ..errors import Errors

# The parser allocates nested lists before their items are read, a thousand levels deep.
_MOST_ITEMS = 100_000


def unpack(data: bytes, source: str, *, most_items: int = _MOST_ITEMS) -> Any:
    """Read a message of msgpack, NumPy's arrays included.

    data (bytes): the message.
    source (str): what the message is, for the error.
    most_items (int): of a list or a table in it.
    RETURNS (Any): the content.
    RAISES (ValueError): EL116 if it cannot be read.
    """
    # Not `srsly.msgpack_loads`: after an error it leaves garbage collection disabled.
    try:
        return msgpack.loads(data, raw=False, max_array_len=most_items, max_map_len=most_items)
    except Exception as err:
        # The parser's own errors, and whatever NumPy raises for an array.
        error = str(err) or repr(err)
        raise ValueError(Errors.EL116.format(source=source, error=error)) from err
