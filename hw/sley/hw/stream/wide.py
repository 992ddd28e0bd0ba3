"""A stream queue of wide items without a register behind it."""

from amaranth import Module, Value

from sley.hw.stream.fifo import StreamFIFO


class WideFIFO(StreamFIFO):
    """A ``StreamFIFO`` in LUT RAM whose output is the memory's, in the same cycles as there.

    ``o.ready`` moves an index. Where it comes late, the way to the enable of a register as wide as an item is too long.

    Parameters, members: as of ``StreamFIFO``, ``depth`` >= 3; one item less is held, so ``level`` goes to ``depth``.
    Latency, throughput: as there. ``o.valid`` is a register, ``o.payload`` comes from the memory. Cost: as there, but
    for the register.
    """

    held_outside = 0
    least = 3

    def _output(self, m: Module, some: Value, last: Value, word: Value) -> Value:
        leaves = self.o.valid & self.o.ready
        m.d.sync += self.o.valid.eq(some & ~(leaves & last))
        m.d.comb += [self.o.payload.eq(word), self.empty.eq(~some)]
        return leaves
