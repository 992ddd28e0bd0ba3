"""A stream queue in memory."""

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.hw.stream.count import step

SHORT = 4
"""Bits of an index that counts without a chain of carries: one LUT per bit."""
LUT_WORDS = 16
"""Words of the memory that LUTs make; more of them take a multiplexer."""


def ram_style(words: int) -> dict[str, str]:
    """Attributes of a memory of so many words: block RAM where LUTs hold too few."""
    return {"ram_style": "block"} if words > LUT_WORDS else {}


class StreamFIFO(wiring.Component):
    """Queue in block or LUT RAM, with the memory's own read register as its output stage.

    Holds ``depth`` items in memory and one more in the output register: it always accepts ``depth`` items without one
    leaving. A queue of more than ``LUT_WORDS`` items is in block RAM, and its payload comes late in the cycle (see
    ``PrefetchFIFO``).

    Parameters
    ----------
    shape : ShapeLike
        Of the payload.
    depth : int
        Any integer from 2 on.

    Members
    -------
    i : In(stream of shape), o : Out(stream of shape)
        ``i.ready`` and ``o.valid`` are registers.
    level : Out(range(depth + 2))
        Items accepted and not yet delivered.
    empty : Out(1)
        There are none.

    Raises
    ------
    ValueError
        If ``depth`` does not allow full throughput.

    Latency
    -------
    2 cycles.

    Throughput
    ----------
    1 item per cycle.

    Cost
    ----
    ``depth`` words of memory, 2 pointers, and a counter where ``level`` is used.
    """

    i: stream.Interface
    o: stream.Interface
    level: Signal
    empty: Signal

    held_outside = 1
    """Items in registers behind the memory."""
    least = 2
    """Items of the memory that full throughput takes."""

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        if depth < self.least:
            raise ValueError(f"depth is {depth}; a queue at full throughput needs at least {self.least}")
        self._shape = shape
        self._depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + self.held_outside + 1)),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self._depth
        # An item is never read in the cycle in which it is written. Yosys believes it only where the register behind
        # the memory is one of its own.
        attributes = {"no_rw_check": 1} | (ram_style(depth) if self.held_outside else {})
        m.submodules.memory = memory = Memory(shape=self._shape, depth=depth, init=[], attrs=attributes)
        write = memory.write_port()
        read = memory.read_port(domain="comb")

        some = Signal()  # items in the memory
        full = Signal()
        push = self.i.valid & self.i.ready
        last = Signal()  # the oldest item of the memory is its only one
        fetch = self._output(m, some, last, read.data)
        write_index = Signal(range(depth))
        read_index = Signal(range(depth))
        next_write = Signal(range(depth))
        next_read = Signal(range(depth))
        m.d.comb += [
            next_write.eq(self._behind(write_index)),
            next_read.eq(self._behind(read_index)),
            last.eq(next_read == write_index),
            self.i.ready.eq(~full),
            write.addr.eq(write_index),
            write.en.eq(push),
            write.data.eq(self.i.payload),
            read.addr.eq(read_index),
        ]
        with m.If(push):
            m.d.sync += write_index.eq(next_write)
        with m.If(fetch):
            m.d.sync += read_index.eq(next_read)
        with m.If(push & ~fetch):
            m.d.sync += [some.eq(1), full.eq(next_write == read_index)]
        with m.Elif(fetch & ~push):
            m.d.sync += [some.eq(~last), full.eq(0)]
        m.d.sync += self.level.eq(self.level + step(push, self.o.valid & self.o.ready, len(self.level)))
        return m

    def _output(self, m: Module, some: Value, last: Value, word: Value) -> Value:
        """What is behind the memory, whose oldest item is ``word`` if it has ``some``, and the only one if that is the
        ``last``; returns whether it leaves."""
        output = Signal(self._shape, reset_less=True)
        fetch = some & (~self.o.valid | self.o.ready)
        m.d.comb += [self.o.payload.eq(output), self.empty.eq(~some & ~self.o.valid)]
        with m.If(fetch):
            m.d.sync += output.eq(word)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(fetch)
        return fetch

    def _behind(self, index: Signal) -> Value:
        """The index of the next item."""
        following = (index + 1)[: len(index)]
        if len(index) <= SHORT:
            following = Cat(~index[0], *(index[k] ^ index[:k].all() for k in range(1, len(index))))
        return following if self._depth == 1 << len(index) else Mux(index == self._depth - 1, 0, following)
