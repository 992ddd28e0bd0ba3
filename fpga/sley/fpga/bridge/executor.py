"""Executes the commands of intact frames, one after another, and answers each."""

from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.fpga.bridge.frames import (
    EXPECTED_AT,
    FAILURES_AT,
    HEADER,
    IDENTITY_BYTES,
    IRQ,
    SEQUENCES,
    WORD_BYTES,
    Code,
    Identity,
    Status,
)
from sley.fpga.bridge.receiver import frame_item
from sley.fpga.bridge.transmitter import body_item
from sley.hw.bus.axi_lite import DATA_BITS, AxiLite
from sley.hw.memory.axi import BURST_INCR, CACHE_NORMAL, RESP_ERROR, axi4_signature

BUS_CYCLES = 1 << 16
"""Cycles after which a bus that has not answered is given up."""

ADDRESS_BITS = 32

_head = data.StructLayout({"code": 8, "sequence": 8, "length": 8, "address": ADDRESS_BITS})

_kind = data.StructLayout(
    {
        "clears": 1,
        "writes": 1,
        "reads": 1,  # the reply has data
        "of_register": 1,
        "of_memory": 1,  # a read
        "unknown": 1,
        "is_next": 1,  # by its sequence number
        "is_last": 1,  # again
    }
)
"""What is known of a command by its head."""


class CommandExecutor(wiring.Component):
    """Between the frames of the host and the buses of the chip.

    Parameters
    ----------
    config : ChipConfig
        Of the memory bus.
    identity : Identity
        What IDENTIFY replies.

    Members
    -------
    i : In(stream.Signature(frame_item))
        Bytes of intact frames, CRC included, each frame followed by ``end``.
    bad : In(1)
        A frame was dropped.
    o : Out(stream.Signature(body_item))
        Bodies of replies.
    registers : Out(AxiLite()), memory : Out(axi4_signature(config))
        Bus managers, whose outputs are registers.
    irq : In(1)
        The chip's interrupt line.

    Rules
    -----
    1. There is exactly one reply for each frame and for each dropped one; several dropped while another command runs
       may share one.
    2. A command is executed if its sequence number is the next one. If it is the last one again, its reply is repeated:
       memory is read anew, nothing else is executed.
    3. Memory is accessed a beat at a time, with strobes where a burst covers a beat in part. Commands take effect in
       their order, each before the next begins.
    4. A bus that does not respond within ``BUS_CYCLES`` is given up: the command, and all later ones that need a bus,
       end with BUS_TIMEOUT until reset; what the bus has not accepted stays as it is.

    Throughput
    ----------
    Some three cycles for a byte of a frame, and what the bus takes for a beat; the line is slower by far.

    Cost
    ----
    One beat and its address, one word, a 33-bit counter for addresses and cycles, the head of a command.
    """

    i: stream.Interface
    bad: Signal
    o: stream.Interface
    registers: Any
    memory: Any
    irq: Signal

    def __init__(self, config: ChipConfig, identity: Identity) -> None:
        self._config = config
        self._identity = identity
        super().__init__(
            {
                "i": In(stream.Signature(frame_item)),
                "bad": In(1),
                "o": Out(stream.Signature(body_item)),
                "registers": Out(AxiLite()),
                "memory": Out(axi4_signature(config)),
                "irq": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus_bytes = self._config.bus_bytes
        lane_bits = exact_log2(bus_bytes)

        head = Signal(_head, reset_less=True)  # a byte enters at the top; ``length`` and ``address`` count
        missing = Signal(range(HEADER.size + 1), init=HEADER.size)  # bytes of the head
        carry = Signal(reset_less=True)  # out of the address: all cycles of a wait have passed
        beat = Signal(8 * bus_bytes, reset_less=True)
        strobe = Signal(bus_bytes, reset_less=True)
        lane = Signal(lane_bits, reset_less=True)  # of the beat's lowest byte, in a read
        word = Signal(DATA_BITS, reset_less=True)  # of the last READ_REGISTER
        last = Signal(8, init=SEQUENCES - 1)  # sequence number of the last command
        expected = Signal(8)
        failures = Signal(8)
        status = Signal(Status)  # of the last command
        irq = Signal()  # at the end of the last wait
        refusal = Signal(Status)  # of this command, which is not executed
        dropped = Signal()  # a frame, and the host was not told yet
        pending = Signal()  # to be executed behind the end of the frame

        code = Signal(3)
        kind = self._decode(m, head, code, last, expected)
        in_lane = Signal(lane_bits)
        m.d.comb += [code.eq(head.code), in_lane.eq(head.address), expected.eq(last + 1)]
        enter = Signal()  # a byte of the head
        step = Signal()  # its address
        count = Signal()  # its length
        load = Signal()  # the beat
        shift = Signal()
        fetched = Signal()  # a word
        ask = Signal()  # a bus
        waits = Signal()  # it was asked
        times = Signal()  # a cycle that it may take
        answered = Signal()
        done, error = self._buses(m, ask, code, head.address, beat, strobe)
        given_up = self._timer(m, times)
        m.d.comb += answered.eq(done & waits)

        with m.If(self.bad):
            m.d.sync += dropped.eq(1)
        self._head(m, head, carry, enter, step, count)
        # What a bus that was given up has not taken stays on it.
        with m.If((load | shift) & ~given_up):
            m.d.sync += [
                beat.eq(Mux(load, self.memory.rdata, Cat(beat[8:], Mux(kind.clears, 0, self.i.payload.data)))),
                lane.eq(Mux(load, 0, lane + 1)),
            ]
        with m.If(fetched):
            m.d.sync += word.eq(self.registers.rdata)

        with m.FSM():
            with m.State("HEAD"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(missing == 0):
                    m.d.comb += self.i.ready.eq(0)
                    m.d.sync += missing.eq(HEADER.size)
                    m.next = "CHOOSE"
                with m.Elif(dropped & (missing == HEADER.size)):  # it came before the frame that waits
                    m.d.comb += self.i.ready.eq(0)
                    m.d.sync += [dropped.eq(self.bad), refusal.eq(Status.BAD_FRAME)]
                    m.next = "SEQUENCE"
                with m.Elif(self.i.valid):
                    m.d.comb += enter.eq(1)
                    m.d.sync += missing.eq(missing - 1)
                    with m.If(self.i.payload.end):  # shorter than a head
                        m.d.sync += [missing.eq(HEADER.size), refusal.eq(Status.BAD_COMMAND)]
                        m.next = "SEQUENCE"

            with m.State("CHOOSE"):
                m.d.sync += pending.eq(~kind.writes)
                with m.If(~given_up):
                    m.d.sync += strobe.eq(0)
                m.next = "END"
                with m.If(kind.unknown | (kind.of_register & (head.length != WORD_BYTES))):
                    m.d.sync += [refusal.eq(Status.BAD_COMMAND), pending.eq(0)]
                with m.Elif(code == Code.IDENTIFY):
                    m.d.sync += pending.eq(0)
                with m.Elif(kind.is_next):
                    m.d.sync += [status.eq(Status.OK), irq.eq(0), last.eq(expected)]
                    with m.If(kind.writes & (head.length != 0)):
                        m.next = "FILL"
                with m.Elif(kind.is_last):
                    m.d.sync += pending.eq(0)
                with m.Else():
                    m.d.sync += [refusal.eq(Status.OUT_OF_SEQUENCE), pending.eq(0)]

            with m.State("FILL"):  # a beat, or the word of a register
                padding = head.length == 0
                m.d.comb += self.i.ready.eq(~padding & ~kind.clears)
                with m.If(self.i.ready & self.i.valid & self.i.payload.end):
                    m.d.sync += status.eq(Status.BAD_COMMAND)
                    m.next = "SEQUENCE"
                with m.Elif(~self.i.ready | self.i.valid):
                    m.d.comb += [shift.eq(1), count.eq(~padding)]
                    with m.If(~given_up):
                        m.d.sync += strobe.eq(Cat(strobe[1:], ~padding))
                    with m.If(Mux(kind.of_register, head.length == 1, in_lane.all())):
                        m.next = "BUS"
                    with m.Elif(~kind.of_register):
                        m.d.comb += step.eq(1)

            with m.State("BUS"):
                # What is on the bus is taken in every cycle, the last time with the answer.
                m.d.comb += [fetched.eq(code == Code.READ_REGISTER), load.eq(code == Code.READ_MEMORY)]
                m.d.comb += [ask.eq(~waits & ~given_up), times.eq(~answered)]
                m.d.sync += waits.eq(1)
                with m.If(answered | given_up):
                    m.d.sync += waits.eq(0)
                    with m.If(given_up | error):
                        m.d.sync += [
                            status.eq(Mux(given_up, Status.BUS_TIMEOUT, Status.BUS_ERROR)),
                            failures.eq(failures + 1),
                        ]
                    with m.If(kind.writes):
                        m.next = "END"
                        with m.If(~given_up & ~error & (head.length != 0)):
                            m.d.comb += step.eq(1)
                            m.next = "FILL"
                    with m.Elif(kind.of_register):
                        m.next = "SEQUENCE"
                    with m.Else():
                        m.next = "DATA"
                        with m.If(given_up | error):
                            m.next = "STATUS"

            with m.State("END"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid & self.i.payload.end):
                    m.next = "SEQUENCE"
                    with m.If(pending & (code == Code.READ_REGISTER)):
                        m.next = "BUS"
                    with m.If(pending & ~kind.reads):
                        m.next = "WAIT"

            with m.State("WAIT"):
                m.d.comb += step.eq(1)
                with m.If(carry | (irq & (code == Code.WAIT_IRQ))):
                    m.d.comb += step.eq(0)
                    m.next = "SEQUENCE"
                m.d.sync += irq.eq(self.irq)

            with m.State("SEQUENCE"):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.data.eq(head.sequence)]
                with m.If(self.o.ready):
                    m.next = "STATUS"
                    with m.If((refusal == Status.OK) & kind.reads & (head.length != 0)):
                        m.next = "DATA"
                        with m.If(kind.of_memory):
                            m.next = "BUS"

            with m.State("DATA"):
                skipped = kind.of_memory & (lane != in_lane)
                with m.If(kind.of_memory):
                    m.d.comb += self.o.payload.data.eq(beat[:8])
                with m.Elif(kind.of_register):  # 4, 3, 2, 1 bytes are left
                    m.d.comb += self.o.payload.data.eq(word.word_select((-head.length)[:2], 8))
                with m.Else():
                    m.d.comb += self.o.payload.data.eq(self._identify(head.address, expected, failures))
                m.d.comb += self.o.valid.eq(~skipped)
                with m.If(skipped):
                    m.d.comb += shift.eq(1)
                with m.Elif(self.o.ready):
                    m.d.comb += [shift.eq(1), step.eq(1), count.eq(1)]
                    with m.If(head.length == 1):
                        m.next = "STATUS"
                    with m.Elif(kind.of_memory & in_lane.all()):
                        m.next = "BUS"

            with m.State("STATUS"):
                answer = Mux(refusal == Status.OK, Value.cast(status), Value.cast(refusal))
                m.d.comb += [
                    self.o.valid.eq(1),
                    self.o.payload.last.eq(1),
                    self.o.payload.data.eq(answer | Mux(irq, IRQ, 0)),
                ]
                with m.If(self.o.ready):
                    m.d.sync += refusal.eq(Status.OK)
                    m.next = "HEAD"
        return m

    def _decode(self, m: Module, head: data.View, code: Signal, last: Signal, expected: Signal) -> data.View:
        """What a head says, a cycle after its last byte."""
        kind = Signal(_kind, reset_less=True)
        m.d.sync += [
            kind.clears.eq(code == Code.CLEAR_MEMORY),
            kind.writes.eq((code == Code.WRITE_MEMORY) | (code == Code.WRITE_REGISTER) | (code == Code.CLEAR_MEMORY)),
            kind.reads.eq((code == Code.IDENTIFY) | (code == Code.READ_MEMORY) | (code == Code.READ_REGISTER)),
            kind.of_register.eq((code == Code.WRITE_REGISTER) | (code == Code.READ_REGISTER)),
            kind.of_memory.eq(code == Code.READ_MEMORY),
            kind.unknown.eq(head.code > max(Code)),
            kind.is_next.eq(head.sequence == expected),
            kind.is_last.eq(head.sequence == last),
        ]
        return kind

    def _head(self, m: Module, head: data.View, carry: Signal, enter: Signal, step: Signal, count: Signal) -> None:
        """Each of these registers has one enable and one multiplexer."""
        entered = data.View(_head, Cat(Value.cast(head)[8:], self.i.payload.data))
        with m.If(enter):
            m.d.sync += [head.code.eq(entered.code), head.sequence.eq(entered.sequence)]
        with m.If(enter | step):
            stepped = Cat(entered.address, 0)
            m.d.sync += Cat(head.address, carry).eq(Mux(enter, stepped, head.address + 1))
        with m.If(enter | count):
            m.d.sync += head.length.eq(Mux(enter, entered.length, head.length - 1))

    def _timer(self, m: Module, times: Signal) -> Value:
        """Counts the cycles that a bus takes; returns whether it is given up, which is for ever."""
        timer = Signal(range(BUS_CYCLES + 1))
        given_up = timer[-1]
        m.d.sync += timer.eq(timer + (times & ~given_up))
        with m.If(~times & ~given_up):
            m.d.sync += timer.eq(0)
        return given_up

    def _buses(
        self, m: Module, ask: Signal, code: Signal, address: Value, beat: Signal, strobe: Signal
    ) -> tuple[Signal, Signal]:
        """Requests from the cycle after ``ask`` until they are taken; answers: any, and whether it is an error."""
        registers, memory = self.registers, self.memory
        bus_bytes = self._config.bus_bytes
        asked = Signal(ADDRESS_BITS, reset_less=True)
        with m.If(ask):
            m.d.sync += asked.eq(address)
        aligned = Cat(Const(0, exact_log2(bus_bytes)), asked[exact_log2(bus_bytes) :])
        m.d.comb += [
            registers.awaddr.eq(asked),
            registers.araddr.eq(asked),
            registers.wdata.eq(beat[-DATA_BITS:]),
            registers.wstrb.eq(-1),
            memory.wdata.eq(beat),
            memory.wstrb.eq(strobe),
            memory.wlast.eq(1),
        ]
        for channel in ("aw", "ar"):
            m.d.comb += [
                getattr(memory, f"{channel}addr").eq(aligned),
                getattr(memory, f"{channel}size").eq(exact_log2(bus_bytes)),
                getattr(memory, f"{channel}burst").eq(BURST_INCR),
                getattr(memory, f"{channel}cache").eq(CACHE_NORMAL),
            ]
        done = Signal()  # an answer has come, and is taken now
        error = Signal()
        for bus, writes, read in (
            (registers, (code == Code.WRITE_REGISTER), Code.READ_REGISTER),
            (memory, (code == Code.WRITE_MEMORY) | (code == Code.CLEAR_MEMORY), Code.READ_MEMORY),
        ):
            for channel, asks in (("aw", writes), ("w", writes), ("ar", code == read)):
                valid, ready = getattr(bus, f"{channel}valid"), getattr(bus, f"{channel}ready")
                with m.If(ask & asks):
                    m.d.sync += valid.eq(1)
                with m.Elif(ready):
                    m.d.sync += valid.eq(0)
        answers = [(bus, channel) for bus in (registers, memory) for channel in ("b", "r")]
        valids = [getattr(bus, f"{channel}valid") for bus, channel in answers]
        errors = [getattr(bus, f"{channel}resp") & RESP_ERROR for bus, channel in answers]
        m.d.comb += [getattr(bus, f"{channel}ready").eq(done) for bus, channel in answers]
        m.d.sync += [
            done.eq(Cat(valids).any() & ~done),
            error.eq(Cat(valid & wrong.any() for valid, wrong in zip(valids, errors, strict=True)).any()),
        ]
        return done, error

    def _identify(self, index: Value, expected: Signal, failures: Signal) -> Value:
        """The byte of the identity at ``index``."""
        from amaranth.hdl import Array

        data: list[Any] = list(self._identity.pack())
        data[EXPECTED_AT], data[FAILURES_AT] = expected, failures
        bits = (IDENTITY_BYTES - 1).bit_length()
        return Array(data + [0] * ((1 << bits) - len(data)))[index[:bits]]
