"""Adders with a choice in front of each bit, which a carry chain of an ECP5 does in the LUTs that it has anyway."""

from amaranth.hdl import Cat, Const, Instance, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.elaboration.platform import is_ecp5

CARRY, SUM, CHOICE = 0x000A, 0x665A, 0xCA00
"""What the LUT of a chain does with its inputs a, b, c, d. The carry goes on if it gives 1, and is otherwise what its
part below 2^4 gives, whose inputs are a and b alone. With d no sum, and a as the carry; a + (d ? b : c), of which that
part, where neither c nor d is high, is a, and so is the carry; with d again c ? b : a."""

NONE, ONE = Const(0, 1), Const(1, 1)
Bit = tuple[int, Value, Value, Value, Value]
"""The LUT of a bit, and its inputs."""


def ecp5_chain(m: Module, name: str, carry: Value, bits: list[Bit]) -> list[Signal]:
    """The sums of a chain from its lowest bit on, into which there is a carry."""
    bits = [(CARRY, carry, NONE, NONE, ONE), *bits]
    bits += [(CARRY, NONE, NONE, NONE, ONE)] * (len(bits) % 2)
    carries = [Signal(name=f"{name}_carry{k}") for k in range(len(bits) // 2)]
    sums = [Signal(name=f"{name}_bit{k}") for k in range(len(bits))]
    for k, pair in enumerate(zip(bits[::2], bits[1::2], strict=True)):
        pins: dict[str, Value | str] = {"i_CIN": carries[k - 1] if k else Const(0), "o_COUT": carries[k]}
        for half, (lut, a, b, c, d) in enumerate(pair):
            pins |= {f"p_INIT{half}": Const(lut, 16), f"p_INJECT1_{half}": "NO", f"o_S{half}": sums[2 * k + half]}
            pins |= {f"i_A{half}": a, f"i_B{half}": b, f"i_C{half}": c, f"i_D{half}": d}
        m.submodules[f"{name}{k}"] = Instance("CCU2C", **pins)
    return sums[1:]


class SumOfChosen(wiring.Component):
    """o = a + (choose ? b : c) + carry, combinational.

    Parameters
    ----------
    width : int
        Bits of the operands.

    Members
    -------
    a, b, c : In(width)
        The operands.
    choose : In(1), carry : In(1)
        Which of ``b`` and ``c`` is added, and what besides.
    o : Out(width)
        The sum, modulo its width.

    Cost
    ----
    On an ECP5 a carry chain, and no LUTs for the choice.
    """

    a: Signal
    b: Signal
    c: Signal
    choose: Signal
    carry: Signal
    o: Signal

    def __init__(self, width: int) -> None:
        members = {"a": width, "b": width, "c": width, "choose": 1, "carry": 1}
        super().__init__({name: In(shape) for name, shape in members.items()} | {"o": Out(width)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if is_ecp5(platform):
            bits = [(SUM, *factors, self.choose) for factors in zip(self.a, self.b, self.c, strict=True)]
            m.d.comb += self.o.eq(Cat(ecp5_chain(m, "chain", self.carry, bits)))
        else:
            chosen = Mux(self.choose, self.b, self.c)
            m.d.comb += self.o.eq((Cat(1, self.a) + Cat(self.carry, chosen))[1:])
        return m


class ChosenIncrement(wiring.Component):
    """o = {high + constant, choose ? b : a} + carry, combinational.

    Parameters
    ----------
    low, high : int
        Bits of the choice, and above it.
    constant : int
        What is added to the upper bits.

    Members
    -------
    a, b : In(low)
        The lower bits.
    choose : In(1)
        Which of them.
    high : In(high)
        The upper bits.
    carry : In(1)
        What is added besides.
    o : Out(low + high)
        The sum, modulo its width.

    Cost
    ----
    On an ECP5 a carry chain, and no LUTs for the choice.
    """

    a: Signal
    b: Signal
    choose: Signal
    high: Signal
    carry: Signal
    o: Signal

    def __init__(self, low: int, high: int, constant: int) -> None:
        self._constant = Const(constant, high)
        super().__init__(
            {"a": In(low), "b": In(low), "choose": In(1), "high": In(high), "carry": In(1), "o": Out(low + high)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low = len(self.a)
        if is_ecp5(platform):
            bits = [(CHOICE, *factors, self.choose, ONE) for factors in zip(self.a, self.b, strict=True)]
            bits += [(SUM, *factors, NONE, ONE) for factors in zip(self.high, self._constant, strict=True)]
            m.d.comb += self.o.eq(Cat(ecp5_chain(m, "chain", self.carry, bits)))
        else:
            chosen = Cat(1, Mux(self.choose, self.b, self.a), self.high)
            m.d.comb += self.o.eq((chosen + Cat(self.carry, Const(0, low), self._constant))[1:])
        return m
