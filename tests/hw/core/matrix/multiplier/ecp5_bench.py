"""An ECP5 for gateware in simulation: its DSP block is replaced by what the data sheet says of it."""

from typing import Any

from amaranth import ClockSignal, Elaboratable, Module, Mux, Signal, signed
from amaranth.hdl import Cat

WIDTH = 18


class DspBlock(Elaboratable):
    """MULT18X18D of the ECP5 sysDSP usage guide, as far as registers, enables and signs go."""

    def __init__(self, kind: str, **pins: Any) -> None:
        assert kind == "MULT18X18D"
        self.pins = pins

    def elaborate(self, platform: object) -> Module:
        m, pins = Module(), self.pins
        assert isinstance(pins["i_CLK0"], ClockSignal)

        def registered(name: str, value: Any) -> Any:
            if pins.get(f"p_REG_{name}_CLK", "NONE") == "NONE":
                return value
            register = Signal.like(value, name=name)
            with m.If(pins[f"i_{pins[f'p_REG_{name}_CE']}"]):
                m.d.sync += register.eq(value)
            return register

        factors = []
        for name in "AB":
            bits = Signal(WIDTH, name=f"bits_{name}")
            m.d.comb += bits.eq(Cat(pins[f"i_{name}{bit}"] for bit in range(WIDTH)))
            held = registered(f"INPUT{name}", bits)
            factor = Signal(signed(WIDTH + 1), name=f"factor_{name}")
            m.d.comb += factor.eq(Mux(pins[f"i_SIGNED{name}"], held.as_signed(), held))
            factors.append(factor)
        product = Signal(signed(2 * WIDTH))
        m.d.comb += product.eq(factors[0] * factors[1])
        m.d.comb += Cat(pins[f"o_P{bit}"] for bit in range(2 * WIDTH)).eq(registered("OUTPUT", product))
        return m
