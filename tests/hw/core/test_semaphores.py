"""Semaphores: sets are taken and given whole, by fixed priority, and counters never wrap or saturate."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from sley.abi.instructions import SEMAPHORE_MAX, SEMAPHORES
from sley.hw.core.semaphores import Semaphores
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.parameters import rejects
from sley.hw.testing.pins import Pins
from sley.hw.testing.streams import Design, compiled

SIZES = ("of none", "of one", "of several")
LEVELS = ("empty", "between", "full")
COVERAGE = Coverage(
    "semaphores",
    {
        # A request of no semaphore waits for nothing.
        "request": [
            (side, size, end)
            for side in ("wait", "signal")
            for size in SIZES
            for end in ("passes", "stalls", "clear")
            if (size, end) != ("of none", "stalls")
        ],
        "moved": [
            *(("wait", level) for level in LEVELS[1:]),
            *(("signal", level) for level in LEVELS[:2]),
            "by both sides",
        ],
    },
)


def accepted(requests: list[int | None], refused: int) -> list[bool]:
    """Which of the requested sets pass (None: not valid), lowest index first."""
    result, claimed = [], 0
    for mask in requests:
        possible = mask is not None and not mask & refused
        result.append(possible and not (mask or 0) & claimed)
        claimed |= (mask or 0) if possible else 0
    return result


class Model:
    """Drives the block for one cycle at a time, and compares every output."""

    def __init__(self, ctx: Any, dut: Semaphores) -> None:
        self.ctx, self.dut, self.values = ctx, dut, [0] * SEMAPHORES
        ports = (*dut.wait, *dut.signal)
        self.pins = Pins(dut.clear, *(port.valid for port in ports), *(port.payload for port in ports))

    async def cycle(self, wait: list[int | None], signal: list[int | None], clear: bool = False) -> tuple[Any, Any]:
        ctx, dut = self.ctx, self.dut
        masks = (*wait, *signal)
        self.pins.set(ctx, clear, *(mask is not None for mask in masks), *(mask or 0 for mask in masks))
        sampled = await ctx.tick().sample(dut.values, *(p.ready for p in (*dut.wait, *dut.signal)))
        values, ready = sampled[2], [bool(r) for r in sampled[3:]]
        assert list(values) == self.values
        empty = sum(1 << i for i, v in enumerate(self.values) if v == 0)
        full = sum(1 << i for i, v in enumerate(self.values) if v == SEMAPHORE_MAX)
        taken = accepted(wait, empty)
        given = accepted(signal, full)
        assert ready == taken + given
        self.cover(wait, signal, taken, given, clear)
        for passed, requests, change in ((taken, wait, -1), (given, signal, 1)):
            for ok, mask in zip(passed, requests, strict=True):
                for i in range(SEMAPHORES):
                    if ok and (mask or 0) >> i & 1:
                        self.values[i] += change
                        assert 0 <= self.values[i] <= SEMAPHORE_MAX
        if clear:
            self.values = [0] * SEMAPHORES
        return taken, given

    def cover(self, wait: list[int | None], signal: list[int | None], taken: Any, given: Any, clear: bool) -> None:
        moved = {"wait": 0, "signal": 0}
        for side, masks, passed in (("wait", wait, taken), ("signal", signal, given)):
            for mask, ok in zip(masks, passed, strict=True):
                if mask is None:
                    continue
                size = SIZES[min(mask.bit_count(), 2)]
                COVERAGE.hit("request", (side, size, "clear" if clear else "passes" if ok else "stalls"))
                moved[side] |= mask if ok else 0
        for side, mask in moved.items():
            for value in (v for i, v in enumerate(self.values) if mask >> i & 1):
                COVERAGE.hit("moved", (side, LEVELS[(value > 0) + (value == SEMAPHORE_MAX)]))
        if moved["wait"] & moved["signal"]:
            COVERAGE.hit("moved", "by both sides")


def simulate(design: Design, process: Any) -> None:
    async def bench(ctx: Any) -> None:
        await process(Model(ctx, design.dut))

    design.run([bench])


@pytest.mark.parametrize("bias", [0.2, 0.5, 0.8], ids=["mostly empty", "balanced", "mostly full"])
def test_random(bias: float) -> None:
    rng = random.Random(int(100 * bias))
    seen_full = seen_empty = False

    def request(rate: float) -> int | None:
        if rng.random() >= rate:
            return None
        mask = 0
        for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
            mask |= 1 << rng.randrange(SEMAPHORES)
        return mask

    async def process(model: Model) -> None:
        nonlocal seen_full, seen_empty
        for _ in range(500):
            await model.cycle(
                [request(1 - bias) for _ in range(5)], [request(bias) for _ in range(6)], rng.random() < 0.002
            )
            seen_full |= SEMAPHORE_MAX in model.values
            seen_empty |= 0 in model.values

    simulate(compiled(Semaphores), process)
    assert seen_empty
    assert seen_full == (bias > 0.4)


def test_two_semaphores_exhaustively() -> None:
    """Every pair of sets on both sides, at every pair of values next to the bounds."""
    requests: list[int | None] = [None, 0, 1, 2, 3]

    async def process(model: Model) -> None:
        for first in (0, 1, SEMAPHORE_MAX):
            for second in (0, SEMAPHORE_MAX):
                for wait in [(a, b) for a in requests for b in requests]:
                    for signal in [(a, b) for a in (None, 1, 3) for b in (None, 2, 3)]:
                        while model.values[0] != first or model.values[1] != second:
                            up = (model.values[0] < first) | (model.values[1] < second) << 1
                            down = (model.values[0] > first) | (model.values[1] > second) << 1
                            await model.cycle([down, None], [up, None])
                        await model.cycle(list(wait), list(signal))

    simulate(compiled(Semaphores, 2, 2), process)


def test_wait_and_signal_in_one_cycle() -> None:
    async def process(model: Model) -> None:
        # Empty: the signal passes, the wait does not see it yet. Then both pass and the value stays.
        assert await model.cycle([1], [1]) == ([False], [True])
        assert await model.cycle([1], [1]) == ([True], [True])
        assert model.values[0] == 1
        while model.values[0] < SEMAPHORE_MAX:
            await model.cycle([None], [1])
        # Full: the wait passes, the signal does not see it yet.
        assert await model.cycle([1], [1]) == ([True], [False])

    simulate(compiled(Semaphores, 1, 1), process)


def test_clear() -> None:
    async def process(model: Model) -> None:
        await model.cycle([None], [0xFFFF])
        assert await model.cycle([0xFFFF], [0xFFFF], clear=True) == ([True], [True])
        assert await model.cycle([1], [None]) == ([False], [False])
        assert await model.cycle([1], [1], clear=True) == ([False], [True])
        assert await model.cycle([1], [None], clear=True) == ([False], [False])
        assert await model.cycle([None], [2]) == ([False], [True])
        assert await model.cycle([2], [None], clear=True) == ([True], [False])
        assert await model.cycle([0], [0], clear=True) == ([True], [True])
        assert await model.cycle([0], [0]) == ([True], [True])

    simulate(compiled(Semaphores, 1, 1), process)


@pytest.mark.parametrize(("waiters", "signallers"), [(0, 1), (1, 0)])
def test_parameters(waiters: int, signallers: int) -> None:
    with rejects("is 0; it must be at least 1"):
        Semaphores(waiters, signallers)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
