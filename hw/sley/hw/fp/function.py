"""Functions of one fp32 operand: exponential, logarithm, reciprocal, roots, sigmoid functions, rounding."""

from collections.abc import Collection

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.functions.table import CODE_BITS, P
from sley.abi.functions.table import Function as Code
from sley.abi.timing import FP32_FUNCTION
from sley.hw.fp.float32 import BIAS, FRACTION_BITS, pack
from sley.hw.fp.function_operand import OUTCOME, register
from sley.hw.fp.function_place import FunctionPlace
from sley.hw.fp.function_polynomial import FunctionPolynomial, delays


class Function(wiring.Component):
    """o = the function ``code`` of i. ``sley.sim.golden.functions`` defines it bit by bit.

    Stages: 1 to 4 find segment and place; 5 to 15 evaluate the polynomial; 16 normalises; 17 rounds and packs. Rounding
    is to nearest, a half up; a result below the normal range becomes zero.

    Parameters
    ----------
    functions : Collection[sley.abi.functions.table.Function]
        Those of the chip, at least one. What none of them needs is left out.

    Members
    -------
    use : In(1)
        0 makes ``o`` 0; constant while operands are in flight.
    code : In(CODE_BITS)
        One of the functions; constant while operands are in flight.
    i : In(32)
        A bit pattern.
    o : Out(32)
        The function of the operand of LATENCY cycles ago.
    nan : Out(1)
        It is a NaN.

    Raises
    ------
    ValueError
        If there is no function.

    Latency
    -------
    LATENCY cycles, whatever the function.

    Throughput
    ----------
    One operand per cycle.

    Cost
    ----
    On an ECP5 six multipliers, 14 block RAMs, 1,080 LUTs, those of carry chains included, 1,510 flip-flops; with
    ``EXP2``, ``RECIPROCAL``, ``RSQRT`` and ``NORMAL_CDF`` 8 block RAMs, 600 LUTs, 1,310 flip-flops.
    """

    LATENCY = FP32_FUNCTION

    use: Signal
    code: Signal
    i: Signal
    o: Signal
    nan: Signal

    def __init__(self, functions: Collection[Code]) -> None:
        if not functions:
            raise ValueError("functions is empty; name at least one of sley.abi.functions.table.Function")
        self._functions = frozenset(functions)
        super().__init__({"use": In(1), "code": In(CODE_BITS), "i": In(32), "o": Out(32), "nan": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.place = place = FunctionPlace(self._functions)
        m.submodules.polynomial = polynomial = FunctionPolynomial(self._functions)
        m.d.comb += [
            place.code.eq(self.code),
            place.i.eq(self.i),
            *(
                getattr(polynomial, name).eq(getattr(place, name))
                for name in ("segment", "block", "inner", "w", "addend", "invert")
            ),
        ]

        # 5 to 15, beside the polynomial
        outcome = [OUTCOME(x) for x in delays(m, "outcome", place.outcome.as_value(), 12)]
        before = delays(m, "exponent", Cat(place.increment, place.exponent), 9)[9]
        increment, exponent = before[0], before[1:].as_signed()
        of_segment = Mux(outcome[9].one, 0, polynomial.exponent)
        total = Signal(signed(10), reset_less=True)
        m.d.sync += total.eq(exponent + of_segment + increment)
        total_11 = register(m, "total_11", total)

        # 16: normalise; p is at least one half
        p = Mux(outcome[11].one, 1 << P.fraction, polynomial.p)
        top, below = p[-1], P.fraction - FRACTION_BITS
        fraction = register(m, "fraction", Mux(top, p[below:-1], p[below - 1 : -2]))
        up = register(m, "up", Mux(top, p[below - 1], p[below - 2]))
        biased = Signal(signed(10), reset_less=True)
        m.d.sync += biased.eq(total_11 + (BIAS - 1) + top)

        # 17: round and pack
        last = outcome[12]
        packed = (Cat(fraction, biased[:8]) + Cat(up, Const(0, 30)))[:31]
        nothing = last.nothing | (biased < 0) | ((biased == 0) & ~packed[FRACTION_BITS])
        m.d.sync += self.nan.eq(last.nan & self.use)
        pack(m, self.o, packed, last.sign, nan=last.nan, special=last.special, nothing=nothing, use=self.use)
        return m
