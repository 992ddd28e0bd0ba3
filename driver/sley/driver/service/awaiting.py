"""Waiting for coroutines: one thread waits for all that they await."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sley.driver.hardware.operation_lock import OperationLock
from sley.driver.queue.client import Client, Waiter


@dataclass(eq=False)
class _Awaited:
    """A coroutine that waits for a condition, to which work of a context leads."""

    condition: Callable[[], bool]
    context: Client
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]

    def ready(self) -> bool:
        """Whether there is something to tell."""
        try:
            return self.future.done() or self.condition()
        except Exception:  # which ``tell`` tells
            return True

    def tell(self, failure: Exception | None) -> None:
        """Lets the coroutine go on, or raises in it what made waiting impossible."""

        def tell() -> None:
            if self.future.done():
                return
            try:
                error = None if self.condition() else failure
            except Exception as raised:
                error = failure or raised
            if error is None:
                self.future.set_result(None)
            else:
                self.future.set_exception(error)

        with suppress(RuntimeError):  # the loop was closed: nobody listens any more
            self.loop.call_soon_threadsafe(tell)


class Awaiter:
    """Lets coroutines of any number of event loops wait for one device.

    Its thread lives as long as there is something to wait for.

    Parameters: ``lock``: of the device.
    """

    def __init__(self, waiter: Waiter, lock: OperationLock) -> None:
        self._waiter, self._lock = waiter, lock
        self._awaited: list[_Awaited] = []
        self._thread: threading.Thread | None = None

    async def wait(self, condition: Callable[[], bool], context: Client) -> None:
        """Returns when ``condition`` holds. Raises what waiting for the device does."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            self._awaited.append(_Awaited(condition, context, loop, future))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sley-fences", daemon=True)
                self._thread.start()
        await future

    def _ready(self) -> list[_Awaited]:
        return [one for one in self._awaited if one.ready()]

    def _run(self) -> None:
        while True:
            failure: Exception | None = None
            with self._lock:
                contexts = {one.context for one in self._awaited}
            try:
                self._waiter.wait(lambda: bool(self._ready()), contexts=contexts)
            except Exception as error:
                failure = error
            with self._lock:
                ready = self._ready() if failure is None else list(self._awaited)
                for one in ready:
                    self._awaited.remove(one)
                    one.tell(failure)
                if not self._awaited:
                    self._thread = None
                    return
