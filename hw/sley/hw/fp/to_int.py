"""Conversion from fp32 to int32."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.timing import FP32_TO_INT32
from sley.hw.fp.float32 import BIAS, FRACTION_BITS, Float32
from sley.hw.fp.to_fp16 import BEYOND, LOWEST, TO_UNITS


class ToInt32(wiring.Component):
    """o = i rounded half to even, saturated to int32; a NaN becomes 0.

    Stages: 1 unpacks and decides saturation; 2 shifts; 3 rounds and negates.

    Parameters
    ----------
    for_fp16 : bool, optional
        There is the port ``fp16``.

    Members
    -------
    fp16 : In(1)
        In place of the integer ``o`` is what ``ToFP16`` takes: the magnitude of i as a significand of 11 bits, a
        multiple of 2^-24 if it is below the normal fp16, 0 if it is beyond all of them. Constant while operands are
        in flight.
    use : In(1)
        0 makes ``o`` 0; constant while operands are in flight.
    i : In(32)
        A bit pattern.
    o : Out(signed(32))
        The integer of LATENCY cycles ago.

    Latency
    -------
    LATENCY cycles.

    Throughput
    ----------
    One conversion per cycle.

    Cost
    ----
    Some 100 flip-flops, a carry chain of 32 bits, a 32-bit shifter.
    """

    LATENCY = FP32_TO_INT32

    fp16: Signal
    use: Signal
    i: Signal
    o: Signal

    def __init__(self, for_fp16: bool = False) -> None:
        self._for_fp16 = for_fp16
        super().__init__(({"fp16": In(1)} if for_fp16 else {}) | {"use": In(1), "i": In(32), "o": Out(signed(32))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i = Float32(self.i)

        # 1: unpack. The significand's top goes to bit 30 of an integer, from where it moves right: by 157 - exponent,
        # which is 31 less the lowest bits of exponent + 2.
        fraction_1, distance_1 = Signal(FRACTION_BITS, reset_less=True), Signal(5, reset_less=True)
        sign_1, saturate_1, zero_1 = Signal(reset_less=True), Signal(reset_less=True), Signal(reset_less=True)
        e = i.exponent
        plus_two = Cat(e[0], ~e[1], e[2] ^ e[1], e[3] ^ e[1:3].all(), e[4] ^ e[1:4].all())
        saturate = i.exponent >= BIAS + 31
        m.d.sync += [
            fraction_1.eq(i.fraction),
            distance_1.eq(~plus_two),
            saturate_1.eq(saturate & ~i.is_nan()),
            zero_1.eq((i.exponent < BIAS - 1) | saturate),
            sign_1.eq(i.sign),
        ]
        if self._for_fp16:
            # Units of 2^-24 are integers of a number with 24 more in the exponent, which is 3 more in the upper two
            # bits of the distance; a significand moves by 20 from bit 30 to bit 10.
            units = Cat(plus_two[:3], ~plus_two[3], plus_two[4] ^ ~plus_two[3])
            with m.If(self.fp16):
                m.d.sync += [
                    distance_1.eq(Mux(e >= LOWEST, 20, ~units)),
                    zero_1.eq((e < BIAS - 1 - TO_UNITS) | (e >= BEYOND)),
                    saturate_1.eq(0),
                    sign_1.eq(0),
                ]

        # 2: shift and invert; the lowest bit is worth one half, the sticky bit collects what is below it
        shifted: Value = Cat(Const(0, 8), fraction_1, Const(1, 1))
        sticky: Value = Const(0, 1)
        for step in reversed(range(5)):
            sticky = sticky | (distance_1[step] & shifted[: 1 << step].any())
            shifted = Mux(distance_1[step], shifted >> (1 << step), shifted)
        integer_2, half_2 = Signal(31, reset_less=True), Signal(reset_less=True)
        sticky_2, sign_2 = Signal(reset_less=True), Signal(reset_less=True)
        largest_2, smallest_2 = Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            integer_2.eq(shifted[1:] ^ sign_1.replicate(31)),
            half_2.eq(shifted[0]),
            sticky_2.eq(sticky | shifted[1]),  # or the integer is odd
            sign_2.eq(sign_1),
            largest_2.eq(saturate_1 & ~sign_1),
            smallest_2.eq(saturate_1 & sign_1),
        ]
        with m.If(zero_1):
            m.d.sync += Cat(integer_2, half_2, sign_2).eq(0)

        # 3: round and negate in one addition: -(x + up) = ~x + 1 - up; the extra bit below is the carry in. What
        # saturates is 0 here, to which the largest or the smallest integer is added.
        carry = (half_2 & sticky_2) ^ sign_2
        addend = Cat(carry, largest_2.replicate(31), smallest_2)
        m.d.sync += self.o.eq((Cat(1, integer_2, sign_2) + addend)[1:33])
        with m.If(~self.use):
            m.d.sync += self.o.eq(0)
        return m
