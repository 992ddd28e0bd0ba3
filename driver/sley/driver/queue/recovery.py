"""A queue is set up, stopped, and set up again after a fault or a reset: what was in it is lost."""

from __future__ import annotations

from contextlib import suppress

from sley.abi.errors import SleyError
from sley.abi.faults import FaultCode, FaultRecord, Unit
from sley.abi.layout import LayoutError
from sley.abi.packets import PACKET_BYTES, PacketOp, decode_packet
from sley.driver.errors import DeviceCorrupt, QueueFault
from sley.driver.queue.callbacks import Callbacks
from sley.driver.queue.fence import FenceLine
from sley.driver.queue.packets import describe_packet
from sley.driver.queue.ring import Ring


class Recovery:
    """What a queue is set up with, and what is given up with it.

    Parameters
    ----------
    ring, fences, callbacks: the parts of the queue. priority, watchdog: see ``Context.queue``. readback: where the
    device writes its read index, an address of the context.
    """

    def __init__(
        self, ring: Ring, fences: FenceLine, callbacks: Callbacks, priority: int, watchdog: int, readback: int
    ) -> None:
        self._ring, self._fences, self._callbacks = ring, fences, callbacks
        self._priority, self._watchdog, self._readback = priority, watchdog, readback

    def enable(self) -> None:
        """Turns the queue, which is off, on with an empty ring."""
        ring = self._ring
        ring.start()
        ring.control.enable(
            context=ring.context.number,
            priority=self._priority,
            watchdog=self._watchdog,
            ring=ring.ring,
            log2=ring.log2_length,
            readback=self._readback,
        )

    def abandon(self, error: SleyError) -> int:
        """Declares every packet that has not finished lost to ``error``; how many there are. The queue is off."""
        lost = self._ring.give_up(error)
        self._fences.give_up(self._ring.tail)
        self._callbacks.give_up()
        self._ring.restart()
        return lost

    def recover(self) -> None:
        """After a fault: reads the error record, gives up the packets in the ring and turns the queue on again."""
        ring = self._ring
        fault = self._read_fault()
        if not ring.control.stop():
            ring.waiter.force()
            return
        self.abandon(fault)
        ring.losses.unseen = fault
        self.enable()
        ring.context.report(fault, f"QueueFault {fault.code.name}")

    def _read_fault(self) -> QueueFault:
        ring, control = self._ring, self._ring.control
        error = control.read("ERROR")
        index = control.value("READ_INDEX")
        with suppress(DeviceCorrupt):
            ring.update_tail(index)
        (packet,) = ring.packets(index, 1)
        inside = control.read("BUFFER_INDEX")
        if inside["in_buffer"]:
            packet = self._inside(packet, inside["index"])
        record = FaultRecord(
            FaultCode(error["code"]),
            Unit(error["unit"]),
            error["core"],
            control.value("ERROR_PC"),
            control.value("ERROR_BLOCK"),
            control.value("ERROR_ADDRESS"),
        )
        return QueueFault(
            record,
            context=ring.context.number,
            queue=ring.index,
            position=ring.tail,
            packet=describe_packet(packet),
            buffer_index=inside["index"] if inside["in_buffer"] else None,
        )

    def _inside(self, indirect: bytes, index: int) -> bytes:
        """A packet of the buffer that an INDIRECT points to; the INDIRECT itself if there is none."""
        with suppress(LayoutError, SleyError):
            op, fields = decode_packet(indirect)
            if op is PacketOp.INDIRECT:  # the ring may have been written to since
                return self._ring.space.read(fields["address"] + index * PACKET_BYTES, PACKET_BYTES)
        return indirect
