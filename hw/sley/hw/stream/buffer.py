"""A two-entry stream register."""

from amaranth.hdl import Module, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class StreamBuffer(wiring.Component):
    """Stream register that cuts every combinational path, forward and backward (also known as a skid buffer).

    Parameters
    ----------
    shape : ShapeLike
        Of the payload.

    Members
    -------
    i : In(stream of shape), o : Out(stream of shape)
        All outputs come from registers. Holds 2 items.

    Latency
    -------
    1 cycle.

    Throughput
    ----------
    1 item per cycle.

    Cost
    ----
    2 payloads of flip-flops and one multiplexer.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, shape: ShapeLike) -> None:
        self._shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spare = Signal(self._shape, reset_less=True)
        payload = Signal(self._shape, reset_less=True)
        spare_valid = Signal()
        m.d.comb += [self.i.ready.eq(~spare_valid), self.o.payload.eq(payload)]
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid | spare_valid), spare_valid.eq(0)]
            with m.If(spare_valid):
                m.d.sync += payload.eq(spare)
            with m.Else():
                m.d.sync += payload.eq(self.i.payload)
        with m.Elif(self.i.valid & self.i.ready):
            m.d.sync += spare_valid.eq(1)
        with m.If(self.i.ready):
            m.d.sync += spare.eq(self.i.payload)
        return m
