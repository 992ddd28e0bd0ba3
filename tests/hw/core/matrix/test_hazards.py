"""Which MATMULs wait for rows in flight, against the rule as it is written."""

import random

import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.timing import hazard_cycles
from sley.abi.types import ElementType
from sley.hw.core.matrix.hazards import Hazards
from sley.hw.testing.streams import Design

NANO = PRESETS["nano"].replace(accumulator_rows=32)


@pytest.mark.some(4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("config", [NANO, NANO.replace(operand_types=("int8", "bf16"))], ids=["int8", "both"])
def test_first_row_waits_as_long_as_it_must(config: ChipConfig, seed: int) -> None:
    """MATMULs of a few rows one behind another as the streamer gives them; each starts as soon as it may, or later."""
    dut = Hazards(config)
    rng = random.Random(seed)
    waited = set()

    async def bench(ctx) -> None:  # type: ignore[no-untyped-def]
        cycle = 0
        issued: list[tuple[int, int, int, int]] = []  # cycle of the last row, begin, end, distance to keep

        async def tick(cycles: int = 1) -> None:
            nonlocal cycle
            for _ in range(cycles):
                await ctx.tick()
                cycle += 1
                ctx.set(dut.start, 0)
                ctx.set(dut.last, 0)

        def show() -> tuple[int, int, bool, bool]:
            rows = rng.choice((1, 1, 2, 2, 3, 4, 7))
            begin = rng.randrange(rng.choice((3, 6, 32 - rows)))
            job = begin, begin + rows, rng.random() < 0.8, config.has(ElementType.BF16) and rng.random() < 0.2
            for name, value in zip(("begin", "end", "accumulate", "bf16"), job, strict=True):
                ctx.set(getattr(dut, name), value)
            return job

        job = show()
        await tick()
        for _ in range(500):
            while ctx.get(dut.full):
                await tick()
            ctx.set(dut.start, 1)
            await tick()
            started = cycle
            begin, end, accumulate, bf16 = job
            early = rng.random() < 0.7
            if early:
                job = show()
            # Its first row is issued as soon as it may, or later.
            shared = [entry for entry in issued if accumulate and entry[1] < end and begin < entry[2]]
            first = max((last + keep + 1 - (other - begin) for last, _, other, keep in shared), default=0)
            while cycle < first:
                assert ctx.get(dut.blocked), f"cycle {cycle}"
                waited.add(first - cycle)
                await tick()
            assert not ctx.get(dut.blocked), f"cycle {cycle}"
            for _ in range(rng.choice((0, 0, 0, 1, 3))):
                await tick()
                assert not ctx.get(dut.blocked), f"cycle {cycle}"
            await tick(end - begin - 1)
            ctx.set(dut.last, 1)
            issued = [
                *issued[-20:],
                (cycle, begin, end, hazard_cycles(config, ElementType.BF16 if bf16 else ElementType.INT8)),
            ]
            # The next one starts with the last row if that is the second cycle of this one, or later.
            if not early:
                await tick(rng.choice((1, 1, 2, 3, 6)))
                job = show()
                await tick()
            elif cycle == started or rng.random() < 0.3:
                await tick(rng.choice((1, 1, 2, 3)))
        assert {1, 2, 3} <= waited

    Design(dut).run([bench])
