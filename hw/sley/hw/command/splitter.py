"""Cuts a long range of bytes into runs."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.hw.memory.run import RUN_BYTES_BITS, Run

ByteRange = data.StructLayout({"addr": 32, "bytes": 32, "first": RUN_BYTES_BITS})
"""``bytes`` bytes from ``addr``; the first run takes at most ``first``."""


class RunSplitter(wiring.Component):
    """Cuts a range into runs of ``chunk`` bytes.

    The first run may be shorter, so that the others are aligned; the last one is what is left.

    Parameters
    ----------
    chunk : int
        A power of two.

    Members
    -------
    start : In(1), range : In(ByteRange)
        Takes the range in this cycle, whatever was in progress. One of no bytes gives no run.
    o : Out(stream of Run)
        The runs; one LUT behind registers.
    left : Out(32), busy : Out(1)
        The bytes that none of them had; there are some.

    Latency
    -------
    1 cycle from ``start``.

    Throughput
    ----------
    1 run per cycle.

    Cost
    ----
    Two 32-bit registers, each with an adder.
    """

    start: Signal
    range: data.View
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
        whole = Signal(reset_less=True)  # the run takes all of the room, and more come
        rest = Signal(32)
        size = Signal(unsigned(bits + 1))
        length = self.range.bytes
        first = self.range.first

        m.d.comb += [
            size.eq(Mux(whole, room, left[: bits + 1])),
            rest.eq(left - size),
            self.o.valid.eq(self.busy),
            self.o.payload.addr.eq(addr),
            self.o.payload.bytes.eq(size),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [addr.eq(addr + size), left.eq(rest), room.eq(1 << bits), self.busy.eq(whole)]
            m.d.sync += whole.eq(rest[bits + 1 :].any() | (rest[bits] & rest[:bits].any()))
        with m.If(self.start):
            m.d.sync += [addr.eq(self.range.addr), left.eq(length), room.eq(first), self.busy.eq(length != 0)]
            m.d.sync += whole.eq(length[bits + 1 :].any() | (first - length[: bits + 1])[-1])
        return m
