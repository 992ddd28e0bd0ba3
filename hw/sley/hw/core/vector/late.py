"""A late operand of the vector unit: rows that wait for a later stage."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.vector.chains import Lanes

WAITING_ROWS = 64
"""Rows of an instruction between their reads and their writes, at most."""


class LateOperand(wiring.Component):
    """Keeps rows of words in their order until the stage that takes them, and arranges their lanes there.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    start : In(1)
        An instruction begins: rows that are here are forgotten.
    write : In(1), i : In(32 * array)
        Take a row.
    read : In(1)
        Give the next row, two cycles later.
    lanes : In(2), exchange : In(6)
        A code of ``Lanes``, and the distance of exchanged lanes; constant during an instruction.
    o : Out(32 * array)
        The row of two cycles ago, a register.

    Latency
    -------
    A row may be read in the cycle after its ``write``; it is in ``o`` two cycles after its ``read``.

    Throughput
    ----------
    One row per cycle.

    Cost
    ----
    A memory of WAITING_ROWS rows of N words, a multiplexer of N words and log2 N of two words for each lane.
    """

    start: Signal
    write: Signal
    i: Signal
    read: Signal
    lanes: Signal
    exchange: Signal
    o: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._n = config.array
        width = 32 * self._n
        super().__init__(
            {
                "start": In(1),
                "write": In(1),
                "i": In(width),
                "read": In(1),
                "lanes": In(2),
                "exchange": In(6),
                "o": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self._n
        m.submodules.rows = rows = Memory(shape=32 * n, depth=WAITING_ROWS, init=[])
        write, read = rows.write_port(), rows.read_port()
        into, out = Signal(range(WAITING_ROWS)), Signal(range(WAITING_ROWS))
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(into),
            write.data.eq(self.i),
            read.en.eq(self.read),
            read.addr.eq(out),
        ]
        m.d.sync += [into.eq(into + self.write), out.eq(out + self.read)]
        with m.If(self.start):
            m.d.sync += [into.eq(0), out.eq(0)]

        words = [read.data.word_select(lane, 32) for lane in range(n)]
        lane = Signal(range(n), reset_less=True)
        m.d.sync += lane.eq(out)
        one: Value = Array(words)[lane]
        exchanged: list[Value] = list(words)
        for bit in range((n - 1).bit_length()):
            swap = self.exchange[bit] & (self.lanes == Lanes.EXCHANGE)
            exchanged = [Mux(swap, exchanged[index ^ (1 << bit)], exchanged[index]) for index in range(n)]
        m.d.sync += self.o.eq(Mux(self.lanes == Lanes.BROADCAST, Cat(*(one for _ in range(n))), Cat(exchanged)))
        return m
