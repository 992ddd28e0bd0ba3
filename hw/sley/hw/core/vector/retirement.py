"""The signal sets of the vector unit's commands, in their order."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import SEMAPHORES
from sley.hw.stream.count import step

COMMANDS_IN_FLIGHT = 16
"""Commands that have begun, or are done, and whose signal sets were not taken."""

ENDING = data.StructLayout({"signal": SEMAPHORES, "rows": 1, "fold": 1})
"""A command's signal set, and what it waits for: its last row, a fold; a command with neither is done."""


class Retirement(wiring.Component):
    """A queue of commands that have begun, whose signal sets are offered when they are done.

    Members
    -------
    i : In(stream of ENDING)
        A command begins.
    rows_end : In(1)
        The last row of a command is done: of one command after the other.
    folding : In(1)
        A fold is not done.
    abort : In(1)
        The queue is empty from the next cycle on.
    signal : Out(stream of SEMAPHORES bits)
        Of the oldest command, when it is done.
    some : Out(1)
        There are commands.
    rows_next : Out(1)
        The oldest command waits for a last row.

    Latency
    -------
    One cycle from ``i``, or the end of what it waits for, to the offer of a signal set; two from ``rows_end``.

    Throughput
    ----------
    A command each cycle.

    Cost
    ----
    LUT memory of COMMANDS_IN_FLIGHT words, four counters.
    """

    i: stream.Interface
    rows_end: Signal
    folding: Signal
    abort: Signal
    signal: stream.Interface
    some: Signal
    rows_next: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(ENDING)),
                "rows_end": In(1),
                "folding": In(1),
                "abort": In(1),
                "signal": Out(stream.Signature(SEMAPHORES)),
                "some": Out(1),
                "rows_next": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.commands = commands = Memory(shape=ENDING, depth=COMMANDS_IN_FLIGHT, init=[])
        write, read = commands.write_port(), commands.read_port(domain="comb")
        into, out = (Signal(range(COMMANDS_IN_FLIGHT), name=name) for name in ("into", "out"))
        count, ended = (Signal(range(COMMANDS_IN_FLIGHT + 1), name=name) for name in ("count", "ended"))
        full, ends = Signal(name="full"), Signal(name="ends")  # ended: commands whose last rows are done
        enters, leaves = self.i.valid & self.i.ready, self.signal.valid & self.signal.ready
        following = Signal.like(count)
        oldest = read.data
        m.d.comb += [
            self.i.ready.eq(~full),
            write.en.eq(enters),
            write.addr.eq(into),
            write.data.eq(self.i.payload),
            read.addr.eq(out),
            self.rows_next.eq(self.some & oldest.rows & (ended == 0) & ~ends),
            self.signal.valid.eq(self.some & ~(oldest.rows & (ended == 0)) & ~(oldest.fold & self.folding)),
            self.signal.payload.eq(oldest.signal),
            following.eq(count + step(enters, leaves, len(count))),
        ]
        m.d.sync += [
            into.eq(into + enters),
            out.eq(out + leaves),
            count.eq(following),
            self.some.eq(following != 0),
            full.eq(following == COMMANDS_IN_FLIGHT),
            ends.eq(self.rows_end),
            ended.eq(ended + step(ends, leaves & oldest.rows, len(ended))),
        ]
        with m.If(self.abort):
            m.d.sync += [into.eq(0), out.eq(0), count.eq(0), self.some.eq(0), full.eq(0), ended.eq(0), ends.eq(0)]
        return m
