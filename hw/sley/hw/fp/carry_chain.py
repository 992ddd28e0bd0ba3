"""Adders with a choice in front of each bit, which a carry chain of an ECP5 does in the LUTs that it has anyway."""

from amaranth.hdl import Cat, Const, Instance, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.core.ecp5_multiplier import is_ecp5

CARRY, EITHER, CHOICE = 0x000A, 0x560A, 0xCA00
"""What the LUT of a chain does with its inputs a, b, c while its fourth one is high. The carry goes on if it gives 1,
and is otherwise the part below 2^4: that part's inputs are a and b. No sum, a as the carry; a + (b | c); c ? b : a."""


def ecp5_chain(m: Module, name: str, bits: list[tuple[int, Value, Value, Value]]) -> list[Signal]:
    """The sums of a chain from its lowest bit on, each bit given by its LUT and inputs."""
    bits = bits + [(CARRY, Const(0), Const(0), Const(0))] * (len(bits) % 2)
    carries = [Signal(name=f"{name}_carry{k}") for k in range(len(bits) // 2)]
    sums = [Signal(name=f"{name}_bit{k}") for k in range(len(bits))]
    for k, pair in enumerate(zip(bits[::2], bits[1::2], strict=True)):
        pins: dict[str, Value | str] = {"i_CIN": carries[k - 1] if k else Const(0), "o_COUT": carries[k]}
        for half, (lut, a, b, c) in enumerate(pair):
            pins |= {f"p_INIT{half}": Const(lut, 16), f"p_INJECT1_{half}": "NO", f"o_S{half}": sums[2 * k + half]}
            pins |= {f"i_A{half}": a, f"i_B{half}": b, f"i_C{half}": c, f"i_D{half}": Const(1)}
        m.submodules[f"{name}{k}"] = Instance("CCU2C", **pins)
    return sums


class SumOfEither(wiring.Component):
    """o = a + (b | c) + carry, combinational. Cost: on an ECP5 a carry chain, and no LUTs for the OR."""

    a: Signal
    b: Signal
    c: Signal
    carry: Signal
    o: Signal

    def __init__(self, width: int) -> None:
        super().__init__({"a": In(width), "b": In(width), "c": In(width), "carry": In(1), "o": Out(width)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if is_ecp5(platform):
            bits = [(EITHER, *factors) for factors in zip(self.a, self.b, self.c, strict=True)]
            sums = ecp5_chain(m, "chain", [(CARRY, self.carry, Const(0), Const(0)), *bits])
            m.d.comb += self.o.eq(Cat(sums[1:]))
        else:
            m.d.comb += self.o.eq((Cat(1, self.a) + Cat(self.carry, self.b | self.c))[1:])
        return m


class ChosenIncrement(wiring.Component):
    """o = {high + constant, choose ? b : a} + carry, combinational. Cost: on an ECP5 a carry chain, and no LUTs for the
    choice.

    Parameters: ``low``, ``high``: bits of the choice and above it; ``constant``.
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
        low, none = len(self.a), Const(0)
        if is_ecp5(platform):
            bits = [(CHOICE, *factors, self.choose) for factors in zip(self.a, self.b, strict=True)]
            bits += [(EITHER, *factors, none) for factors in zip(self.high, self._constant, strict=True)]
            sums = ecp5_chain(m, "chain", [(CARRY, self.carry, none, none), *bits])
            m.d.comb += self.o.eq(Cat(sums[1:]))
        else:
            chosen = Cat(1, Mux(self.choose, self.b, self.a), self.high)
            m.d.comb += self.o.eq((chosen + Cat(self.carry, Const(0, low), self._constant))[1:])
        return m
