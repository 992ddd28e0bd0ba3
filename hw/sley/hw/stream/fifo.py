"""A stream queue in memory."""

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out


class StreamFIFO(wiring.Component):
    """Queue in block or LUT RAM, with the memory's own read register as its output stage.

    Parameters: ``shape`` of the payload; ``depth`` >= 2, any integer.
    Members: ``i``, ``o``; ``level``: items accepted and not yet delivered (0 to ``depth + 1``); ``empty``: there
    are none.
    Holds ``depth`` items in memory and one more in the output register: it always takes ``depth`` items without
    one leaving. Latency 2 cycles; throughput 1 item per cycle. ``i.ready`` and ``o.valid`` are registers.
    Cost: ``depth`` words of memory, 2 pointers, 1 counter.
    """

    i: stream.Interface
    o: stream.Interface
    level: Signal
    empty: Signal

    def __init__(self, shape: Any, depth: int) -> None:
        if depth < 2:
            raise ValueError(f"depth is {depth}; a queue at full throughput needs at least 2")
        self._shape = shape
        self._depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 2)),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth = self._depth
        m.submodules.memory = memory = Memory(shape=self._shape, depth=depth, init=[])
        write = memory.write_port()
        read = memory.read_port()

        stored = Signal(range(depth + 1))  # items in the memory, without the one in the output register
        some = Signal()  # stored != 0
        full = Signal()  # stored == depth
        push = self.i.valid & self.i.ready
        fetch = some & (~self.o.valid | self.o.ready)
        m.d.comb += [
            self.i.ready.eq(~full),
            write.en.eq(push),
            write.data.eq(self.i.payload),
            read.en.eq(fetch),
            self.o.payload.eq(read.data),
            self.level.eq(stored + self.o.valid),
            self.empty.eq(~some & ~self.o.valid),
        ]
        for advance, pointer in ((push, write.addr), (fetch, read.addr)):
            index = Signal(range(depth), name="write_index" if pointer is write.addr else "read_index")
            m.d.comb += pointer.eq(index)
            with m.If(advance):
                if depth & (depth - 1) == 0:
                    m.d.sync += index.eq(index + 1)
                else:
                    with m.If(index == depth - 1):
                        m.d.sync += index.eq(0)
                    with m.Else():
                        m.d.sync += index.eq(index + 1)
        with m.If(push & ~fetch):
            m.d.sync += [stored.eq(stored + 1), some.eq(1), full.eq(stored == depth - 1)]
        with m.Elif(fetch & ~push):
            m.d.sync += [stored.eq(stored - 1), some.eq(stored != 1), full.eq(0)]
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(fetch)
        return m
