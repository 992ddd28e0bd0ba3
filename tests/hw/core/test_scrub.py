"""What a scrub clears, in which order, and when a block of another context may begin."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from sley.abi.config import PRESETS
from sley.abi.instructions import FLAGS_LSB, FORMATS, Op
from sley.abi.pages import CONTEXT_BITS
from sley.hw.core.scrub import Scrub
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.streams import StreamBench, compiled

BEFORE = ("nothing", "forget", "forget another", "translations")
"""What is invalidated before a block."""
COVERAGE = Coverage("scrub", {"before a block": BEFORE, "abort": (0, 1)})


@dataclass
class Driver:
    """Drives a scrub as a core does, with units and memories that take their time. ``holds``: the context whose data
    the core holds, None without one."""

    dut: Scrub
    rng: random.Random
    holds: int | None = None
    commands: list[tuple[Op, int]] = field(default_factory=list)

    async def before(self, ctx: Any) -> None:
        """Some cycles without a block, in which a context may be invalidated."""
        what = self.rng.choice(BEFORE)
        context = self.rng.randrange(3) if self.holds is None else self.holds
        if what == "forget another":
            context ^= 1
        invalidation = {"valid": what != "nothing", "context": context, "contents": what != "translations"}
        ctx.set(self.dut.invalidate, invalidation)
        await ctx.tick()
        ctx.set(self.dut.invalidate.valid, 0)
        COVERAGE.hit("before a block", what)
        if what == "forget":
            self.holds = None
        await ctx.tick().repeat(self.rng.randint(1, 3))

    async def block(self, ctx: Any, context: int, aborts: bool) -> None:
        """A block begins: what is done before its instructions."""
        dut, foreign = self.dut, self.holds != context
        ctx.set(dut.start, 1)
        ctx.set(dut.context, context)
        assert (ctx.get(dut.foreign), ctx.get(dut.clear), ctx.get(dut.busy)) == (foreign, foreign, 0)
        await ctx.tick()
        ctx.set(dut.start, 0)
        self.holds = context
        assert ctx.get(dut.busy) == foreign
        if not foreign:
            return
        await self._clear(ctx)
        if aborts:
            COVERAGE.hit("abort", 1)
            ctx.set(dut.abort, 1)
            await ctx.tick()
            ctx.set(dut.abort, 0)
            self.holds = None
        else:
            COVERAGE.hit("abort", 0)
        await self._drain(ctx)

    async def _clear(self, ctx: Any) -> None:
        """The memories, and commands until all are taken."""
        dut, self.commands = self.dut, []
        ctx.set(dut.clearing, 1)
        for _ in range(self.rng.randint(1, 9)):
            assert (ctx.get(dut.clear), ctx.get(dut.busy), *self._valid(ctx)) == (0, 1, 0, 0)
            await ctx.tick()
        ctx.set(dut.clearing, 0)
        await ctx.tick()
        while any(self._valid(ctx)):
            ports = {"matrix": ("op", "c"), "vector": ("op", "flags")}
            for name, fields in ports.items():
                port, ready = getattr(dut, name), self.rng.random() < 0.6
                ctx.set(port.ready, ready)
                if ready and ctx.get(port.valid):
                    op, number = (ctx.get(getattr(port.payload, field)) for field in fields)
                    self.commands.append((Op(op), number))
            await ctx.tick()

    async def _drain(self, ctx: Any) -> None:
        for _ in range(self.rng.randint(0, 9)):
            assert (ctx.get(self.dut.busy), *self._valid(ctx)) == (1, 0, 0)
            await ctx.tick()
        ctx.set(self.dut.units_idle, 1)
        await ctx.tick()
        assert not ctx.get(self.dut.busy)
        ctx.set(self.dut.units_idle, 0)

    def _valid(self, ctx: Any) -> tuple[int, int]:
        return ctx.get(self.dut.matrix.valid), ctx.get(self.dut.vector.valid)


@pytest.mark.parametrize("name", ["nano", "base"])
def test_blocks_of_several_contexts(name: str) -> None:
    """Contexts come and go, are invalidated, and scrubs are interrupted: a block finds its own data or none."""
    config = PRESETS[name]
    bench = StreamBench(compiled(Scrub, config), seed=1)
    driver = Driver(bench.dut, bench.rng)
    layout = FORMATS[Op.VROW].layout
    rows = [(Op.VROW, layout.pack(splat=1, row=row) >> FLAGS_LSB) for row in range(config.row_registers)]

    async def blocks(ctx: Any) -> None:
        contexts = [0, (1 << CONTEXT_BITS) - 1, 1]
        for _ in range(60):
            await driver.before(ctx)
            await driver.block(ctx, bench.rng.choice(contexts), bench.rng.random() < 0.3)
            if driver.commands:
                assert driver.commands == [(Op.WEIGHTS, config.array), (Op.MATMUL, 1), *rows]

    bench.add(blocks, wait=True)
    bench.run()


def test_coverage(record_property: Any) -> None:
    COVERAGE.check(record_property)
