"""CRC-32, a bit a cycle."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.fpga.bridge.frames import CRC_POLYNOMIAL, CRC_RESIDUE

CRC_BITS = 32


class SerialCrc(wiring.Component):
    """The CRC of ``frames``, over bytes that are far apart.

    Members
    -------
    clear : In(1)
        Begin anew.
    start : In(1), byte : In(8)
        Take ``byte``, in a cycle without ``busy``.
    plain : In(1)
        With ``start``: whatever ``byte`` is, the register moves by 8 bits without feedback.
    busy : Out(1)
        High for the 8 cycles after ``start``.
    low : Out(8)
        The low byte of the register, before the final inversion.
    intact : Out(1)
        The bytes so far end with the CRC of those before.

    Rules
    -----
    1. To send a CRC, send the inverse of ``low`` and ``start`` with ``plain``, four times.

    Cost
    ----
    32 + 9 flip-flops, a comparison of 32 bits with a constant where ``intact`` is used.
    """

    clear: Signal
    start: Signal
    byte: Signal
    plain: Signal
    busy: Signal
    low: Signal
    intact: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "clear": In(1),
                "start": In(1),
                "plain": In(1),
                "byte": In(8),
                "busy": Out(1),
                "low": Out(8),
                "intact": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        crc = Signal(CRC_BITS, init=-1)
        bits = Signal(9)  # those left, with a 1 above
        plain = Signal(reset_less=True)
        feedback = Signal()
        m.d.comb += [
            self.busy.eq(bits[1:].any()),
            self.low.eq(crc[:8]),
            self.intact.eq(crc == CRC_RESIDUE),
            feedback.eq((crc[0] ^ bits[0]) & ~plain),
        ]
        with m.If(self.start):
            m.d.sync += [bits.eq(Cat(self.byte, 1)), plain.eq(self.plain)]
        with m.Elif(self.busy):
            m.d.sync += [bits.eq(bits[1:]), crc.eq(Cat(crc[1:], 0) ^ Mux(feedback, CRC_POLYNOMIAL, 0))]
        with m.If(self.clear):
            m.d.sync += crc.eq(-1)
        return m
