"""Inputs that a bench drives together."""

from typing import Any

from amaranth import Module, Signal, signed
from amaranth.lib import data, enum
from amaranth.sim import Simulator

from sley.hw.testing.pins import Pins, bits_of, value_of


class Colour(enum.Enum, shape=2):
    RED = 1
    BLUE = 2


PAIR = data.StructLayout({"low": signed(4), "high": 3})


def test_values_arrive_as_with_set() -> None:
    pair, number, colour, bit = Signal(PAIR), Signal(signed(5)), Signal(Colour, init=Colour.RED), Signal()
    pins = Pins(pair, number, colour, bit)
    m = Module()
    m.d.comb += Signal().eq(pair.as_value()[0] ^ number[0] ^ bit)
    sets = []

    class Counting:
        """A context that knows what was set."""

        def __init__(self, ctx: Any) -> None:
            self._ctx = ctx

        def set(self, port: Any, value: int) -> None:
            sets.append(value)
            self._ctx.set(port, value)

    async def bench(ctx: Any) -> None:
        for low, high, value, member, level in ((-8, 7, -16, Colour.BLUE, True), (7, 0, 15, Colour.RED, False)):
            for _ in range(3):
                pins.set(Counting(ctx), {"low": low, "high": high}, value, member, level)
            assert (ctx.get(pair.low), ctx.get(pair.high)) == (low, high)
            assert (ctx.get(number), ctx.get(colour), ctx.get(bit)) == (value, member, level)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(sets) == 2


def test_bits_and_back() -> None:
    pair, colour, number = Signal(PAIR), Signal(Colour, init=Colour.RED), Signal(8)
    assert bits_of(pair, {"low": -1, "high": 2}) == 0b010_1111
    assert value_of(pair, 0b010_1111).low == -1
    assert (bits_of(colour, Colour.BLUE), value_of(colour, 2)) == (2, Colour.BLUE)
    assert (bits_of(number, 0x1FF), value_of(number, 0x55)) == (0xFF, 0x55)
