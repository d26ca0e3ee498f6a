"""How many may be connected: `Door`."""

import asyncio
from collections.abc import Hashable

# Beyond the limit: whoever watches the server is answered when others hold all connections.
RESERVE = 16


class Door:
    """Lets connections in, in a server of a limit.

    Beyond the limit, the newest few stay, to be told so, or how the server is. The oldest of them
    is closed for a new one: clients that connect and say nothing hold no place there.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._regular: set[Hashable] = set()
        # In the order of arrival.
        self._reserve: dict[Hashable, asyncio.Transport] = {}

    def enter(self, connection: Hashable, transport: asyncio.Transport) -> bool:
        """RETURNS (bool): whether it is one of the limit."""
        if len(self._regular) < self.limit:
            self._regular.add(connection)
            return True
        self._reserve[connection] = transport
        return False

    def pop_extra(self) -> asyncio.Transport | None:
        """RETURNS (Transport | None): one to close, if there are too many."""
        if len(self._reserve) <= RESERVE:
            return None
        return self._reserve.pop(next(iter(self._reserve)))

    def leave(self, connection: Hashable) -> None:
        """It is closed."""
        self._regular.discard(connection)
        self._reserve.pop(connection, None)
