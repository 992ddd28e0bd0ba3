"""Small accesses to memory: semaphores, fences, read indices."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.network import AccessError, RequestKind, Tag
from sley.abi.packets import FENCE_BYTES, SEMAPHORE_BYTES
from sley.abi.pages import CONTEXT_BITS
from sley.hw.noc.access import ERROR_BITS
from sley.hw.noc.messages import Source, ask_memory, request_flit, response_payload

LINE_BYTES = FENCE_BYTES
LINE_BITS = exact_log2(LINE_BYTES)

WordCommand = data.StructLayout(
    {"write": 1, "context": CONTEXT_BITS, "addr": 32, "size": range(LINE_BITS + 1), "line": 8 * LINE_BYTES}
)
"""Reads or writes 2^``size`` bytes, at least 4, at a multiple of that. ``line``: what is written, see ``word_line``."""


def word_line(config: ChipConfig, low: Value, high: Value, both: Value) -> Value:
    """What is written, from its first byte on: 8 bytes, and the 8 behind them if there are ``both``. Less than a beat
    of the bus is there for each place in a beat that it may have; so ``low`` has 4 bytes twice."""
    return Cat(low, Mux(both, high, low) if config.bus_bytes >= LINE_BYTES else high)


class WordAccess(wiring.Component):
    """Reads or writes one word at a time; a write may follow a write that is not acknowledged yet.

    Parameters
    ----------
    config : ChipConfig
        The chip.
    tag : Tag, source : Source
        By which memory's answers find their way back.

    Members
    -------
    i : In(stream of WordCommand)
        Ready when the one before is answered, or is a write that was sent, with nothing before it; a read must not come
        then.
    done : Out(1), error : Out(ERROR_BITS)
        High for a cycle with the answer to each, in their order; its ``AccessError``.
    value : Out(8 * SEMAPHORE_BYTES)
        A semaphore that was read, from the cycle after ``done`` to the next command.
    request : Out(stream of request_flit(config)), response : In(stream of response_payload(config))
        To the node's port; the answers to ``tag``, always accepted.

    Latency
    -------
    A command to its head one cycle.

    Cost
    ----
    A line and an address.
    """

    i: stream.Interface
    done: Signal
    error: Signal
    value: Signal
    request: stream.Interface
    response: stream.Interface

    def __init__(self, config: ChipConfig, *, tag: Tag, source: Source) -> None:
        self._config = config
        self._tag = tag
        self._source = source
        super().__init__(
            {
                "i": In(stream.Signature(WordCommand)),
                "done": Out(1),
                "error": Out(ERROR_BITS),
                "value": Out(8 * SEMAPHORE_BYTES),
                "request": Out(stream.Signature(request_flit(config))),
                "response": In(stream.Signature(response_payload(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        bus = config.bus_bytes
        shift = exact_log2(bus)
        piece = min(bus, LINE_BYTES)  # what a beat has of the line
        pieces = LINE_BYTES // piece
        burst = min(pieces, config.max_burst)

        command = Signal(WordCommand, reset_less=True)
        unsent = Signal(range(pieces + 1))  # beats whose request or data are not out yet
        outstanding = Signal(range(pieces + 1))  # answers to come
        outstanding_before = Signal.like(outstanding)  # to the write before this one, which come first
        position = Signal(range(pieces), reset_less=True)  # of the next beat in the line
        failed = Signal(ERROR_BITS)
        body = Signal()  # the next flit is a beat
        beats = Signal.like(unsent)
        take = Signal()
        moves = Signal()  # the line does, by a beat
        multiple = self.i.payload.size > exact_log2(piece)
        m.d.comb += [
            self.i.ready.eq((outstanding == 0) | ((unsent == 0) & command.write & (outstanding_before == 0))),
            take.eq(self.i.valid & self.i.ready),
            beats.eq(Mux(multiple, 1 << self.i.payload.size >> exact_log2(piece), 1)),
        ]
        bursts = Mux(beats > burst, beats >> exact_log2(burst), 1)

        flit: data.View = self.request.payload
        start = command.addr
        if burst < pieces:
            start = (command.addr & -LINE_BYTES) | position << exact_log2(piece)
        together = Mux(unsent > burst, burst, unsent)  # beats in a burst
        m.d.comb += [
            *ask_memory(
                flit,
                config,
                self._source,
                kind=Mux(command.write, RequestKind.WRITE, RequestKind.READ),
                tag=self._tag,
                beats=together - 1,
                addr=start & -bus,
                context=command.context,
            ),
            self.request.valid.eq(unsent != 0),
            self.response.ready.eq(1),
        ]
        with m.If(body):
            lanes = Signal(piece, init=(1 << piece) - 1)
            with m.Switch(command.size):
                for size in range(2, exact_log2(piece)):
                    with m.Case(size):
                        m.d.comb += lanes.eq(((1 << (1 << size)) - 1) << command.addr[: exact_log2(piece)])
            strobe = lanes << (command.addr[LINE_BITS:shift] << LINE_BITS) if bus > LINE_BYTES else lanes
            m.d.comb += [
                flit.payload.beat.data.eq(command.line[: 8 * piece].replicate(bus // piece)),
                flit.payload.beat.strobe.eq(strobe),
                flit.last.eq((unsent & (burst - 1) == 1) | (burst == 1)),
            ]
        with m.Else():
            m.d.comb += flit.last.eq(~command.write)
        with m.If(self.request.valid & self.request.ready):
            with m.If(~body & command.write):
                m.d.sync += body.eq(1)
            with m.Elif(~body):
                m.d.sync += [unsent.eq(unsent - together), position.eq(position + together)]
            with m.Else():
                m.d.sync += [unsent.eq(unsent - 1), position.eq(position + 1), body.eq(~flit.last)]
                m.d.comb += moves.eq(pieces > 1)

        answer = self.response.payload
        read_data = answer.data
        if bus > LINE_BYTES:
            read_data = read_data.word_select(command.addr[LINE_BITS:shift], 8 * LINE_BYTES)
        with m.If(self.response.valid):
            m.d.sync += [failed.eq(Mux(self.done, AccessError.NONE, self.error))]
            with m.If(outstanding_before != 0):
                m.d.sync += outstanding_before.eq(outstanding_before - 1)
            with m.Else():
                m.d.sync += outstanding.eq(outstanding - 1)
            with m.If(~command.write):
                m.d.comb += moves.eq(1)
        # What is written leaves at the low end of the line, what is read comes in at the other.
        with m.If(moves):
            m.d.sync += command.line.eq(Cat(command.line, read_data)[-8 * LINE_BYTES :])
        m.d.comb += [
            self.error.eq(Mux(failed.any(), failed, answer.error)),
            self.done.eq(self.response.valid & (Mux(outstanding_before != 0, outstanding_before, outstanding) == 1)),
            self.value.eq(
                command.line[-8 * SEMAPHORE_BYTES :]
                if pieces > 1
                else command.line.word_select(command.addr[3:LINE_BITS], 8 * SEMAPHORE_BYTES)
            ),
        ]
        with m.If(take):
            first = self.i.payload.addr[exact_log2(piece) : LINE_BITS] if pieces > 1 else 0
            m.d.sync += [
                command.eq(self.i.payload),
                unsent.eq(beats),
                outstanding.eq(Mux(self.i.payload.write, bursts, beats)),
                outstanding_before.eq(outstanding - self.response.valid),
                position.eq(first),
            ]
        return m
