import numpy as np
from amaranth.sim import Simulator
from fp_units import SumWithProduct, product_of

from sley.hw.fp.add_product import AddProduct
from sley.hw.testing.floats import feed, pairs, patterns
from sley.hw.testing.simulation.engine import QuickEngine
from sley.sim.golden import float32


def product_pairs(rng, count):
    """Sums and products: those that are hard for a sum, products that nearly cancel it, and products above a sum of the
    same exponent, whose difference has one place too many."""
    a, b = pairs(rng, count)
    one = patterns(rng, count, 1, 253) & np.uint32(0xFFBFFFFF)
    above = (one ^ np.uint32(1 << 31)) + np.uint32(1 << 23) | np.uint32(1 << 22)
    a, b = np.concatenate([a, one]), np.concatenate([b, above])
    near = (a ^ np.uint32(1 << 31)) + (rng.integers(-3, 4, len(a)) << rng.integers(8, 25, len(a))).astype(np.uint32)
    a, b = np.concatenate([a, a]), np.concatenate([b, near])
    return a, b & np.uint32(0xFFFFFF00) | rng.integers(0, 2, len(b)).astype(np.uint32)


def test_every_bit():
    a, b = product_pairs(np.random.default_rng(1), 700)
    got, expected = feed(SumWithProduct(), a, b), float32.add(a, product_of(b))
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(f"{x[k]:#010x}" for x in (a, b, got, expected)) for k in wrong[:5]]


def test_a_difference_that_rounding_makes_the_smallest_normal_number():
    """Before that it is 1.11...1, an exponent below."""
    a = np.array([0x0C3FFEFF, 0x8C3FFEFF, 0x0C3FFEFE, 0x0B3FFE00], np.uint32)
    b = np.array([0x8C3FFF01, 0x0C3FFF01, 0x8C3FFF01, 0x8B3FFF01], np.uint32)
    got = feed(SumWithProduct(), a, b)
    assert got.tolist() == float32.add(a, product_of(b)).tolist()
    assert got.tolist()[:2] == [0x80800000, 0x00800000]


def test_without_enable_it_rests():
    """Operands that come while it is low change nothing, and the sum of those before stays."""
    unit = AddProduct()
    random = np.random.default_rng(3)
    seen = []

    async def bench(ctx):
        for cycle in range(120):
            ctx.set(unit.enable, cycle < 20 or 60 <= cycle < 80)
            for operand in (unit.total, unit.product):
                bits = operand.as_value()
                ctx.set(bits, int.from_bytes(random.bytes(8), "little") & ((1 << len(bits)) - 1))
            await ctx.tick()
            seen.append(ctx.get(unit.o.as_value()))

    simulator = Simulator(unit, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    rest = AddProduct.LATENCY - 1
    for start, end in ((20 + rest, 60 + rest), (80 + rest, 120)):
        assert len(set(seen[start - 1 : end])) == 1
    assert len(set(seen[rest : 20 + rest])) > 10
