"""One opened device: what its users call. Everything else hangs below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from sley.abi.transport import Transport
from sley.driver.context import Context
from sley.driver.errors import BadRequest, DeviceHang, DeviceReset, DriverClosed
from sley.driver.hardware.engines import open_transport
from sley.driver.hardware.hardware import Hardware
from sley.driver.memory.buffer import BufferObject, Rights
from sley.driver.memory.pages import Extent
from sley.driver.memory.physical import PhysicalMemory
from sley.driver.observe.counters import Counters, counts_cycles, read_counters
from sley.driver.observe.dump import Dump, capture
from sley.driver.queue.client import Client
from sley.driver.queue.fence import Fence
from sley.driver.queue.queue import Queue
from sley.driver.service.clients import Clients
from sley.driver.service.interrupts import Interrupts
from sley.driver.service.reset import Reset
from sley.driver.service.waiting import WAIT_CYCLES, Waiting

HANG_CYCLES = 200_000
PATIENCE = 4
"""A waiting thread that finds nothing moving at all is faster than the watchdog, and knows more."""


def _checked_hang_cycles(cycles: int) -> int:
    if cycles < 1:
        raise BadRequest(f"hang_cycles is {cycles}; it must be at least 1")
    return cycles


class Driver:
    """Drives the device behind ``transport``; the same object on every engine, bench and board.

    Construction probes the device and resets it. Work goes in through contexts.

    Parameters
    ----------
    transport: the way to the device; closed with the driver.
    log2_ring: queues hold 2 ** log2_ring packets unless told otherwise.
    hang_cycles: cycles without progress after which a waiting call gives up what it waits for as hung.
    watchdog: cycles after which the chip ends a block in which no instruction of a unit finishes, 0 for never; some
        times ``hang_cycles`` if not given.
    log: called with one line for every register access.

    Attributes
    ----------
    hardware: the device below. config: what it is. registers: its registers by name. lock, statistics: see
        ``Hardware``. memory: who has which part of physical memory. pages: which pages are free. buffers: those alive,
        by number. handles: buffers that were exported. contexts: by number. waiter: lets the device run.
        closed: whether ``close`` was called.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        log2_ring: int = 6,
        hang_cycles: int = HANG_CYCLES,
        watchdog: int | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        if not 0 <= log2_ring <= 15:
            raise BadRequest(f"log2_ring is {log2_ring}; it must be in 0..15")
        _checked_hang_cycles(hang_cycles)
        self.closed = False
        self.watchdog = min(PATIENCE * hang_cycles, (1 << 32) - 1) if watchdog is None else watchdog
        self.log2_ring = log2_ring
        self.hardware = hardware = Hardware(transport, hang_cycles, log)
        self.transport, self.config, self.registers = hardware.transport, hardware.config, hardware.registers
        self.lock, self.statistics, self.memory_bytes = hardware.lock, hardware.statistics, hardware.memory_bytes
        self._clients = clients = Clients(self.config)
        self.contexts = clients.contexts
        self.memory = memory = PhysicalMemory(hardware, clients.reclaim)
        self.pages, self.buffers, self.handles = memory.pages, memory.buffers, memory.handles
        self._interrupts = Interrupts(hardware, clients)
        self._reset = Reset(hardware, clients, self._interrupts, self.dump)
        self.waiter = Waiting(hardware, clients, self._interrupts, self._reset, self.dump)
        self._tags = count(1)
        self._has_cycles = False
        self._reset.run(DeviceReset("the device was opened"))
        self.statistics.device_resets = 0  # opening is none

    @classmethod
    def open(cls, url: str, **options: int) -> Driver:
        """The device behind an engine URL, for example ``fast:base?memory=64M``."""
        transport = open_transport(url)
        try:
            return cls(transport, **options)  # type: ignore[arg-type]
        except BaseException:
            transport.close()
            raise

    def close(self) -> None:
        """Releases the device. Its contexts are closed: whatever is asked of them raises ``ContextClosed``; what is
        asked of the driver raises ``DriverClosed``, which is one."""
        with self.lock:
            if self.closed:
                return
            self.closed = True
            for context in self.contexts.values():
                context.leave()
            self.hardware.close()
            self.transport = self.hardware.transport

    def _check_open(self) -> None:
        if self.closed:
            raise DriverClosed(self.config.name)

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self.contexts)} contexts, {self.free_queues} free queues"
        return f"Driver({self.config.name}, {self.memory_bytes:,} bytes of memory, {state})"

    @property
    def time(self) -> int:
        """Device cycles since reset."""
        return self.hardware.time

    @property
    def hang_cycles(self) -> int:
        """Cycles without progress after which work counts as hung; may be set at any time."""
        return self.hardware.hang_cycles

    @hang_cycles.setter
    def hang_cycles(self, cycles: int) -> None:
        self.hardware.hang_cycles = _checked_hang_cycles(cycles)

    def program_tag(self) -> int:
        """A tag for launches of one program at one address, never given before; 0, which promises nothing, if there is
        none left."""
        tag = next(self._tags)
        return tag if tag < 1 << 32 else 0

    def counters(self) -> Counters:
        """All performance counters in one cycle. They count from before to after, but not while they are read."""
        with self.lock:
            return read_counters(self.registers, self.config)

    @property
    def has_cycles(self) -> bool:
        """Whether the device counts cycles; what is called time on one that does not keeps the order alone."""
        with self.lock:
            self._has_cycles = self._has_cycles or counts_cycles(self.registers)
            return self._has_cycles

    def dump(self) -> Dump:
        """The device's state now, for a person to read."""
        with self.lock:
            return capture(self.hardware, self.memory, self.contexts)

    # Who has what

    def context(self) -> Context:
        """A new client. Raises ``NoRoom`` when the chip has no context left, ``OutOfDeviceMemory``."""
        with self.lock:
            self._check_open()
            return self._clients.open(self)

    def forget(self, context: Context) -> None:
        """A context has been closed."""
        self._clients.forget(context)

    @property
    def queues(self) -> list[Queue]:
        """The hardware queues in use."""
        return self._clients.queues

    @property
    def free_queues(self) -> int:
        """Hardware queues that nobody has."""
        return self._clients.free_queues

    def take_queue(self) -> int:
        """The number of a hardware queue that nobody has."""
        return self._clients.take_queue()

    def give_queue(self, index: int) -> None:
        """A hardware queue, turned off, is not needed any more."""
        self._clients.give_queue(index)

    def exported(self, handle: int) -> tuple[BufferObject, Rights]:
        """What a handle stands for. Raises ``BadRequest`` if it stands for nothing."""
        return self.memory.exported(handle)

    def revoke(self, handle: int) -> None:
        """A handle means nothing any more. Mappings made with it stay."""
        self.memory.revoke(handle)

    def take_pages(self, length: int, owner: int) -> tuple[Extent, ...]:
        """Physical memory; if there is none, what clients hold and do not use is taken back first. Raises
        ``OutOfDeviceMemory``."""
        return self.memory.take_pages(length, owner)

    # Reset

    def reset(self) -> None:
        """Resets the whole device and sets it up again; work of all contexts is lost, memory keeps its contents."""
        with self.lock:
            self._reset.run(DeviceReset("the device was reset before this work had finished; submit it again"))

    def force(self) -> DeviceHang:
        """The last resort against work that cannot be stopped: a reset of everything. The error of what was lost."""
        return self.waiter.force()

    # Interrupts and waiting

    def coalesce(self, count: int, cycles: int) -> None:
        """Lets the chip interrupt once for ``count`` fences, or so many cycles after the first; 0 for each at once."""
        self._interrupts.coalesce(count, cycles)

    def service(self, poll: bool = False) -> bool:
        """Answers pending interrupts: clears them and recovers queues that stopped. Whether there were any.

        With ``poll`` it also looks at the queues themselves, in case an interrupt was lost.
        """
        return self._interrupts.service(poll)

    def wait(
        self,
        condition: Callable[[], bool],
        *,
        timeout: int | None = None,
        step: int = WAIT_CYCLES,
        contexts: Iterable[Client] = (),
    ) -> bool:
        """Lets the device run until ``condition`` holds; whether it does within ``timeout`` cycles.

        The interrupt ends the wait early; without one the condition is looked at every ``step`` cycles. If nothing
        moves for ``hang_cycles``, the ``contexts`` whose work the caller waits for are reset and ``ContextHang`` is
        raised; without contexts the device is, and ``DeviceHang``.
        """
        self._check_open()
        return self.waiter.wait(condition, timeout=timeout, step=step, contexts=contexts)

    async def awaited(self, fence: Fence) -> None:
        """Returns, or raises, when ``fence.wait()`` would; other coroutines run meanwhile."""
        await fence
