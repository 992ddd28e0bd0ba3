"""What can go wrong with a device, under one root. Every message names the value, the bound and the remedy."""

# ruff: noqa: N818 (the names say what happened, as in `except QueueFull`)

from __future__ import annotations

from typing import Protocol

from sley.abi.errors import SleyError
from sley.abi.faults import FaultRecord


class Snapshot(Protocol):
    """The device's state at one time, as an error keeps it: what ``Driver.dump`` returns."""

    def summary(self) -> str:
        """One line: who is stuck, and on what."""
        ...

    def json(self) -> str:
        """Everything, for programs."""
        ...


class ProbeError(SleyError):
    """What answers at the other end is not a device this driver can use."""


class AbiMismatch(ProbeError):
    """The device speaks another major version of the contract."""


class ConfigMismatch(ProbeError):
    """The device's capabilities contradict its configuration hash."""


class OutOfDeviceMemory(SleyError, MemoryError):
    """No free range of device memory is long enough."""


class BufferFreed(SleyError):
    """Memory is used, or freed again, after it was freed or unmapped."""


class NoRoom(SleyError):
    """All contexts or all hardware queues are taken."""


class ContextClosed(SleyError):
    """A context is used after it was closed."""


class DriverClosed(ContextClosed):
    """A driver is used after it was closed, and all its contexts with it."""

    def __init__(self, chip: str) -> None:
        super().__init__(f"the driver of the chip {chip} was closed; open the device again with Driver.open")


class BadRequest(SleyError, ValueError):
    """A request was refused before it reached the device: out of range, misaligned or contradictory."""


class QueueFull(SleyError):
    """No slot of the ring became free within the time that the caller allowed."""


class WaitTimeout(SleyError, TimeoutError):
    """The device still makes progress, but did not finish within the time that the caller allowed."""


class DeviceCorrupt(SleyError):
    """The device wrote a value that it cannot mean, for example a read index outside the ring."""


class CallbackFailed(SleyError):
    """A host callback raised; ``__cause__`` is what."""


class NoCycleCounts(SleyError):
    """The device counts no cycles, only work."""

    def __init__(self) -> None:
        super().__init__(
            "no cycles were counted: the engine model has none. Its rows, bytes and beats are exact, its classes of "
            "cycles are all zero; use its option cycles=on, or fast, rtl or pysim for those"
        )


class ResetFailed(SleyError):
    """The device did not come out of reset."""


class QueueFault(SleyError):
    """A queue stopped with an error record. The packets behind the guilty one were dropped; the queue runs again.

    Attributes: ``record``; ``context``, ``queue`` (of the chip), ``position`` (of the packet among all that the queue
    ever got), ``packet`` (text of the guilty packet) and ``buffer_index`` (where in the buffer of an INDIRECT packet it
    is, if it is in one). The fields of the record are attributes of the error, too.
    """

    def __init__(
        self,
        record: FaultRecord,
        *,
        context: int,
        queue: int,
        position: int,
        packet: str,
        buffer_index: int | None = None,
    ) -> None:
        self.record = record
        self.context, self.queue, self.position = context, queue, position
        self.packet, self.buffer_index = packet, buffer_index
        self.code, self.unit, self.core = record.code, record.unit, record.core
        self.pc, self.block, self.address = record.pc, record.block, record.address
        inside = "" if buffer_index is None else f", {buffer_index} of its buffer"
        super().__init__(
            f"queue {queue} of context {context} stopped: {record.code.name} in {record.where}: {record.explain()}; "
            f"packet {position}{inside}: {packet}"
        )


class ContextHang(SleyError):
    """Nothing moved for longer than the limit. The context was reset and can be used again; its pending work is lost.
    Other contexts noticed nothing.

    ``dump`` is the device's state before the reset.
    """

    def __init__(self, context: int, cycles: int, dump: Snapshot) -> None:
        self.context, self.cycles, self.dump = context, cycles, dump
        super().__init__(f"no progress for {cycles} cycles; context {context} was reset; {dump.summary()}")


class ContextReset(SleyError):
    """The work was in flight when its context was reset or closed; it is lost."""


class DeviceReset(SleyError):
    """The work was in flight when the whole device was reset; it is lost, whoever's it was."""


class DeviceHang(DeviceReset):
    """A queue could not be stopped, so the whole device was reset. It can be used again; all pending work is lost.

    ``dump`` is the device's state before the reset.
    """

    def __init__(self, cycles: int, dump: Snapshot) -> None:
        self.cycles, self.dump = cycles, dump
        super().__init__(f"work did not stop within {cycles} cycles; the device was reset; {dump.summary()}")
