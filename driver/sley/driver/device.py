"""One opened device: probe, interrupts, waiting with a watchdog, reset. Everything else hangs below it."""

from collections.abc import Callable
from itertools import count

from sley.abi.faults import QueueState
from sley.abi.pages import AddressMode
from sley.abi.registers import RegisterMap
from sley.driver.counters import Counters, read_counters
from sley.driver.dump import Dump, capture
from sley.driver.engines import open_transport
from sley.driver.errors import BadRequest, DeviceHang, ResetFailed, SleyError
from sley.driver.memory import Allocator
from sley.driver.probe import probe
from sley.driver.queue import Queue
from sley.driver.registers import Registers
from sley.driver.transport import Transport

HANG_CYCLES = 200_000
_WAIT_CYCLES = 20_000
_RESET_CYCLES = 100
_RESET_TRIES = 1_000


class Driver:
    """Drives the device behind ``transport``; the same object on every engine, bench and board.

    Construction probes the device, resets it and turns its queues on.

    Parameters
    ----------
    transport: the way to the device; closed with the driver.
    log2_ring: every queue holds 2 ** log2_ring packets.
    hang_cycles: cycles without progress after which a waiting call gives the device up as hung.
    log: called with one line for every register access.

    Attributes
    ----------
    config: what the device is. registers: its registers by name. memory: the allocator of its memory.
    queues: its hardware queues.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        log2_ring: int = 6,
        hang_cycles: int = HANG_CYCLES,
        log: Callable[[str], None] | None = None,
    ) -> None:
        if not 0 <= log2_ring <= 15:
            raise BadRequest(f"log2_ring is {log2_ring}; it must be in 0..15")
        if hang_cycles < 1:
            raise BadRequest(f"hang_cycles is {hang_cycles}; it must be at least 1")
        self.transport = transport
        self.hang_cycles = hang_cycles
        self.config = probe(transport)
        self.registers = Registers(transport, RegisterMap(self.config), log)
        size = min(transport.memory_bytes, 1 << self.config.addr_bits)
        self.memory = Allocator(0, size)
        self.queues = [Queue(self, index, log2_ring) for index in range(self.config.queues)]
        self._tags = count(1)
        self.reset()

    @classmethod
    def open(cls, url: str, **options: int) -> "Driver":
        """The device behind an engine URL, for example ``fast:base?memory=64M``."""
        transport = open_transport(url)
        try:
            return cls(transport, **options)  # type: ignore[arg-type]
        except SleyError:
            transport.close()
            raise

    def close(self) -> None:
        """Releases the device."""
        self.transport.close()

    def __enter__(self) -> "Driver":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def time(self) -> int:
        """Device cycles since reset."""
        return self.registers.wide("CHIP.TIME")

    def program_tag(self) -> int:
        """A tag for launches of one program at one address, never given before; 0, which promises nothing, if there is
        none left."""
        tag = next(self._tags)
        return tag if tag < 1 << 32 else 0

    def counters(self) -> Counters:
        """All performance counters in one cycle. They count from before to after, but not while they are read."""
        return read_counters(self.registers, self.config)

    def dump(self) -> Dump:
        """The device's state now, for a person to read."""
        return capture(self)

    def reset(self) -> None:
        """Resets the whole device; work in its queues is lost, memory keeps its contents."""
        error = SleyError("the device was reset before this work had finished; submit it again")
        for queue in self.queues:
            queue.abandon(error)
        self._reset()

    def _reset(self) -> None:
        self.registers.write("CHIP.CONTROL", reset=1)
        for _ in range(_RESET_TRIES):
            if not self.registers.value("CHIP.STATUS", "resetting"):
                break
            self.transport.advance(_RESET_CYCLES)
        else:
            raise ResetFailed(f"the device is still in reset after {_RESET_TRIES * _RESET_CYCLES} cycles; power it off")
        self.registers.write("CONTEXT0.ROOT", mode=AddressMode.PHYSICAL)
        for queue in self.queues:
            queue.enable()
        status = self.registers["CHIP.IRQ_STATUS"].layout
        every = {name: (1 << self.config.queues) - 1 for name in status.fields}
        self.registers.write("CHIP.IRQ_STATUS", **every)
        self.registers.write("CHIP.IRQ_ENABLE", **every)

    def service(self, poll: bool = False) -> bool:
        """Answers pending interrupts: clears them and recovers queues that stopped. Whether there were any.

        With ``poll`` it also looks at the queues themselves, in case an interrupt was lost.
        """
        causes = self.registers.read("CHIP.IRQ_STATUS")
        if any(causes.values()):
            self.registers.write("CHIP.IRQ_STATUS", **causes)
        for queue in self.queues:
            if (poll or causes["error"] >> queue.index & 1) and queue.state is QueueState.ERROR:
                queue.recover()
        return any(causes.values())

    def _progress(self) -> tuple[int, ...]:
        indices = [self.registers.value(f"QUEUE{queue.index}.READ_INDEX") for queue in self.queues]
        return (self.registers.value("CHIP.PROGRESS"), *indices)

    def wait(self, condition: Callable[[], bool], *, timeout: int | None = None, step: int = _WAIT_CYCLES) -> bool:
        """Lets the device run until ``condition`` holds; whether it does within ``timeout`` cycles.

        The interrupt ends the wait early; without one the condition is looked at every ``step`` cycles. Raises
        ``DeviceHang`` after a reset if nothing moves for ``hang_cycles``.
        """
        waited = idle = 0
        progress: tuple[int, ...] = ()
        while not condition():
            if timeout is not None and waited >= timeout:
                return False
            cycles = min(step, self.hang_cycles, *([timeout - waited] if timeout is not None else []))
            rose = self.transport.wait_irq(cycles)
            if self.service(poll=not rose):
                continue
            if rose:  # a line that nobody drives down must not stop time
                self.transport.advance(cycles)
            waited += cycles
            now = self._progress()
            idle = idle + cycles if now == progress else 0
            progress = now
            if idle >= self.hang_cycles and not condition():
                self._hang(idle)
        return True

    def _hang(self, cycles: int) -> None:
        error = DeviceHang(cycles, self.dump())
        for queue in self.queues:
            queue.abandon(error)
        self._reset()
        raise error
