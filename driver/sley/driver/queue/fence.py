"""Fences: how software knows that a queue has come as far as some packet."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

from sley.abi.packets import FENCE_BYTES, SEMAPHORE_BYTES
from sley.abi.pages import PAGE_BYTES
from sley.driver.errors import BadRequest, WaitTimeout
from sley.driver.queue.client import Client
from sley.driver.queue.ring import Ring

_SETTLE_CYCLES = 16


@dataclass(frozen=True)
class FenceHandle:
    """A fence for other contexts: the page it is written to, the place in there, and its sequence number."""

    buffer: int
    offset: int
    sequence: int


@dataclass(frozen=True)
class ImportedFence:
    """A fence of another context, as a semaphore that a queue of this context can wait for."""

    address: int
    sequence: int


class Fence:
    """A fence packet on its way: the device writes ``sequence`` and the time to ``address``.

    Sequence numbers of a queue only grow, so one word of memory serves any number of fences: a fence is done when
    the word is at least its number. ``await fence`` does what ``wait`` does, and lets other coroutines run.

    Parameters: ``position``: of the packet in the queue. ``address``: where it is written. ``place``: the same in
    physical memory.
    """

    def __init__(self, queue: Ring, position: int, sequence: int, address: int, place: int) -> None:
        self.queue = queue
        self.position = position
        self.sequence = sequence
        self.address = address
        self.place = place
        self._time: int | None = None
        self._passed = False

    def __repr__(self) -> str:
        """Without a look at the device."""
        lost = self.queue.lost(self.position)
        over = "passed" if self.queue.tail > self.position else "not known to have passed"
        state = over if lost is None else f"lost to {type(lost).__name__}"
        return f"Fence({self.sequence} of queue {self.queue.index}, {state})"

    def _read(self) -> tuple[int, int]:
        hardware = self.queue.hardware
        with hardware.lock:
            data = hardware.transport.read_memory(self.place, FENCE_BYTES)
        return int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")

    @property
    def done(self) -> bool:
        """Whether the device has passed the fence. Raises the error if the fence was lost to a fault or a reset."""
        self.queue.check(self.position)
        return self.passed()

    def passed(self) -> bool:
        """Whether the packet is over; it also is when the fence was lost. Once that is known, its word in memory may be
        used again."""
        if not self._passed:
            self._passed = self.queue.tail > self.position or self._read()[0] >= self.sequence
        return self._passed

    @property
    def over(self) -> bool:
        """Whether waiting for it would return or raise at once."""
        return self.queue.lost(self.position) is not None or self.passed()

    def wait(self, timeout: int | None = None) -> None:
        """Returns when the device has passed the fence.

        Without ``timeout`` it waits as long as the device makes progress, else at most that many cycles. Raises
        ``QueueFault``, ``ContextHang``, another error to which the work was lost, or ``WaitTimeout``.
        """
        wait_all((self,), timeout)

    @property
    def time(self) -> int:
        """Device cycle in which the fence was written; waits for it. Read it before ``address`` is used again."""
        if self._time is None:
            self.wait()
            # The time lies behind the sequence number: a narrow bus writes it later.
            queue = self.queue
            queue.waiter.wait(lambda: queue.finished(self.position), step=_SETTLE_CYCLES, contexts=(queue.context,))
            queue.check(self.position)
            queue.context.check()
            self._time = self._read()[1]
        return self._time

    def __await__(self) -> Generator[Any, None, None]:
        return self._awaited().__await__()

    async def _awaited(self) -> None:
        self.queue.ring_doorbell()
        await self.queue.waiter.awaited(lambda: self.over, self.queue.context)
        self.queue.check(self.position)

    def export(self) -> FenceHandle:
        """A handle for queues of other contexts. Who gets it can read the page of the fence and nothing else: of the
        queue's own fences that page shows how far all queues of this context are, and since when."""
        mapping = self.queue.space.find(self.address, FENCE_BYTES, "fence")
        if mapping.length > PAGE_BYTES:
            raise BadRequest(
                f"the fence at {self.address:#x} shares a buffer of {mapping.length:#x} bytes with other data; export "
                "one that the queue wrote to its own place"
            )
        return FenceHandle(
            self.queue.context.export_once(mapping.buffer), self.address - mapping.address, self.sequence
        )


class FenceLine:
    """The fences of one queue that may not have passed, in order.

    Attributes: ``last``: sequence number of the last one.
    """

    def __init__(self) -> None:
        self.last = 0
        self._fences: deque[Fence] = deque()

    def add(self, fence: Fence) -> None:
        """The next fence of the queue; those known to be over are forgotten."""
        self.last = fence.sequence
        while self._fences and self._fences[0].position < fence.queue.tail:
            self._fences.popleft()
        self._fences.append(fence)

    def give_up(self, tail: int) -> None:
        """Writes those that the device never will, from position ``tail`` on: queues that wait for one of them must not
        hang for somebody else's fault."""
        for fence in self._fences:
            if fence.position >= tail:
                memory, length = fence.queue.hardware.transport, SEMAPHORE_BYTES
                if int.from_bytes(memory.read_memory(fence.place, length), "little") < fence.sequence:
                    memory.write_memory(fence.place, fence.sequence.to_bytes(length, "little"))
        self._fences.clear()


def import_fence(context: Client, handle: FenceHandle) -> ImportedFence:
    """A fence of another context, for ``Queue.wait`` of this one. A fence that is lost counts as passed."""
    return ImportedFence(context.import_once(handle.buffer).address + handle.offset, handle.sequence)


def wait_all(fences: Iterable[Fence], timeout: int | None = None) -> None:
    """Returns when the device has passed all fences, which may be of several contexts; see ``Fence.wait``."""
    missing = list(fences)
    for fence in missing:
        fence.queue.ring_doorbell()

    def over() -> bool:
        while missing and missing[-1].over:
            missing.pop().done  # noqa: B018 (raises)
        return not missing

    if missing and not missing[0].queue.waiter.wait(
        over, timeout=timeout, contexts={fence.queue.context for fence in missing}
    ):
        fence = missing[-1]
        raise WaitTimeout(f"fence {fence.sequence} of queue {fence.queue.index} not reached within {timeout} cycles")


def wait_any(fences: Iterable[Fence], timeout: int | None = None) -> Fence:
    """The first of the fences that the device has passed; waits for one. Raises like ``Fence.wait``."""
    watched = list(fences)
    if not watched:
        raise BadRequest("there is no fence to wait for")
    for fence in watched:
        fence.queue.ring_doorbell()
    found: list[Fence] = []

    def over() -> bool:
        found[:] = [fence for fence in watched if fence.over][:1]
        return bool(found)

    if not watched[0].queue.waiter.wait(over, timeout=timeout, contexts={fence.queue.context for fence in watched}):
        raise WaitTimeout(f"none of {len(watched)} fences was reached within {timeout} cycles")
    found[0].queue.check(found[0].position)
    return found[0]
