"""State of one hardware queue: indices, state, whether it has an error."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.command import ErrorAddress, QueueEvent
from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, QueueState
from sley.abi.packets import PACKET_BYTES, PACKETS, PacketOp
from sley.abi.timing import RETRY_CYCLES
from sley.hw.command.bank import command_registers
from sley.hw.command.records import INDEX_BITS, QueueError

PACKET_SHIFT = PACKET_BYTES.bit_length() - 1
BUFFER_BITS = PACKETS[PacketOp.INDIRECT].layout.fields["packets"].width
"""Width of a packet's index in a buffer."""
PACKET_ADDRESS_BITS = 32 - PACKET_SHIFT + 1
"""Width of an address in units of packets, one bit wider than addresses."""


class Queue(wiring.Component):
    """One hardware queue between its registers and the executor.

    Parameters
    ----------
    config : ChipConfig
        Sets the shape of the registers.

    Members
    -------
    registers : In(see command_registers)
        Its block of the register bank.
    doorbell : In(INDEX_BITS), doorbell_written : In(1)
        Its page.
    event : In(QueueEvent)
        From the executor, for this queue alone.
    fault_code : In(8)
        Valid with FAULT.
    buffer : In(PACKET_ADDRESS_BITS), buffer_packets : In(BUFFER_BITS)
        Valid with ENTER: address of the first packet in units of packets, and their number.
    posted : In(1)
        Its read index is in flight to memory.
    lost : In(1), lost_code : In(8)
        High for a cycle when memory refused that, and why.
    pending : Out(1)
        It has a packet to be taken. Registered, so stale for two cycles after an event, in which it is ignored.
    packet : Out(PACKET_ADDRESS_BITS), nested : Out(1)
        Address, in units of packets, of the packet to be taken next, and whether it is in a buffer: while the queue is
        held until RETIRE, the one behind that which is executed. Registered.
    ahead : Out(1)
        There is one, and nothing has happened that may keep it from being taken. Registered.
    stays : Out(1)
        The queue is in a buffer, also when the packet that is executed has retired.
    read_next : Out(INDEX_BITS)
        If not: the read index then.
    aborting : Out(1)
        Whatever of it runs shall end. From CONTROL.abort until the queue has stopped.
    failed : Out(1)
        High for one cycle when the queue stops with an error.
    rings : Out(1), rung : Out(1)
        A doorbell is heard, a bad one too; one was since the queue was turned on.
    error : Out(QueueError)
        See ``QueueRecords``, which keeps what software reads of both.

    Rules
    -----
    1. The queue is *held* from TAKE to FINISH, BLOCK, ENTER or FAULT. That software turns it off or aborts it, a bad
       doorbell, and a read index that could not be written take effect when it is not held, and not ``pending`` either,
       which it is for one cycle more. It is turned off when its read index is in memory.
    2. A doorbell is ignored while the queue is off or has stopped.
    3. Another doorbell's index becomes the write index, unless it is not below twice the ring's length or further than
       that length ahead of the read index: then the queue stops with BAD_DOORBELL and the index as address.
    4. The queue also stops so when the write index is behind the read index after a packet: a doorbell took that packet
       back while it ran.
    5. After ENTER its packets come from a buffer; the read index moves when the last of them retires.

    Latency
    -------
    Doorbell to ``pending`` two cycles.

    Cost
    ----
    About 220 flip-flops.
    """

    registers: wiring.PureInterface
    doorbell: Signal
    doorbell_written: Signal
    event: Signal
    fault_code: Signal
    buffer: Signal
    buffer_packets: Signal
    posted: Signal
    lost: Signal
    lost_code: Signal
    pending: Signal
    packet: Signal
    nested: Signal
    ahead: Signal
    stays: Signal
    read_next: Signal
    aborting: Signal
    failed: Signal
    rings: Signal
    rung: Signal
    error: data.View

    def __init__(self, config: ChipConfig) -> None:
        super().__init__(
            {
                "registers": In(command_registers(config)["queue"].signature),
                "doorbell": In(INDEX_BITS),
                "doorbell_written": In(1),
                "event": In(QueueEvent),
                "fault_code": In(8),
                "buffer": In(PACKET_ADDRESS_BITS),
                "buffer_packets": In(BUFFER_BITS),
                "posted": In(1),
                "lost": In(1),
                "lost_code": In(8),
                "pending": Out(1),
                "packet": Out(PACKET_ADDRESS_BITS),
                "nested": Out(1),
                "ahead": Out(1),
                "stays": Out(1),
                "read_next": Out(INDEX_BITS),
                "aborting": Out(1),
                "failed": Out(1),
                "rings": Out(1),
                "rung": Out(1),
                "error": Out(QueueError),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        r = self.registers

        state = Signal(QueueState)
        event_state = Signal(QueueState)  # what the executor's event makes of it
        own_state = Signal(QueueState)  # ... and what becomes of it while that has nothing to say
        free = Signal()  # then
        held = Signal()
        stopping = Signal()
        bad = Signal()
        passed = Signal()  # the packet that retired last had been taken back; of no meaning if ``bad``
        lost = Signal()
        executed = Signal()  # a packet is: the queue is held, and that has not retired
        retry = Signal(range(RETRY_CYCLES))
        read = Signal(INDEX_BITS)
        write = Signal(INDEX_BITS)
        lost_code = Signal(8, reset_less=True)

        buffer = Signal(PACKET_ADDRESS_BITS, reset_less=True)
        buffer_last = Signal(BUFFER_BITS, reset_less=True)
        buffer_index = Signal(BUFFER_BITS)
        inside = Signal()
        at_last = Signal()
        buffer_next = Signal(INDEX_BITS, reset_less=True)
        read_next = Signal(INDEX_BITS, reset_less=True)
        m.d.comb += self.read_next.eq(read_next)

        # SIZE is set up before the queue is enabled: everything derived from it may lag.
        below = Signal(INDEX_BITS)
        upper = Signal(INDEX_BITS, reset_less=True)  # the length
        m.d.sync += [
            below.eq(Cat(r.size.log2 > k for k in range(INDEX_BITS - 1))),
            upper.eq(Cat(r.size.log2 == k for k in range(INDEX_BITS))),
        ]
        mask = Cat(1, below[:-1])  # twice the length, minus one
        # What is behind these indices is known late, but before the next packet is taken.
        m.d.sync += [
            at_last.eq(buffer_index == buffer_last),
            buffer_next.eq(buffer_index + 1),
            read_next.eq((read + 1) & mask),
        ]

        on = (state != QueueState.DISABLED) & (state != QueueState.ERROR)
        behind = Signal()
        # The place of the next packet, in the buffer or in the ring.
        in_buffer = Signal()
        following = Signal(INDEX_BITS)
        m.d.comb += [
            self.stays.eq(inside & ~at_last),
            in_buffer.eq(Mux(executed, self.stays, inside)),
            following.eq(
                Mux(in_buffer, Mux(executed, buffer_next, buffer_index), Mux(executed, read_next, read) & below)
            ),
        ]
        empty, none_behind = Signal(), Signal()  # no packet is in the ring; none behind the one that is executed
        m.d.comb += [empty.eq(write == read), none_behind.eq(write == read_next)]
        # Of a ring of one packet the indices do not tell whether it was taken back or rung again.
        m.d.comb += behind.eq(passed | (inside & empty))
        none_left = self._doorbell(m, on, read, write, empty, bad, passed, (below, upper, mask))

        with m.If(retry != 0):
            m.d.sync += retry.eq(retry - 1)
        with m.If(~r.control.enable):
            m.d.sync += stopping.eq(1)
        with m.If(self.lost):
            m.d.sync += [lost.eq(1), lost_code.eq(self.lost_code)]

        waiting = (state == QueueState.READY) | (state == QueueState.BLOCKED)
        ahead = Signal()
        healthy = on & ~stopping & ~self.aborting & ~bad & ~lost & ~behind
        m.d.comb += ahead.eq(healthy & (in_buffer | (~empty & ~(executed & none_behind))))
        start = Mux(in_buffer, buffer, r.base.address[PACKET_SHIFT:])
        m.d.sync += [
            self.ahead.eq(ahead),
            self.nested.eq(in_buffer),
            self.pending.eq(waiting & ~held & ahead & (retry == 0)),
            self.packet.eq(start + following),
            self.failed.eq(0),
        ]

        # All that is cleared or written as a whole comes behind this chain: so flip-flops do it, without logic.
        off = Signal()
        faulted = Signal()
        stops = Signal()
        m.d.comb += off.eq(state == QueueState.DISABLED)
        code = Signal.like(self.error.code)
        # What is to be named, whoever stops the queue: chosen by registers, as the word to stop comes late.
        address = Mux(lost, ErrorAddress.READBACK, Mux(bad | behind, ErrorAddress.DOORBELL, ErrorAddress.NONE))

        def stop(code_of_cause: ValueLike) -> None:
            m.d.sync += self.failed.eq(1)
            m.d.comb += [own_state.eq(QueueState.ERROR), stops.eq(1), code.eq(code_of_cause)]

        m.d.comb += [
            free.eq(~held & ~self.pending & ~self._has(QueueEvent.TAKE)),
            own_state.eq(state),
            event_state.eq(self._after_event(state, held)),
        ]
        m.d.sync += state.eq(Mux(free, own_state, event_state))

        with m.If(self._has(QueueEvent.TAKE)):
            m.d.sync += [held.eq(1), executed.eq(1)]
        with m.Elif(held):
            with m.If(self._has(QueueEvent.RETIRE)):
                m.d.sync += executed.eq(0)
                with m.If(self.stays):
                    m.d.sync += buffer_index.eq(buffer_next)
                with m.Else():
                    m.d.sync += [
                        read.eq(read_next),
                        passed.eq(none_left),
                        inside.eq(0),
                        buffer_index.eq(0),
                    ]
            with m.If(self._has(QueueEvent.ENTER)):
                m.d.sync += [
                    held.eq(0),
                    executed.eq(0),
                    inside.eq(1),
                    buffer.eq(self.buffer),
                    buffer_last.eq(self.buffer_packets - 1),
                ]
            with m.If(self._has(QueueEvent.FINISH)):
                m.d.sync += held.eq(0)
            with m.If(self._has(QueueEvent.BLOCK)):
                m.d.sync += [
                    held.eq(0),
                    executed.eq(0),
                    retry.eq(RETRY_CYCLES - 1),
                ]
            with m.If(self._has(QueueEvent.FAULT)):
                m.d.sync += [
                    held.eq(0),
                    executed.eq(0),
                    self.failed.eq(~stopping),
                ]
                m.d.comb += faulted.eq(1)
        # A queue that is pending may be taken in this very cycle: it stops in the next one.
        with m.If(free):
            with m.If(off), m.If(r.control.enable):
                m.d.comb += own_state.eq(QueueState.READY)
            with m.Elif(waiting & lost & ~stopping):
                stop(lost_code)
            with m.Elif(stopping), m.If(~self.posted):
                m.d.comb += own_state.eq(QueueState.DISABLED)
            with m.Elif(waiting & (bad | behind)):
                stop(FaultCode.BAD_DOORBELL)
            with m.Elif(waiting & self.aborting):
                stop(FaultCode.ABORTED)
        with m.If(faulted | stops):
            m.d.sync += [
                self.error.code.eq(Mux(held, self.fault_code, code)),
                self.error.address.eq(Mux(held, ErrorAddress.FAULT, address)),
            ]
        with m.If(off):
            m.d.sync += [
                read.eq(0),
                write.eq(0),
                inside.eq(0),
                buffer_index.eq(0),
                self.error.eq(0),
                self.rung.eq(0),
                retry.eq(0),
                bad.eq(0),
                passed.eq(0),
                lost.eq(0),
                self.aborting.eq(0),
                stopping.eq(0),
            ]
        with m.If(r.control.abort & on):
            m.d.sync += self.aborting.eq(1)
        m.d.comb += [
            r.read_index.index.eq(read),
            r.write_index.index.eq(write),
            r.buffer_index.index.eq(buffer_index),
            r.buffer_index.in_buffer.eq(inside),
            r.state.state.eq(state),
        ]
        return m

    def _has(self, event: QueueEvent) -> Value:
        """The executor's event is this one."""
        return (self.event & event).any()

    def _doorbell(
        self,
        m: Module,
        on: Value,
        read: Signal,
        write: Signal,
        empty: Signal,
        bad: Signal,
        passed: Signal,
        ring: tuple[Signal, Signal, Value],
    ) -> Signal:
        """Moves the write index, or marks the doorbell as bad. Returns whether no packet is in the ring, with this
        cycle's doorbell; of no meaning if that is bad."""
        below, upper, mask = ring
        # An index lies further than the length ahead, modulo twice that, if its distance has the upper bit and another.
        gap = Signal(INDEX_BITS)
        beyond = Signal()
        rung_empty = Signal()
        m.d.comb += [
            gap.eq(self.doorbell - read),
            rung_empty.eq(self.doorbell == read),
            beyond.eq(((gap & upper).any() & (gap & below).any()) | (self.doorbell & ~mask).any()),
        ]
        counts = Signal()
        none_left = Signal()
        m.d.comb += [
            self.rings.eq(self.doorbell_written & on & ~bad),
            counts.eq(self.rings & ~beyond),
            none_left.eq(Mux(self.rings, rung_empty, empty)),
        ]
        with m.If(self.rings):
            m.d.sync += [self.rung.eq(1), bad.eq(beyond), passed.eq(0)]
        with m.If(counts):
            m.d.sync += write.eq(self.doorbell)
        return none_left

    def _after_event(self, state: Signal, held: Signal) -> Value:
        """The state after the executor's event, which comes late and alone: what follows from it is a sum, no chain."""
        follows = {
            QueueEvent.ENTER: QueueState.READY,
            QueueEvent.FINISH: QueueState.READY,
            QueueEvent.LAUNCH: QueueState.LAUNCHED,
            QueueEvent.BLOCK: QueueState.BLOCKED,
            QueueEvent.FAULT: QueueState.ERROR,
        }
        begins = self._has(QueueEvent.TAKE) & (state == QueueState.READY)
        changes = begins | (held & (self.event & sum(follows)).any())
        named = [Mux(begins, QueueState.ACTIVE, 0), *(Mux(self._has(e), s, 0) for e, s in follows.items())]
        return Mux(changes, reduce(or_, named), state)
