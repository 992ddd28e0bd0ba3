"""A multiplier of the ECP5 whose registers lie inside the DSP block."""

from amaranth import ClockSignal, Const, Instance, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

WIDTH = 18


class Ecp5Multiplier(wiring.Component):
    """Signed product of two registered factors.

    Synthesis infers the block's multiplier but none of its registers, which leaves the path into and out of the block
    in one cycle: 30 % of the array's frequency.

    Parameters
    ----------
    a_bits, b_bits : int
        At most 18.

    Members
    -------
    a : In(signed(a_bits))
        Read in every cycle.
    b : In(signed(b_bits)), load : In(1)
        Read in cycles with ``load``, and kept.
    o : Out(signed(a_bits + b_bits))
        Product of the factors read two cycles ago, and kept.

    Raises
    ------
    ValueError
        If a width is not in 1..18.

    Latency
    -------
    2 cycles: input registers, output register.

    Cost
    ----
    One MULT18X18D.

    Source
    ------
    Of the block's parameters: Lattice FPGA-TN-02205, ECP5 sysDSP usage guide.
    """

    a: Signal
    b: Signal
    load: Signal
    o: Signal

    def __init__(self, a_bits: int, b_bits: int) -> None:
        for name, bits in (("a_bits", a_bits), ("b_bits", b_bits)):
            if not 1 <= bits <= WIDTH:
                raise ValueError(f"{name} is {bits}; it must be in 1..{WIDTH}")
        members = {"a": In(signed(a_bits)), "b": In(signed(b_bits)), "load": In(1), "o": Out(signed(a_bits + b_bits))}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        product = Signal(2 * WIDTH)
        pins: dict[str, Value | str] = {}
        for name, factor in (("A", self.a), ("B", self.b)):
            wide = Signal(signed(WIDTH), name=f"factor_{name.lower()}")
            m.d.comb += wide.eq(factor)
            pins |= {f"i_{name}{bit}": wide[bit] for bit in range(WIDTH)}
        pins |= {f"o_P{bit}": product[bit] for bit in range(2 * WIDTH)}
        pins |= {f"i_SIGNED{name}": Const(1) for name in "AB"} | {f"i_SOURCE{name}": Const(0) for name in "AB"}
        pins |= {"i_CLK0": ClockSignal(), "i_CE0": Const(1), "i_CE1": self.load, "i_RST0": Const(0)}
        registers = {"INPUTA": "CE0", "INPUTB": "CE1", "OUTPUT": "CE0"}
        for name, enable in registers.items():
            pins |= {f"p_REG_{name}_CLK": "CLK0", f"p_REG_{name}_CE": enable, f"p_REG_{name}_RST": "RST0"}
        m.submodules.block = Instance("MULT18X18D", **pins)
        m.d.comb += self.o.eq(product)
        return m
