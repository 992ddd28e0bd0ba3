"""One opened device: probe, memory, contexts, interrupts, waiting, reset. Everything else hangs below it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from itertools import count

from sley.abi.faults import QueueState
from sley.abi.registers import RegisterMap
from sley.driver.context import Context
from sley.driver.errors import (
    BadRequest,
    ContextHang,
    DeviceCorrupt,
    DeviceHang,
    DeviceReset,
    NoRoom,
    OutOfDeviceMemory,
    ResetFailed,
    SleyError,
)
from sley.driver.hardware.engines import open_transport
from sley.driver.hardware.probe import probe
from sley.driver.hardware.registers import Registers
from sley.driver.hardware.transport import Transport
from sley.driver.memory.buffer import BufferObject, Rights
from sley.driver.memory.pages import Extent, PageAllocator
from sley.driver.observe.counters import Counters, read_counters
from sley.driver.observe.dump import Dump, capture
from sley.driver.observe.statistics import Statistics
from sley.driver.queue.awaiting import Awaiter
from sley.driver.queue.fence import Fence
from sley.driver.queue.queue import Queue

HANG_CYCLES = 200_000
PATIENCE = 4
"""A waiting thread that finds nothing moving at all is faster than the watchdog, and knows more."""
_WAIT_CYCLES = 20_000
_SHARED_WAIT_CYCLES = 1_000
"""Longest wait for an interrupt with the lock held while there are other threads, who may want it."""
_TURN_SECONDS = 2e-5
_RESET_CYCLES = 100
_RESET_TRIES = 1_000


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
    config: what the device is. registers: its registers by name. pages: its memory. contexts: by number.
    statistics: interrupts and errors so far. lock: whoever touches the device or the driver's state holds it, and
        nobody for longer than a short operation or some simulated cycles; it may be taken again by who has it.
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
        if hang_cycles < 1:
            raise BadRequest(f"hang_cycles is {hang_cycles}; it must be at least 1")
        self.watchdog = min(PATIENCE * hang_cycles, (1 << 32) - 1) if watchdog is None else watchdog
        self.transport = transport
        self.log2_ring, self.hang_cycles = log2_ring, hang_cycles
        self.lock = threading.RLock()
        self.config = probe(transport)
        self.registers = Registers(transport, RegisterMap(self.config), log)
        self.memory_bytes = min(transport.memory_bytes, 1 << self.config.addr_bits)
        self.pages = PageAllocator(transport, self.memory_bytes)
        self.statistics = Statistics()
        self.contexts: dict[int, Context] = {}
        self.buffers: dict[int, BufferObject] = {}
        self.handles: dict[int, tuple[BufferObject, Rights]] = {}
        self.buffer_numbers = count(1)
        self._owners = count(1)
        self._tags = count(1)
        self._free_queues = set(range(self.config.queues))
        self._awaiter = Awaiter(self)
        self._elapsed = self._moved_at = 0
        self._progress: tuple[int, ...] = ()
        self._reset(DeviceReset("the device was opened"))
        self.statistics = Statistics()

    @classmethod
    def open(cls, url: str, **options: int) -> Driver:
        """The device behind an engine URL, for example ``fast:base?memory=64M``."""
        transport = open_transport(url)
        try:
            return cls(transport, **options)  # type: ignore[arg-type]
        except SleyError:
            transport.close()
            raise

    def close(self) -> None:
        """Releases the device."""
        with self.lock:
            self.transport.close()

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def time(self) -> int:
        """Device cycles since reset."""
        with self.lock:
            return self.registers.wide("CHIP.TIME")

    def program_tag(self) -> int:
        """A tag for launches of one program at one address, never given before; 0, which promises nothing, if there is
        none left."""
        tag = next(self._tags)
        return tag if tag < 1 << 32 else 0

    def counters(self) -> Counters:
        """All performance counters in one cycle. They count from before to after, but not while they are read."""
        with self.lock:
            return read_counters(self.registers, self.config)

    def dump(self) -> Dump:
        """The device's state now, for a person to read."""
        with self.lock:
            return capture(self)

    # Who has what

    def context(self) -> Context:
        """A new client. Raises ``NoRoom`` when the chip has no context left, ``OutOfDeviceMemory``."""
        with self.lock:
            free = set(range(self.config.contexts)) - set(self.contexts)
            if not free:
                raise NoRoom(f"all {self.config.contexts} contexts of the chip are taken; close one")
            context = Context(self, min(free), next(self._owners))
            self.contexts[context.number] = context
            return context

    def forget(self, context: Context) -> None:
        """A context has been closed."""
        del self.contexts[context.number]

    @property
    def queues(self) -> list[Queue]:
        """The hardware queues in use."""
        return sorted((q for c in self.contexts.values() for q in c.queues), key=lambda queue: queue.index)

    @property
    def free_queues(self) -> int:
        """Hardware queues that nobody has."""
        return len(self._free_queues)

    def take_queue(self) -> int:
        """The number of a hardware queue that nobody has."""
        if not self._free_queues:
            raise NoRoom(f"all {self.config.queues} queues of the chip are taken; close a context that has one")
        index = min(self._free_queues)
        self._free_queues.remove(index)
        return index

    def give_queue(self, index: int) -> None:
        """A hardware queue, turned off, is not needed any more."""
        self._free_queues.add(index)

    def exported(self, handle: int) -> tuple[BufferObject, Rights]:
        """What a handle stands for. Raises ``BadRequest`` if it stands for nothing."""
        if handle not in self.handles:
            raise BadRequest("there is no buffer with this handle; was it revoked?")
        return self.handles[handle]

    def revoke(self, handle: int) -> None:
        """A handle means nothing any more. Mappings made with it stay."""
        with self.lock:
            buffer, _ = self.exported(handle)
            del self.handles[handle]
            buffer.drop()

    def take_pages(self, length: int, owner: int) -> tuple[Extent, ...]:
        """Physical memory; if there is none, what clients hold and do not use is taken back first. Raises
        ``OutOfDeviceMemory``."""
        try:
            return self.pages.allocate(length, owner)
        except OutOfDeviceMemory:
            self._settle()
            if not sum(heap.trim() for context in self.contexts.values() for heap in context.heaps):
                raise
            return self.pages.allocate(length, owner)

    # Reset

    def reset(self) -> None:
        """Resets the whole device and sets it up again; work of all contexts is lost, memory keeps its contents."""
        with self.lock:
            self._reset(DeviceReset("the device was reset before this work had finished; submit it again"))

    def force(self) -> DeviceHang:
        """The last resort against work that cannot be stopped: a reset of everything. The error of what was lost."""
        error = DeviceHang(self.hang_cycles, self.dump())
        self._reset(error)
        return error

    def _reset(self, error: DeviceReset) -> None:
        self.statistics.device_resets += 1
        self.registers.write("CHIP.CONTROL", reset=1)
        for _ in range(_RESET_TRIES):
            if not self.registers.value("CHIP.STATUS", "resetting"):
                break
            self.transport.advance(_RESET_CYCLES)
        else:
            raise ResetFailed(f"the device is still in reset after {_RESET_TRIES * _RESET_CYCLES} cycles; power it off")
        for index in range(self.config.queues):
            self.registers.write(f"QUEUE{index}.CONTROL", enable=0)
        for context in self.contexts.values():
            context.abandon(error)
            context.space.apply()
            for queue in context.queues:
                queue.enable()
        status = self.registers["CHIP.IRQ_STATUS"].layout
        every = {name: (1 << self.config.queues) - 1 for name in status.fields}
        self.registers.write("CHIP.IRQ_STATUS", **every)
        self.registers.write("CHIP.IRQ_ENABLE", **every)

    # Interrupts and waiting

    def coalesce(self, count: int, cycles: int) -> None:
        """Lets the chip interrupt once for ``count`` fences, or so many cycles after the first; 0 for each at once."""
        with self.lock:
            self.registers.write("CHIP.IRQ_COALESCE", count=count, cycles=cycles)

    def service(self, poll: bool = False) -> bool:
        """Answers pending interrupts: clears them and recovers queues that stopped. Whether there were any.

        With ``poll`` it also looks at the queues themselves, in case an interrupt was lost.
        """
        with self.lock:
            causes = self.registers.read("CHIP.IRQ_STATUS")
            if any(causes.values()):
                self.registers.write("CHIP.IRQ_STATUS", **causes)
                for kind, bits in causes.items():
                    for index in range(bits.bit_length()):
                        if bits >> index & 1:
                            self.statistics.interrupts[f"{kind} of queue {index}"] += 1
            for queue in self.queues:
                told = causes["error"] >> queue.index & 1
                if (poll or told) and queue.state is QueueState.ERROR:
                    if not told:
                        self.statistics.interrupts["lost"] += 1
                    queue.recover()
            self._settle()
            return any(causes.values())

    def _settle(self) -> None:
        """Does for every context what waited for work that has finished. Nonsense that a context's own work wrote to
        the driver's words in its memory ends that work, and nobody else hears of it."""
        for context in tuple(self.contexts.values()):
            try:
                context.settle()
            except DeviceCorrupt as error:
                context.reset(error)
            except SleyError as error:  # the caller may be another client
                context.report(error)

    def _run_callbacks(self) -> None:
        """Runs host callbacks that are due, without the lock."""
        while True:
            with self.lock:
                found = next(((q, due) for q in self.queues if (due := q.take_callback())), None)
            if found is None:
                return
            queue, (number, function) = found
            failure: Exception | None = None
            try:
                function()
            except Exception as error:
                failure = error
            queue.ran(number, failure)

    def _read_progress(self) -> tuple[int, ...]:
        indices = [self.registers.value(f"QUEUE{queue.index}.READ_INDEX") for queue in self.queues]
        return (self.registers.value("CHIP.PROGRESS"), *indices)

    def wait(
        self,
        condition: Callable[[], bool],
        *,
        timeout: int | None = None,
        step: int = _WAIT_CYCLES,
        contexts: Iterable[Context] = (),
    ) -> bool:
        """Lets the device run until ``condition`` holds; whether it does within ``timeout`` cycles.

        The interrupt ends the wait early; without one the condition is looked at every ``step`` cycles. If nothing
        moves for ``hang_cycles``, the ``contexts`` whose work the caller waits for are reset and ``ContextHang`` is
        raised; without contexts the device is, and ``DeviceHang``.
        """
        start = self._elapsed
        while True:
            with self.lock:
                if condition():
                    return True
                waited = self._elapsed - start
                if timeout is not None and waited >= timeout:
                    return False
                shared = threading.active_count() > 1
                most = min(step, _SHARED_WAIT_CYCLES) if shared else step
                cycles = min(most, self.hang_cycles, *([timeout - waited] if timeout is not None else []))
                if not self._run_device(cycles):
                    idle = self._elapsed - max(self._moved_at, start)
                    if idle >= self.hang_cycles and not condition():
                        self._hang(idle, tuple(contexts))
            self._run_callbacks()
            if shared:
                time.sleep(_TURN_SECONDS)  # locks are not fair: who waits for it would never get it

    def _run_device(self, cycles: int) -> bool:
        """Lets the device run until its interrupt, which is answered; whether there was one."""
        rose = self.transport.wait_irq(cycles)
        if self.service(poll=not rose):
            return True
        if rose:  # a line that nobody drives down must not stop time
            self.statistics.interrupts["spurious"] += 1
            self.transport.advance(cycles)
        self._elapsed += cycles
        progress = self._read_progress()
        if progress != self._progress:
            self._progress, self._moved_at = progress, self._elapsed
        return False

    def _hang(self, cycles: int, contexts: tuple[Context, ...]) -> None:
        dump = self.dump()
        if not contexts:
            device_error = DeviceHang(cycles, dump)
            self._reset(device_error)
            raise device_error
        first, *_ = [context.reset(ContextHang(context.number, cycles, dump)) for context in contexts]
        raise first

    async def awaited(self, fence: Fence) -> None:
        """Returns, or raises, when ``fence.wait()`` would; other coroutines run meanwhile."""
        await self._awaiter.wait(fence)
