"""Comparisons, shifts and bits, against the golden operations."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from numpy.typing import NDArray

from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.operations import LOGIC_OPS, OPERATIONS, BinaryOp
from sley.hw.fp.logic import Logic
from sley.hw.testing.floats import feed, special
from sley.hw.testing.simulation.engine import QuickEngine
from sley.sim.golden.operations import GOLDEN

SHIFTS = (BinaryOp.SHL, BinaryOp.SHR, BinaryOp.SAR)


class Ports(wiring.Component):
    """The unit with the ports that ``feed`` knows."""

    LATENCY = Logic.LATENCY

    def __init__(self) -> None:
        super().__init__({"a": In(32), "b": In(32), "op": In(5), "float": In(1), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = Logic()
        m.d.comb += [unit.x.eq(self.a), unit.y.eq(self.b), unit.op.eq(self.op), unit.float.eq(self.float)]
        m.d.comb += self.o.eq(unit.o)
        return m


def operands(op: BinaryOp, seed: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Pairs of special patterns, equal ones, neighbours, and random bits; each distance of a shift with each bit."""
    rng = np.random.default_rng(seed)
    if op in SHIFTS:
        x, distance = (v.ravel().astype(np.uint32) for v in np.meshgrid(1 << np.arange(32), np.arange(32)))
        x = np.concatenate([x, ~x])
        high = rng.integers(0, 1 << 27, len(x)).astype(np.uint32) << np.uint32(5)
        return x, np.concatenate([distance, distance]) | high
    some = rng.permutation(special())[:24]
    x, y = (v.ravel() for v in np.meshgrid(some, some))
    bits = rng.integers(0, 1 << 32, 200, np.uint64).astype(np.uint32)
    near = bits + rng.integers(-1, 2, 200).astype(np.uint32)
    flipped = bits ^ (np.uint32(1) << rng.integers(0, 32, 200).astype(np.uint32))
    return np.concatenate([x, bits, bits, bits]), np.concatenate([y, near, flipped, rng.permutation(bits)])


@pytest.mark.some(12)
@pytest.mark.parametrize("kind", WORD_TYPES)
@pytest.mark.parametrize("op", LOGIC_OPS)
def test_every_bit(op: BinaryOp, kind: ElementType) -> None:
    x, y = operands(op, 2 * op + kind)
    got = feed(Ports(), x, y, op=int(op), float=int(kind is ElementType.FP32))
    expected = GOLDEN[op](x, y, kind is ElementType.FP32)
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(f"{v[k]:#010x}" for v in (x, y, got, expected)) for k in wrong[:5]]


@pytest.mark.some(7)
@pytest.mark.parametrize("op", sorted(set(range(32)) - set(LOGIC_OPS)))
def test_idle(op: int) -> None:
    """Other operations, and codes that are none, leave 0."""
    x, y = operands(BinaryOp.EQ, 5)
    for is_float in (0, 1):
        assert not feed(Ports(), x[-50:], y[-50:], op=op, float=is_float).any()


def test_latency() -> None:
    """It is that of the table: the result of one pair appears then and in no other cycle."""
    assert {OPERATIONS[op].latency[kind] for op in LOGIC_OPS for kind in WORD_TYPES} == {Logic.LATENCY}
    dut, found = Logic(), []

    async def bench(ctx) -> None:
        ctx.set(dut.op, BinaryOp.SECOND)
        for cycle in range(6):
            ctx.set(dut.y, 0xDEADBEEF if cycle == 1 else 0)
            found.append(ctx.get(dut.o))
            await ctx.tick()

    simulator = Simulator(dut, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == [0xDEADBEEF if cycle == 1 + Logic.LATENCY else 0 for cycle in range(6)]
