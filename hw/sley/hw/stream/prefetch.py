"""A stream queue in block RAM whose output is a register."""

from amaranth import Module, Mux, Signal, Value

from sley.hw.stream.fifo import StreamFIFO


class PrefetchFIFO(StreamFIFO):
    """A ``StreamFIFO`` whose payload comes early in the cycle, in the same cycle as there.

    The oldest item of the memory is read ahead, into the register of the memory, and goes from there to that of the
    output. An item that comes when nothing is ahead of it but the output needs both steps at once; it goes past the
    memory instead.

    Parameters and members are those of ``StreamFIFO``; one item more is held in registers, so ``level`` goes to
    ``depth + 2``.

    Latency
    -------
    As of ``StreamFIFO``.

    Throughput
    ----------
    As of ``StreamFIFO``.

    Cost
    ----
    As of ``StreamFIFO``, and two payloads of flip-flops and one multiplexer.
    """

    held_outside = 2

    def _output(self, m: Module, some: Value, last: Value, word: Value) -> Value:
        output = Signal(self._shape, reset_less=True)
        ahead = Signal(self._shape, reset_less=True)  # the item that was read
        ahead_valid = Signal()
        oldest = Signal(self._shape)
        # Without an item ahead the memory has at most one, and that has just come: all others are read at once.
        newest = Signal(self._shape, reset_less=True)
        leaves = Signal()
        fetch = some & (~ahead_valid | leaves)
        m.d.comb += [
            oldest.eq(word),
            leaves.eq(~self.o.valid | self.o.ready),
            self.o.payload.eq(output),
            self.empty.eq(~some & ~ahead_valid & ~self.o.valid),
        ]
        m.d.sync += newest.eq(self.i.payload)
        with m.If(fetch):
            m.d.sync += ahead.eq(oldest)
        with m.If(leaves):
            m.d.sync += [
                output.eq(Mux(ahead_valid, ahead, newest)),
                self.o.valid.eq(ahead_valid | some),
                ahead_valid.eq(ahead_valid & some),
            ]
        with m.Elif(some):
            m.d.sync += ahead_valid.eq(1)
        return fetch
