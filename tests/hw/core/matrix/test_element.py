"""An element with bf16: its products are at the ends of the range and beyond, its sums anything."""

from typing import Any

import numpy as np
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from sley.abi.config import preset
from sley.abi.timing import BF16_PRODUCT
from sley.hw.core.matrix.element import ProcessingElement, bf16_fields, bf16_kind
from sley.hw.fp.add_product import AddProduct, pack_total, unpack_total
from sley.hw.testing.floats import patterns, special
from sley.hw.testing.simulation.engine import QuickEngine
from sley.sim.golden.matmul import bf16_sums


class Element(wiring.Component):
    """An element between ends of an array."""

    weight: In(16)
    take: In(1)
    swap: In(1)
    activation: In(16)
    old: In(32)
    o: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.element = element = ProcessingElement(preset("edge"))
        kind = bf16_kind(self.activation)
        m.d.comb += [
            element.bf16.eq(1),
            element.weight_i.eq(self.weight),
            element.kind_i.eq(bf16_kind(self.weight)),
            element.take_i.eq(self.take),
            element.swap_i.eq(self.swap),
            element.activation_i.eq(self.activation),
            element.fields_i.eq(bf16_fields(self.activation, kind)),
            element.total_i.eq(unpack_total(self.old)),
            self.o.eq(pack_total(element.total_o)),
        ]
        return m


def test_extremes() -> None:
    """Every special weight meets every special activation, and random ones whose product is near an end."""
    rng = np.random.default_rng(1)
    specials = np.unique(special() >> 16).astype(np.uint16)
    weights = np.concatenate([specials, (patterns(rng, 40) >> 16).astype(np.uint16)])
    rows: list[tuple[int, int, int]] = []
    for weight in weights:
        exponents = (rng.choice([127, 127 + 254], 60) - (int(weight) >> 7 & 255) + rng.integers(-3, 4, 60)).clip(0, 255)
        near = exponents << 7 | rng.integers(0, 128, 60) | rng.integers(0, 2, 60) << 15
        activations = np.concatenate([specials, near])
        low = patterns(rng, len(activations), 0, 25)
        high = patterns(rng, len(activations), 230, 255)
        olds = np.where(rng.integers(0, 2, len(low)), low, high)
        olds = np.where(rng.integers(0, 3, len(low)), olds, rng.choice(special(), len(low)))
        rows += [(int(weight), int(x), int(old)) for x, old in zip(activations, olds, strict=True)]
    dut, found = Element(), []
    latency = BF16_PRODUCT + AddProduct.LATENCY

    async def bench(ctx: Any) -> None:
        for cycle in range(-2, len(rows) + latency):
            for name, ahead in (("weight", 1), ("activation", 0), ("old", -BF16_PRODUCT)):
                if 0 <= cycle + ahead < len(rows):
                    ctx.set(getattr(dut, name), rows[cycle + ahead][("weight", "activation", "old").index(name)])
            ctx.set(dut.take, 1)
            ctx.set(dut.swap, 1)
            if cycle >= latency:
                found.append(ctx.get(dut.o))
            await ctx.tick()

    simulator = Simulator(dut, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    for (weight, activation, old), got in zip(rows, found, strict=True):
        x, w = np.array([[activation]], np.uint16), np.array([[weight]], np.uint16)
        expected = int(bf16_sums(x, w, np.array([[old]], np.uint32))[0, 0])
        assert got == expected, tuple(map(hex, (weight, activation, old, got, expected)))
