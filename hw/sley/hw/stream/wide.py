"""A stream queue of wide items without a register behind it."""

from amaranth import Module, Value

from sley.hw.stream.fifo import StreamFIFO


class WideFIFO(StreamFIFO):
    """A ``StreamFIFO`` in LUT RAM whose output is the memory's, in the same cycles as there.

    ``o.ready`` moves an index. Where it comes late, the path to the enable of a register as wide as an item is too
    long.

    Parameters and members are those of ``StreamFIFO``, with a ``depth`` of at least 3; one item less is held, so
    ``level`` goes to ``depth``. ``o.valid`` is a register, ``o.payload`` comes from the memory.

    Latency
    -------
    As of ``StreamFIFO``.

    Throughput
    ----------
    As of ``StreamFIFO``.

    Cost
    ----
    As of ``StreamFIFO``, but for the register.
    """

    held_outside = 0
    least = 3

    def _output(self, m: Module, some: Value, last: Value, word: Value) -> Value:
        leaves = self.o.valid & self.o.ready
        m.d.sync += self.o.valid.eq(some & ~(leaves & last))
        m.d.comb += [self.o.payload.eq(word), self.empty.eq(~some)]
        return leaves
