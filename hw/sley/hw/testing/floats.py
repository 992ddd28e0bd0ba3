"""Stimuli for floating-point components, and a bench for components with plain inputs and a fixed latency."""

from typing import Any

import numpy as np
from amaranth.sim import Simulator
from numpy.typing import NDArray

from sley.hw.testing.simulation.engine import QuickEngine

SPECIAL = [
    *(0x00000000, 0x00000001, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x00C00000),
    *(0x1FFFFFFF, 0x20000000, 0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3F400000, 0x3F7FFFFF, 0x3F800000, 0x3F800001),
    *(0x3FC00000, 0x40000000, 0x42FE0000, 0x4AFFFFFF, 0x4B000000, 0x4B000001, 0x4EFFFFFF, 0x4F000000, 0x4F000001),
    *(0x5F7FFFFF, 0x7EFFFFFF, 0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF),
]
"""Patterns at the edges of the format and of its conversions to integers; each stands for itself and its negative."""


def special() -> NDArray[np.uint32]:
    positive = np.array(SPECIAL, np.uint32)
    return np.concatenate([positive, positive | np.uint32(1 << 31)])


def sparse(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Fractions with long runs of ones and zeros, where carries and ties are."""
    ones = (1 << rng.integers(0, 24, count)) - 1
    runs = (ones << rng.integers(0, 24, count)) ^ (-rng.integers(0, 2, count)) ^ (1 << rng.integers(0, 24, count))
    return np.where(rng.integers(0, 2, count), runs, rng.integers(0, 1 << 23, count)) & 0x7FFFFF


def patterns(rng: np.random.Generator, count: int, low: int = 0, high: int = 255) -> NDArray[np.uint32]:
    """Numbers with exponents ``low`` to ``high``."""
    exponents, signs = rng.integers(low, high + 1, count), rng.integers(0, 2, count)
    return (sparse(rng, count) | exponents << 23 | signs << 31).astype(np.uint32)


def pairs(rng: np.random.Generator, count: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """All pairs of special patterns, then ``count`` pairs of each kind that is hard for one of the operations."""
    a, b = (x.ravel() for x in np.meshgrid(special(), special()))
    first: list[NDArray[Any]] = [a, patterns(rng, count)]
    second: list[NDArray[Any]] = [b, patterns(rng, count)]
    near = patterns(rng, count, 90, 130)  # a few exponents apart: alignment and cancellation
    distance = rng.integers(-27, 28, count).astype(np.int64)
    first.append(near)
    second.append(sparse(rng, count) | ((near >> 23 & 255) + distance) << 23 | rng.integers(0, 2, count) << 31)
    bottom = patterns(rng, count, 1, 126)  # products around the smallest normal number
    exponents = 128 - (bottom >> 23 & 255).astype(np.int64) + rng.integers(-2, 2, count)
    first.append(bottom)
    second.append(sparse(rng, count) | np.clip(exponents, 1, 254) << 23)
    reciprocal = patterns(rng, count, 40, 60)  # products within a few units of the smallest normal number
    with np.errstate(all="ignore"):
        quotient = (np.float32(2.0**-126) / reciprocal.view(np.float32)).view(np.uint32)
    first.append(reciprocal)
    second.append(quotient + rng.integers(-2, 3, count))
    small = patterns(rng, count, 0, 25)  # sums around the smallest normal number
    first.append(small)
    second.append((small.astype(np.int64) + rng.integers(-3, 4, count)) ^ 1 << 31)
    return (np.concatenate(first).astype(np.uint32), np.concatenate([x.astype(np.uint32) for x in second]))


def feed(dut: Any, *inputs: NDArray[Any], **constants: int) -> NDArray[np.uint32]:
    """Gives the component one vector per cycle and returns its outputs, each LATENCY cycles after its vector.

    The inputs go to the ports ``i``, or ``a`` and ``b``; ``constants`` to other ports by name.
    """
    ports = [dut.i] if len(inputs) == 1 else [dut.a, dut.b]
    vectors = list(zip(*(x.tolist() for x in inputs), strict=True))
    outputs: list[int] = []

    async def bench(ctx: Any) -> None:
        for name, constant in constants.items():
            ctx.set(getattr(dut, name), constant)
        for cycle in range(len(vectors) + dut.LATENCY):
            if cycle < len(vectors):
                for port, value in zip(ports, vectors[cycle], strict=True):
                    ctx.set(port, value)
            if cycle >= dut.LATENCY:
                outputs.append(ctx.get(dut.o) & 0xFFFFFFFF)
            await ctx.tick()

    simulator = Simulator(dut, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return np.array(outputs, np.uint32)
