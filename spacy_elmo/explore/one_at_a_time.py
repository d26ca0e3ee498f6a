"""`OneAtATime`: calls of a pipeline from an event loop, in a thread of their own."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

from ..errors import Errors


class TooBusy(Exception):
    """Too many calls wait, or one takes too long."""


class OneAtATime:
    """Runs calls one after the other, so that the page stays alive meanwhile.

    max_waiting (int): calls that may wait or run.
    seconds (float): from a call to its result.
    """

    def __init__(self, max_waiting: int, seconds: float) -> None:
        self.max_waiting = max_waiting
        self.seconds = seconds
        self._n_waiting = 0
        self._executor = ThreadPoolExecutor(1, "explore")

    async def run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """call (Callable): what to run. arguments: its own. RETURNS (Any): its result. RAISES
        (TooBusy): EL279 if too many wait, EL278 if time is over; whatever the call raises."""
        if self._n_waiting >= self.max_waiting:
            raise TooBusy(Errors.EL279.format(n=self._n_waiting))
        result = asyncio.get_running_loop().run_in_executor(self._executor, call, *arguments)
        self._n_waiting += 1
        # A call that runs cannot be stopped: it counts until it ends.
        result.add_done_callback(self._count_down)
        try:
            return await asyncio.wait_for(asyncio.shield(result), self.seconds)
        except asyncio.TimeoutError:
            raise TooBusy(Errors.EL278.format(seconds=self.seconds)) from None

    def close(self) -> None:
        """Drop what has not begun, and wait for nothing."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _count_down(self, result: "asyncio.Future[Any]") -> None:
        self._n_waiting -= 1
        if not result.cancelled():
            # An error that nobody waited for is no news.
            result.exception()
