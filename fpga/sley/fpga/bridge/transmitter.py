"""Bytes from frames: adds flags, escapes and the CRC."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.fpga.bridge.crc import SerialCrc
from sley.fpga.bridge.frames import CRC_BYTES, ESCAPE, ESCAPED, FLAG

body_item = data.StructLayout({"data": 8, "last": 1})


class _State(enum.Enum):
    IDLE = 0
    BODY = 1
    CRC = 2
    END = 3


class FrameTransmitter(wiring.Component):
    """Sends bodies as frames.

    A body may pause: there is no buffer for a frame.

    Members
    -------
    i : In(stream.Signature(body_item))
        Bytes of bodies, the last one of each marked. ``i.ready`` is a register.
    o : Out(stream.Signature(8))
        Bytes for the line, accepted at least 9 cycles apart.

    Cost
    ----
    A CRC, a byte, a few bits of state.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(body_item)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = crc = SerialCrc()
        state = Signal(_State)
        item = Signal(body_item, reset_less=True)
        full = Signal()
        left = Signal(range(CRC_BYTES), reset_less=True)
        escaped = Signal()
        byte = Signal(8)  # before it is escaped
        inside = Signal()  # neither flag
        special = Signal()
        sent = Signal()
        m.d.comb += [
            inside.eq((state == _State.BODY) | (state == _State.CRC)),
            byte.eq(Mux(state == _State.CRC, ~crc.low, item.data)),
            special.eq((byte == FLAG) | (byte == ESCAPE)),
            crc.byte.eq(item.data),
            crc.plain.eq(state == _State.CRC),
            self.o.valid.eq((full | (state == _State.CRC) | (state == _State.END)) & ~crc.busy),
            sent.eq(self.o.valid & self.o.ready & ~(inside & special & ~escaped)),
            crc.start.eq(sent & inside),
            crc.clear.eq(state == _State.IDLE),
            self.i.ready.eq(~full),
        ]
        with m.If(~full):
            m.d.sync += [item.eq(self.i.payload), full.eq(self.i.valid)]
        with m.Elif(sent & (state == _State.BODY)):
            m.d.sync += full.eq(0)
        with m.If(~inside):
            m.d.comb += self.o.payload.eq(FLAG)
        with m.Elif(escaped):
            m.d.comb += self.o.payload.eq(byte ^ ESCAPED)
        with m.Elif(special):
            m.d.comb += self.o.payload.eq(ESCAPE)
        with m.Else():
            m.d.comb += self.o.payload.eq(byte)

        with m.If(self.o.valid & self.o.ready):
            m.d.sync += escaped.eq(inside & special & ~escaped)
        with m.If(sent), m.Switch(state):
            with m.Case(_State.IDLE):
                m.d.sync += state.eq(_State.BODY)
            with m.Case(_State.BODY):
                m.d.sync += left.eq(CRC_BYTES - 1)
                with m.If(item.last):
                    m.d.sync += state.eq(_State.CRC)
            with m.Case(_State.CRC):
                m.d.sync += left.eq(left - 1)
                with m.If(left == 0):
                    m.d.sync += state.eq(_State.END)
            with m.Case(_State.END):
                m.d.sync += state.eq(_State.IDLE)
        return m
