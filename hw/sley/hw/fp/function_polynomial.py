"""The polynomial of a segment, for all functions of a chip."""

from collections.abc import Collection
from itertools import pairwise

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.functions.table import (
    C0,
    C1,
    C2,
    C3,
    COARSE_BITS,
    EXPONENT,
    INNER_BITS,
    PLACE_BITS,
    Q_LOW,
    W_BITS,
    W_LOW,
    Format,
    Function,
    P,
    Q,
    R,
    coefficients,
)
from sley.hw.fp.function_operand import register
from sley.hw.fp.function_place import BLOCK_BITS

LOW_R = 9
"""Low bits of r, which are multiplied separately: a multiplier takes 18."""


class FunctionPolynomial(wiring.Component):
    """p = c0 + w * (c1 + s * (c2 + s * c3)) modulo 2, or its negative, less some units of its last place.

    Stages: 1 and 2 read c3; 3 multiplies; 4 gives r, for which c2 was read; 5 multiplies r; 6 sums; 7 gives q; 8
    multiplies q by w; 9 and 10 sum; 11 gives p. Each coefficient is read two cycles before it is needed.

    Parameters
    ----------
    functions : Collection[Function]
        Those whose segments are in the memories, in the order of their codes.

    Members
    -------
    segment : In(5), block : In(BLOCK_BITS)
        The segment, in blocks of 32.
    inner : In(INNER_BITS)
        s, in units of 2^-22.
    w : In(W_BITS)
        The outer factor, in units of 2^-25.
    addend : In(7)
        For the upper bits of c0, which are 0 where it is not.
    invert : In(1)
        c0 and the product are subtracted from 2.
    p : Out(29)
        The sum, in units of 2^-28.
    exponent : Out(signed(7))
        That of the segment, two cycles before p.

    Latency
    -------
    LATENCY cycles.

    Throughput
    ----------
    One value per cycle.

    Cost
    ----
    Six multipliers, 18x18 at most; 108 bits of memory for a segment; some 800 flip-flops, most of them delays.
    """

    LATENCY = 11

    segment: Signal
    block: Signal
    inner: Signal
    w: Signal
    addend: Signal
    invert: Signal
    p: Signal
    exponent: Signal

    def __init__(self, functions: Collection[Function]) -> None:
        found = coefficients()
        self._rows = [row for function in sorted(set(functions) & set(found)) for row in found[function]]
        super().__init__(
            {
                "segment": In(COARSE_BITS),
                "block": In(BLOCK_BITS),
                "inner": In(INNER_BITS),
                "w": In(W_BITS),
                "addend": In(7),
                "invert": In(1),
                "p": Out(P.bits),
                "exponent": Out(signed(EXPONENT.bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c0, c1, c2, c3, exponents = (list(column) for column in zip(*self._rows, strict=True))
        address = delays(m, "address", Cat(self.segment, self.block), 9)
        inner = delays(m, "inner", self.inner, 4)
        w = delays(m, "w", self.w, 7)

        # 1 to 4: r
        value_3 = self._read(m, "c3", c3, C3, address[0])
        value_2 = self._read(m, "c2", c2, C2, address[1])
        signed_inner = [Cat(x, 0).as_signed() for x in inner]
        down = C3.fraction + INNER_BITS + COARSE_BITS - R.fraction
        product_3 = register(m, "product_3", (value_3 * signed_inner[2]) >> down)
        r = Signal(signed(R.bits), reset_less=True)
        m.d.sync += r.eq((value_2 << R.fraction - C2.fraction) + product_3)

        # 5 to 7: q
        value_1 = self._read(m, "c1", c1, C1, address[4])
        high = register(m, "product_high", r[LOW_R:].as_signed() * signed_inner[4])
        low = register(m, "product_low", (r[:LOW_R] * inner[4]) >> LOW_R)
        down = R.fraction + INNER_BITS + COARSE_BITS - Q.fraction - LOW_R
        product_2 = register(m, "product_2", (high + low) >> down)
        q = Signal(Q.bits, reset_less=True)
        m.d.sync += q.eq((value_1 << Q.fraction - C1.fraction) + product_2)

        # 8 to 10: w * q without the product of their lower parts
        q_low, q_high, w_low, w_high = q[:Q_LOW], q[Q_LOW:], w[7][:W_LOW], w[7][W_LOW:]
        main = delays(m, "main", register(m, "main", q_high * w_high), 1)
        left = register(m, "left", q_low * w_high)
        right = register(m, "right", q_high * w_low)
        cross = register(m, "cross", (left + (right << Q_LOW - W_LOW)) >> Q_LOW)
        down = Q.fraction + PLACE_BITS - P.fraction - Q_LOW - W_LOW
        product_1 = register(m, "product_1", ((main[1] + cross) >> down)[: P.bits])

        # 10 and 11: p
        value_0 = self._read(m, "c0", c0, C0, address[7])
        exponent = self._read(m, "exponent", exponents, EXPONENT, address[7])
        addend, invert = delays(m, "addend", self.addend, 9), delays(m, "invert", self.invert, 10)
        with_addend = Cat(value_0[: P.bits - 7], value_0[P.bits - 7 :] ^ addend[9])
        base = register(m, "base", with_addend ^ invert[9].replicate(P.bits))
        m.d.sync += self.p.eq(base + (product_1 ^ invert[10].replicate(P.bits)))
        m.d.comb += self.exponent.eq(exponent)
        return m

    @staticmethod
    def _read(m: Module, name: str, values: list[int], form: Format, address: Value) -> Value:
        """What is at an address, two cycles later."""
        memory = Memory(shape=form.bits, depth=len(values), init=[value % (1 << form.bits) for value in values])
        m.submodules[name] = memory
        port = memory.read_port()
        m.d.comb += port.addr.eq(address)
        after = register(m, f"{name}_read", port.data)
        return after.as_signed() if form.signed else after


def delays(m: Module, name: str, value: Value, cycles: int) -> list[Value]:
    """The value of now and of each of the cycles before, up to so many."""
    found = [value, *(Signal.like(value, name=f"{name}_{k + 1}", reset_less=True) for k in range(cycles))]
    m.d.sync += [after.eq(before) for before, after in pairwise(found)]
    return found
