"""Waiting: the device runs until something holds, its interrupts are answered, and hung work is found."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterable

from sley.abi.ctrl_c import CTRL_C
from sley.driver.errors import ContextHang, DeviceHang
from sley.driver.hardware.hardware import Hardware
from sley.driver.observe.dump import Dump
from sley.driver.queue.client import Client
from sley.driver.service.awaiting import Awaiter
from sley.driver.service.clients import Clients
from sley.driver.service.interrupts import Interrupts
from sley.driver.service.reset import Reset

WAIT_CYCLES = 20_000
_SHARED_WAIT_CYCLES = 1_000
"""Longest wait for an interrupt with the lock held while there are other threads, who may want it."""
_TURN_SECONDS = 2e-5


class Waiting:
    """Lets a device run for whoever waits.

    Parameters: ``dump``: the state of the device, for errors.

    Attributes: ``elapsed``: cycles that passed here without an interrupt.
    """

    def __init__(
        self,
        hardware: Hardware,
        clients: Clients,
        interrupts: Interrupts,
        reset: Reset,
        dump: Callable[[], Dump],
    ) -> None:
        self._hardware, self._clients, self._interrupts = hardware, clients, interrupts
        self._reset, self._dump = reset, dump
        self._awaiter = Awaiter(self, hardware.lock)
        self.elapsed = self._moved_at = 0
        self._progress: tuple[int, ...] = ()

    def wait(
        self,
        condition: Callable[[], bool],
        *,
        timeout: int | None = None,
        step: int = WAIT_CYCLES,
        contexts: Iterable[Client] = (),
    ) -> bool:
        """See ``Driver.wait``."""
        start = self.elapsed
        hardware = self._hardware
        while True:
            with hardware.lock:
                if condition():
                    return True
                waited = self.elapsed - start
                if timeout is not None and waited >= timeout:
                    return False
                shared = threading.active_count() > 1
                most = min(step, _SHARED_WAIT_CYCLES) if shared else step
                cycles = min(most, hardware.hang_cycles, *([timeout - waited] if timeout is not None else []))
                if not self._run_device(cycles):
                    idle = self.elapsed - max(self._moved_at, start)
                    if idle >= hardware.hang_cycles and not condition():
                        self._hang(idle, tuple(contexts))
            self._run_callbacks()
            if shared:
                time.sleep(_TURN_SECONDS)  # locks are not fair: who waits for it would never get it

    async def awaited(self, condition: Callable[[], bool], context: Client) -> None:
        """Returns when ``condition`` holds, for which work of the context is needed; other coroutines run meanwhile."""
        await self._awaiter.wait(condition, context)

    def _run_device(self, cycles: int) -> bool:
        """Lets the device run until its interrupt, which is answered; whether there was one."""
        transport = self._hardware.transport
        rose = transport.wait_irq(cycles)
        if CTRL_C.asked(1):  # the wait ends here, or its cycles were not all waited for
            return True
        if self._interrupts.service(poll=not rose):
            return True
        if rose:  # a line that nobody drives down must not stop time
            self._hardware.statistics.interrupts["spurious"] += 1
            transport.advance(cycles)
        self.elapsed += cycles
        progress = self._read_progress()
        if progress != self._progress:
            self._progress, self._moved_at = progress, self.elapsed
        return False

    def _read_progress(self) -> tuple[int, ...]:
        indices = [queue.control.value("READ_INDEX") for queue in self._clients.queues]
        return (self._hardware.registers.value("CHIP.PROGRESS"), *indices)

    def _run_callbacks(self) -> None:
        """Runs host callbacks that are due, without the lock."""
        while self._run_callback():
            pass

    @CTRL_C.postponed()
    def _run_callback(self) -> bool:
        with self._hardware.lock:
            found = next(((q, due) for q in self._clients.queues if (due := q.take_callback())), None)
        if found is None:
            return False
        queue, (number, function) = found
        try:
            with CTRL_C.allowed():
                function()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not _began(function, error):
                queue.put_back()
            else:
                queue.ran(number, error)  # whatever it was, the queue goes on
            if not isinstance(error, Exception):
                raise
        else:
            queue.ran(number, None)
        return True

    # Hangs

    def _hang(self, cycles: int, contexts: tuple[Client, ...]) -> None:
        """Nothing moved: resets who is waited for, or the device, and raises."""
        if not contexts:
            raise self._reset.force(cycles)
        dump = self._dump()
        first, *_ = [context.reset(ContextHang(context.number, cycles, dump)) for context in contexts]
        raise first

    def force(self) -> DeviceHang:
        """The last resort against work that cannot be stopped: a reset of everything. The error of what was lost."""
        return self._reset.force(self._hardware.hang_cycles)


def _began(function: Callable[[], None], error: BaseException) -> bool:
    """Whether the error was raised in the function, and not just before it. What is no function of Python leaves no
    trace of that: it has begun."""
    code = getattr(function, "__code__", None)
    return code is None or any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__))
