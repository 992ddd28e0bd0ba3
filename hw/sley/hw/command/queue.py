"""State of one hardware queue: indices, state, error record."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.packets import PACKET_BYTES
from sley.abi.registers import RegisterMap
from sley.hw.bus.register_bank import bank_members
from sley.hw.command.records import INDEX_BITS, FaultRecord, QueueEvent

READBACK_BYTES = 4
RETRY_CYCLES = 64
"""Least number of cycles between two looks at the semaphore of a WAIT."""
PACKET_SHIFT = PACKET_BYTES.bit_length() - 1
PACKET_ADDRESS_BITS = 32 - PACKET_SHIFT + 1
"""Width of an address in units of packets, one bit wider than addresses."""


class Queue(wiring.Component):
    """One hardware queue between its registers and the executor.

    The queue is *held* from TAKE to FINISH, BLOCK, DEFER or FAULT; software that turns it off, a bad doorbell, and a
    read index that could not be written take effect when it is not held. It is turned off when its read index is in
    memory. A doorbell is ignored while the queue is off or has stopped; otherwise its index
    becomes the write index, unless it is not below twice the ring's length or further than that length ahead of
    the read index: then the queue stops with BAD_DOORBELL and the index as address. It also stops so when the write
    index lies behind the read index after a packet (a doorbell took that packet back while it ran).

    Members:

    * ``registers``: its block of the register bank; ``doorbell``, ``doorbell_written``: its page; ``time``.
    * ``event``, ``fault``: from the executor, for this queue alone; ``fault`` is valid with the event FAULT.
    * ``scheduler_free``: deferred packets may be tried again.
    * ``posted``: its read index is on the way to memory; ``lost``: high for a cycle when memory refused that.
    * ``pending``: wants to be taken. Registered, so stale for two cycles after an event: leave it alone that long.
    * ``packet``: address, in units of packets, of the packet to be taken next: while the queue is held until RETIRE,
      the one behind that which is executed. ``ahead``: there is one, and nothing has happened that may keep it from
      being taken. Both registered.
    * ``failed``: high for one cycle when the queue stops with an error.

    Latency: doorbell to ``pending`` two cycles. Cost: about 240 flip-flops, most of them the records software reads.
    """

    registers: Any
    doorbell: Any
    doorbell_written: Any
    time: Any
    event: Any
    fault: Any
    scheduler_free: Any
    posted: Any
    lost: Any
    pending: Any
    packet: Any
    ahead: Any
    failed: Any

    def __init__(self, config: ChipConfig) -> None:
        bank = bank_members(RegisterMap(config))
        super().__init__(
            {
                "registers": In(bank["queue"].signature),
                "doorbell": In(INDEX_BITS),
                "doorbell_written": In(1),
                "time": In(64),
                "event": In(QueueEvent),
                "fault": In(FaultRecord),
                "scheduler_free": In(1),
                "posted": In(1),
                "lost": In(1),
                "pending": Out(1),
                "packet": Out(PACKET_ADDRESS_BITS),
                "ahead": Out(1),
                "failed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        r = self.registers
        event = self.event

        state = Signal(QueueState)
        held = Signal()
        stopping = Signal()
        bad = Signal()
        lost = Signal()
        retired = Signal()  # the packet for which the queue is held
        deferred = Signal()
        retry = Signal(range(RETRY_CYCLES))
        read, write, offending = Signal(INDEX_BITS), Signal(INDEX_BITS), Signal(INDEX_BITS, reset_less=True)
        record = Signal(FaultRecord)
        rung = Signal(64)

        # SIZE is set up before the queue is enabled: everything derived from it may lag.
        length, below = Signal(INDEX_BITS, init=1), Signal(INDEX_BITS)
        m.d.sync += [length.eq(1 << r.size.log2), below.eq((1 << r.size.log2) - 1)]
        mask = length | below  # twice the length, minus one

        def distance(index: Value) -> Value:
            result = Signal(INDEX_BITS)
            m.d.comb += result.eq((index - read) & mask)
            return result

        def too_far(gap: Value) -> Value:
            return (gap & length).any() & (gap & below).any()

        on = (state != QueueState.DISABLED) & (state != QueueState.ERROR)
        behind = Signal()
        there = distance(write)
        executed = held & ~retired
        m.d.comb += behind.eq(too_far(there))
        beyond = Signal()
        m.d.comb += beyond.eq(too_far(distance(self.doorbell)) | (self.doorbell & ~mask).any())
        with m.If(self.doorbell_written & on & ~bad):
            m.d.sync += rung.eq(self.time)
            with m.If(beyond):
                m.d.sync += [bad.eq(1), offending.eq(self.doorbell)]
            with m.Else():
                m.d.sync += write.eq(self.doorbell)

        with m.If(retry != 0):
            m.d.sync += retry.eq(retry - 1)
        with m.If(~r.control.enable):
            m.d.sync += stopping.eq(1)

        with m.If(self.lost):
            m.d.sync += lost.eq(1)

        waiting = (state == QueueState.READY) | (state == QueueState.BLOCKED)
        ahead = Signal()
        m.d.comb += ahead.eq(on & ~stopping & ~bad & ~lost & ~behind & (there > executed))
        m.d.sync += [
            self.ahead.eq(ahead),
            self.pending.eq(waiting & ~held & ahead & (retry == 0) & (~deferred | self.scheduler_free)),
            self.packet.eq(r.base.address[PACKET_SHIFT:] + ((read + executed) & below)),
            self.failed.eq(0),
        ]

        with m.If(event == QueueEvent.TAKE):
            m.d.sync += [held.eq(1), retired.eq(0), deferred.eq(0)]
            with m.If(state == QueueState.READY):
                m.d.sync += state.eq(QueueState.ACTIVE)
        with m.Elif(held), m.Switch(event):
            with m.Case(QueueEvent.RETIRE):
                m.d.sync += [read.eq((read + 1) & mask), retired.eq(1)]
            with m.Case(QueueEvent.FINISH):
                m.d.sync += [held.eq(0), state.eq(QueueState.READY)]
            with m.Case(QueueEvent.LAUNCH):
                m.d.sync += state.eq(QueueState.LAUNCHED)
            with m.Case(QueueEvent.BLOCK):
                m.d.sync += [held.eq(0), state.eq(QueueState.BLOCKED), retry.eq(RETRY_CYCLES - 1)]
            with m.Case(QueueEvent.DEFER):
                m.d.sync += [held.eq(0), state.eq(QueueState.READY), deferred.eq(1)]
            with m.Case(QueueEvent.FAULT):
                m.d.sync += [
                    held.eq(0),
                    state.eq(QueueState.ERROR),
                    record.eq(self.fault),
                    self.failed.eq(1),
                ]
        with m.Elif(state == QueueState.DISABLED):
            m.d.sync += [
                read.eq(0),
                write.eq(0),
                record.eq(0),
                rung.eq(0),
                retry.eq(0),
                bad.eq(0),
                lost.eq(0),
                deferred.eq(0),
                stopping.eq(0),
            ]
            with m.If(r.control.enable):
                m.d.sync += state.eq(QueueState.READY)
        with m.Elif(waiting & lost):
            m.d.sync += [
                state.eq(QueueState.ERROR),
                record.code.eq(FaultCode.BUS_ERROR),
                record.unit.eq(Unit.COMMAND),
                record.address.eq(r.readback.address & ~(READBACK_BYTES - 1)),
                self.failed.eq(1),
            ]
        with m.Elif(stopping), m.If(~self.posted):
            m.d.sync += state.eq(QueueState.DISABLED)
        with m.Elif(waiting & (bad | behind)):
            m.d.sync += [
                state.eq(QueueState.ERROR),
                record.code.eq(FaultCode.BAD_DOORBELL),
                record.unit.eq(Unit.COMMAND),
                record.address.eq(Mux(bad, offending, write)),
                self.failed.eq(1),
            ]

        m.d.comb += [
            r.read_index.index.eq(read),
            r.write_index.index.eq(write),
            r.state.state.eq(state),
            r.error.code.eq(record.code),
            r.error.unit.eq(record.unit),
            r.error.core.eq(record.core),
            r.error_pc.pc.eq(record.pc),
            r.error_block.block.eq(record.block),
            r.error_address.address.eq(record.address),
            r.doorbell_time_lo.cycles.eq(rung[:32]),
            r.doorbell_time_hi.cycles.eq(rung[32:]),
        ]
        return m
