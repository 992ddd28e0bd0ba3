"""Cuts a long range of bytes into runs."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.hw.memory.run import RUN_BYTES_BITS, Run

ByteRange = data.StructLayout({"addr": 32, "bytes": 32, "first": RUN_BYTES_BITS})
"""``bytes`` bytes from ``addr``; the first run takes at most ``first``."""


class RunSplitter(wiring.Component):
    """Cuts a range into runs of ``chunk`` bytes; the first one may be shorter (so that the others are aligned), the
    last one is what is left.

    Parameters: ``chunk``, a power of two. Members: ``start``: takes ``range`` in this cycle, whatever was going on;
    ``o``: the runs; ``left``: the bytes that none of them had; ``busy``: there are some. A range of no bytes gives no
    run.

    Latency 1 cycle from ``start``; throughput 1 run per cycle. Cost: two 32-bit registers, each with an adder.
    """

    start: Signal
    range: Any
    o: stream.Interface
    left: Signal
    busy: Signal

    def __init__(self, chunk: int) -> None:
        self._bits = exact_log2(chunk)
        super().__init__(
            {"start": In(1), "range": In(ByteRange), "o": Out(stream.Signature(Run)), "left": Out(32), "busy": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self._bits
        addr = Signal(32, reset_less=True)
        left = self.left
        room = Signal(unsigned(bits + 1), reset_less=True)
        size = Signal(unsigned(bits + 1))

        m.d.comb += [
            size.eq(Mux(left[bits + 1 :].any() | (left[: bits + 1] > room), room, left[: bits + 1])),
            self.busy.eq(left != 0),
            self.o.valid.eq(self.busy),
            self.o.payload.addr.eq(addr),
            self.o.payload.bytes.eq(size),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [addr.eq(addr + size), left.eq(left - size), room.eq(1 << bits)]
        with m.If(self.start):
            m.d.sync += [addr.eq(self.range.addr), left.eq(self.range.bytes), room.eq(self.range.first)]
        return m
