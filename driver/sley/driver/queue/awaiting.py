"""Fences for coroutines: one thread waits for all that are awaited."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sley.driver.device import Driver
    from sley.driver.queue.fence import Fence

_Awaited = tuple["Fence", asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class Awaiter:
    """Lets coroutines of any number of event loops await fences of one device.

    Its thread lives as long as there is something to wait for.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._awaited: list[_Awaited] = []
        self._thread: threading.Thread | None = None

    async def wait(self, fence: Fence) -> None:
        """Returns, or raises, when ``Fence.wait`` would."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        fence.queue.ring_doorbell()
        with self._driver.lock:
            self._awaited.append((fence, loop, future))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sley-fences", daemon=True)
                self._thread.start()
        await future
        fence.queue.check(fence.position)

    def _ready(self) -> list[_Awaited]:
        return [one for one in self._awaited if one[2].done() or one[0].over]

    def _run(self) -> None:
        driver = self._driver
        while True:
            failure: Exception | None = None
            with driver.lock:
                contexts = {fence.queue.context for fence, _, _ in self._awaited}
            try:
                driver.wait(lambda: bool(self._ready()), contexts=contexts)
            except Exception as error:
                failure = error
            with driver.lock:
                ready = self._ready() if failure is None else list(self._awaited)
                for one in ready:
                    self._awaited.remove(one)
                    _tell(*one, failure)
                if not self._awaited:
                    self._thread = None
                    return


def _tell(
    fence: Fence, loop: asyncio.AbstractEventLoop, future: asyncio.Future[None], failure: Exception | None
) -> None:
    def tell() -> None:
        if future.done():
            return
        if failure is None or fence.over:
            future.set_result(None)
        else:
            future.set_exception(failure)

    with suppress(RuntimeError):  # the loop was closed: nobody listens any more
        loop.call_soon_threadsafe(tell)
