"""What a queue needs of those above it: the context that it belongs to, and whoever lets the device run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from sley.abi.errors import SleyError
from sley.driver.errors import DeviceHang
from sley.driver.memory.buffer import BufferObject
from sley.driver.memory.heap import Heap
from sley.driver.memory.space import AddressSpace, Mapping


class Client(Protocol):
    """The context of a queue."""

    @property
    def number(self) -> int:
        """Of the context in the chip."""
        ...

    @property
    def space(self) -> AddressSpace:
        """Its addresses."""
        ...

    @property
    def heap(self) -> Heap:
        """Memory that rings and recordings are in."""
        ...

    def check(self) -> None:
        """Raises ``ContextClosed`` if the context was closed."""
        ...

    def report(self, error: SleyError, kind: str | None = None) -> None:
        """Remembers an error of the context's work. ``kind``: its name in the statistics."""
        ...

    def reset(self, error: SleyError | None = None) -> SleyError:
        """Ends all work of the context, which is lost to the error that is returned."""
        ...

    def when_done(self, action: Callable[[], object]) -> None:
        """Calls ``action`` when everything submitted so far has finished."""
        ...

    def export_once(self, buffer: BufferObject) -> int:
        """A handle with the right to read, the same one for every call."""
        ...

    def import_once(self, handle: int) -> Mapping:
        """A mapping with the right to read, the same one for every call."""
        ...


class Waiter(Protocol):
    """Whoever lets the device run until something holds."""

    def wait(
        self,
        condition: Callable[[], bool],
        *,
        timeout: int | None = None,
        step: int = ...,
        contexts: Iterable[Client] = (),
    ) -> bool:
        """Whether ``condition`` holds within ``timeout`` cycles; see ``Driver.wait``."""
        ...

    def force(self) -> DeviceHang:
        """The last resort against work that cannot be stopped: a reset of everything."""
        ...


class AsyncWaiter(Waiter, Protocol):
    """One that coroutines can wait for, too."""

    async def awaited(self, condition: Callable[[], bool], context: Client) -> None:
        """Returns when ``condition`` holds, for which work of the context is needed."""
        ...
