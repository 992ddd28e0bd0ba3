# amaranth: UnusedElaboratable=no
import random
from itertools import product
from typing import Any

import pytest
from amaranth import Const
from amaranth.sim import Simulator

from sley.hw.core.affine import AffineWalk, Loops, ends_beyond
from sley.hw.testing.simulation.engine import QuickEngine


def positions(base: int, counts: list[int], strides: list[int]) -> list[int]:
    indices = product(*(range(n) for n in reversed(counts)))
    return [base + sum(i * s for i, s in zip(index, reversed(strides), strict=True)) for index in indices]


def signed32(value: int) -> int:
    return (value & 0xFFFFFFFF) - (1 << 32 if value >> 31 & 1 else 0)


def run(dut: AffineWalk, cases: list[tuple[int, list[int], list[int], int]], seed: int = 0) -> None:
    rng = random.Random(seed)

    async def bench(ctx: Any) -> None:
        for base, counts, strides, space in cases:
            ctx.set(dut.start, 1)
            ctx.set(dut.step, rng.random() < 0.5)
            ctx.set(dut.base, base)
            ctx.set(dut.space, space)
            for k in range(dut.dims):
                ctx.set(dut.counts[k], counts[k])
                ctx.set(dut.strides[k], strides[k])
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.step, 0)
            for k in range(dut.dims):  # captured, so they may change now
                ctx.set(dut.counts[k], rng.getrandbits(8))
                ctx.set(dut.strides[k], rng.randrange(-9, 9))
            expected = positions(base, counts, strides)
            for n, position in enumerate(expected):
                while rng.random() < 0.3:
                    ctx.set(dut.step, 0)
                    await ctx.tick()
                wrapped = dut.limits[space] == 1 << 32
                assert ctx.get(dut.position) == position & 0xFFFFFFFF
                outside = not wrapped and not 0 <= position < dut.limits[space]
                assert ctx.get(dut.outside) == outside
                index = n
                for k in range(dut.dims):
                    assert ctx.get(dut.last) >> k & 1 == (index % counts[k] == counts[k] - 1)
                    index //= counts[k]
                assert ctx.get(dut.end) == (n == len(expected) - 1)
                if outside or n == len(expected) - 1:
                    break
                ctx.set(dut.step, 1)
                await ctx.tick()
                ctx.set(dut.step, 0)

    sim = Simulator(dut, engine=QuickEngine)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_rows_inside_and_out(dims: int) -> None:
    rng = random.Random(dims)
    limits = (512, 64)
    cases = []
    for _ in range(60):
        space = rng.randrange(2)
        reach = rng.choice([2, 20, 0x7FFF])
        strides = [rng.randrange(-reach, reach + 1) for _ in range(dims)]
        counts = [rng.choice([1, 2, 3, 5]) for _ in range(dims)]
        cases.append((rng.randrange(limits[space]), counts, strides, space))
    run(AffineWalk(dims, limits=limits, stride_bits=16, count_bits=16), cases)


def test_extremes_of_a_row() -> None:
    top = 1 << 15
    cases = [
        (top - 1, [2], [0x7FFF], 0),
        (0, [2], [-0x8000], 0),
        (top - 1, [3], [-0x7FFF], 0),
        (0, [2], [0x7FFF], 0),
        *[(1 << k, [1], [1], 0) for k in (15, 16, 17, 30, 31)],
        (0xFFFFFFFF, [2], [1], 0),
    ]
    run(AffineWalk(1, limits=(top,), stride_bits=16, count_bits=17), cases)


@pytest.mark.parametrize("limits", [(16, 1 << 20, 256), (1 << 16, 1 << 16), (32, 1 << 31)])
def test_spaces_of_any_size(limits: tuple[int, ...]) -> None:
    """Larger and smaller than the strides are wide, with steps that just do and just do not stay inside."""
    rng = random.Random(6)
    cases = []
    for _ in range(150):
        space = rng.randrange(len(limits))
        limit = limits[space]
        base = rng.choice([0, limit - 1, rng.randrange(limit)])
        edges = [limit - base - 1, limit - base, -base, -base - 1, limit, -limit]
        strides = [max(-0x8000, min(0x7FFF, rng.choice([*edges, rng.randint(-9, 9)]))) for _ in range(2)]
        cases.append((base, [rng.randint(1, 3), rng.randint(1, 3)], strides, space))
    cases += [(limit, [1, 1], [0, 0], space) for space, limit in enumerate(limits)]
    run(AffineWalk(2, limits=limits, stride_bits=16, count_bits=8), cases)


def test_memory_addresses_wrap() -> None:
    rng = random.Random(4)
    cases = []
    for _ in range(40):
        strides = [rng.choice([rng.getrandbits(31), -rng.getrandbits(31), 4, -(1 << 31)]) for _ in range(2)]
        cases.append((rng.getrandbits(32), [rng.randrange(1, 5), rng.randrange(1, 5)], strides, 0))
    run(AffineWalk(2, limits=(1 << 32,), stride_bits=32, count_bits=16), cases)


def test_one_space_of_one_dimension_is_enough() -> None:
    run(AffineWalk(1, limits=(8,), stride_bits=4, count_bits=3), [(3, [7], [1], 0), (3, [2], [-4], 0)])


@pytest.mark.parametrize(("dims", "limits"), [(0, (8,)), (1, (12,)), (2, (8, 1 << 33))])
def test_what_cannot_be_built_is_refused(dims: int, limits: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"dims is 0|limits holds"):
        AffineWalk(dims, limits=limits, stride_bits=16, count_bits=16)


def test_counts_that_are_filled_up_to_whole_units() -> None:
    """Of three loops, the middle one; units of every size, counts on both sides of each, one walk after the other."""
    dut = Loops((3, 5, 3), {1: 3})
    rng = random.Random(5)

    async def bench(ctx: Any) -> None:
        for unit, runs in product([1, 2, 4, 8], range(1, 19)):
            counts = [rng.randint(1, 3), runs, rng.randint(1, 3)]
            ctx.set(dut.start, 1)
            ctx.set(dut.step, rng.random() < 0.5)
            ctx.set(dut.mask_1, unit - 1)
            for k, count in enumerate(counts):
                ctx.set(getattr(dut, f"count_{k}"), count)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.mask_1, rng.randrange(8))
            for k in range(3):
                ctx.set(getattr(dut, f"count_{k}"), rng.randrange(1, 8))
            counts[1] = -(-runs // unit) * unit
            for slab, run_index, chunk in product(*map(range, reversed(counts))):
                while rng.random() < 0.2:
                    ctx.set(dut.step, 0)
                    await ctx.tick()
                indices = (chunk, run_index, slab)
                expected = sum((i == n - 1) << k for k, (i, n) in enumerate(zip(indices, counts, strict=True)))
                assert ctx.get(dut.last) == expected, (unit, runs, counts, indices)
                ctx.set(dut.step, expected != 7)
                await ctx.tick()

    sim = Simulator(dut, engine=QuickEngine)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize("bits", [20, 25, 32])
def test_where_runs_end_beyond_the_addresses(bits: int) -> None:
    top = 1 << bits
    rng = random.Random(bits)
    lengths = [1, 2, 3, 0x7FFF, 0x8000, 0xFFFF, *(rng.randint(1, 0xFFFF) for _ in range(10))]
    ends = [-1, 0, 1, 2, 0xFFFF, 0x10000, -0xFFFF, -0x10000, -0x10001]
    cases = [(top + end - length, length) for end in ends for length in lengths]
    cases += [(address, length) for address in (0, top // 2, top, 0xFFFFFFFF) for length in lengths]

    async def bench(ctx: Any) -> None:
        for address, length in cases:
            if 0 <= address < 1 << 32:
                beyond = ctx.get(ends_beyond(Const(address, 32), Const(length - 1, 16), bits))
                assert beyond == (address + length > top), (hex(address), length)

    sim = Simulator(Loops((1,)), engine=QuickEngine)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()
