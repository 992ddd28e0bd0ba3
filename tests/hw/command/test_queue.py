"""One queue between its registers and an executor played by the test."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from sley.abi.config import preset
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.hw.command.queue import RETRY_CYCLES, Queue
from sley.hw.command.records import QueueEvent

CONFIG = preset("nano")


class Bench:
    """Registers, doorbell and events by name."""

    def __init__(self) -> None:
        self.dut = Queue(CONFIG)

    def run(self, test: Any) -> None:
        sim = Simulator(self.dut)
        sim.add_clock(1e-6)
        sim.add_testbench(test)
        sim.run()

    async def open(self, ctx: Any, log2: int, base: int = 0) -> None:
        r = self.dut.registers
        ctx.set(r.control.enable, 0)
        await ctx.tick().repeat(3)
        assert self.state(ctx) == QueueState.DISABLED
        ctx.set(r.size.log2, log2)
        ctx.set(r.base.address, base)
        ctx.set(r.control.enable, 1)
        await ctx.tick().repeat(2)
        assert self.state(ctx) == QueueState.READY

    async def ring(self, ctx: Any, index: int) -> None:
        ctx.set(self.dut.doorbell, index)
        ctx.set(self.dut.doorbell_written, 1)
        await ctx.tick()
        ctx.set(self.dut.doorbell_written, 0)

    async def event(self, ctx: Any, *events: QueueEvent) -> None:
        for event in events:
            ctx.set(self.dut.event, event)
            await ctx.tick()
            ctx.set(self.dut.event, QueueEvent.NONE)

    async def advance(self, ctx: Any, packets: int) -> None:
        """Execute packets that do nothing."""
        for _ in range(packets):
            await self.event(ctx, QueueEvent.TAKE, QueueEvent.RETIRE, QueueEvent.FINISH)

    def state(self, ctx: Any) -> int:
        return int(ctx.get(self.dut.registers.state.state))

    def indices(self, ctx: Any) -> tuple[int, int]:
        r = self.dut.registers
        return ctx.get(r.read_index.index), ctx.get(r.write_index.index)


@pytest.mark.parametrize("log2", [0, 1, 3, 15])
def test_doorbell_limits(log2: int) -> None:
    bench = Bench()
    length = 1 << log2
    ring = 2 * length

    async def test(ctx: Any) -> None:
        for done in {0, 1, min(3, length), ring - 1} if length < 100 else {0, 1, 3}:
            near = {done, done + 1, length, done + length, done + length + 1, ring - 1, ring, ring + 1, 0xFFFF}
            for index in sorted(i for i in near if i <= 0xFFFF):
                await bench.open(ctx, log2)
                for step in range(done):
                    await bench.ring(ctx, (step + 1) % ring)
                    await bench.advance(ctx, 1)
                assert bench.indices(ctx) == (done, done)
                await bench.ring(ctx, index)
                await ctx.tick().repeat(2)
                r = bench.dut.registers
                if index >= ring or (index - done) % ring > length:
                    assert bench.state(ctx) == QueueState.ERROR
                    assert ctx.get(r.error.code) == FaultCode.BAD_DOORBELL
                    assert ctx.get(r.error.unit) == Unit.COMMAND
                    assert ctx.get(r.error_address.address) == index
                    assert not ctx.get(bench.dut.pending)
                    assert bench.indices(ctx) == (done, done)
                else:
                    assert bench.state(ctx) == QueueState.READY
                    assert bench.indices(ctx) == (done, index)
                    assert ctx.get(bench.dut.pending) == (index != done)

    bench.run(test)


def test_packet_addresses_wrap() -> None:
    bench = Bench()

    async def test(ctx: Any) -> None:
        for base in (0x1000, 0xFFFF_FFC0, 0x103F):
            await bench.open(ctx, 2, base=base)
            for step in range(9):
                await bench.ring(ctx, (step + 1) % 8)
                await ctx.tick()
                assert ctx.get(bench.dut.packet) == base // 64 + step % 4
                await bench.advance(ctx, 1)

    bench.run(test)


def test_pending_two_cycles_after_the_doorbell() -> None:
    bench = Bench()

    async def test(ctx: Any) -> None:
        ctx.set(bench.dut.time, 0x1234_5678_9ABC)
        await bench.open(ctx, 2)
        await bench.ring(ctx, 1)
        assert not ctx.get(bench.dut.pending)
        await ctx.tick()
        assert ctx.get(bench.dut.pending)
        r = bench.dut.registers
        assert ctx.get(r.doorbell_time_lo.cycles) == 0x5678_9ABC
        assert ctx.get(r.doorbell_time_hi.cycles) == 0x1234

    bench.run(test)


def test_blocked_and_deferred() -> None:
    bench = Bench()
    pending = bench.dut.pending

    async def test(ctx: Any) -> None:
        await bench.open(ctx, 2)
        await bench.ring(ctx, 2)
        for _ in range(2):
            await bench.event(ctx, QueueEvent.TAKE)
            assert bench.state(ctx) in (QueueState.ACTIVE, QueueState.BLOCKED)
            await bench.event(ctx, QueueEvent.BLOCK)
            await ctx.tick()
            assert bench.state(ctx) == QueueState.BLOCKED
            for _ in range(RETRY_CYCLES - 2):
                assert not ctx.get(pending)
                await ctx.tick()
            await ctx.tick()
            assert ctx.get(pending)
        await bench.advance(ctx, 1)
        assert bench.state(ctx) == QueueState.READY
        await bench.event(ctx, QueueEvent.TAKE, QueueEvent.DEFER)
        await ctx.tick().repeat(20)
        assert not ctx.get(pending)
        assert bench.state(ctx) == QueueState.READY
        ctx.set(bench.dut.scheduler_free, 1)
        await ctx.tick()
        assert ctx.get(pending)
        await bench.event(ctx, QueueEvent.TAKE, QueueEvent.LAUNCH)
        assert bench.state(ctx) == QueueState.LAUNCHED
        await bench.event(ctx, QueueEvent.RETIRE, QueueEvent.FINISH)
        assert bench.indices(ctx) == (2, 2)
        await ctx.tick().repeat(2)
        assert not ctx.get(pending)

    bench.run(test)


def test_turning_off_waits_for_the_packet_and_is_not_forgotten() -> None:
    bench = Bench()

    async def test(ctx: Any) -> None:
        enable = bench.dut.registers.control.enable
        await bench.open(ctx, 2)
        await bench.ring(ctx, 3)
        await bench.event(ctx, QueueEvent.TAKE)
        ctx.set(enable, 0)
        await ctx.tick()
        ctx.set(enable, 1)
        await ctx.tick().repeat(5)
        assert bench.state(ctx) == QueueState.ACTIVE
        await bench.event(ctx, QueueEvent.RETIRE)
        assert bench.indices(ctx) == (1, 3)
        await bench.event(ctx, QueueEvent.FINISH)
        await ctx.tick()
        assert bench.state(ctx) == QueueState.DISABLED
        await ctx.tick()
        assert bench.state(ctx) == QueueState.READY
        assert bench.indices(ctx) == (0, 0)
        await ctx.tick().repeat(3)
        assert not ctx.get(bench.dut.pending)

    bench.run(test)


def test_ignored_doorbells() -> None:
    bench = Bench()

    async def test(ctx: Any) -> None:
        for index in (1, 0xFFFF):
            await bench.ring(ctx, index)
            await ctx.tick().repeat(3)
            assert bench.state(ctx) == QueueState.DISABLED
            assert bench.indices(ctx) == (0, 0)
        await bench.open(ctx, 2)
        await bench.ring(ctx, 9)
        await ctx.tick().repeat(3)
        await bench.ring(ctx, 1)
        await ctx.tick().repeat(3)
        assert bench.state(ctx) == QueueState.ERROR
        assert bench.indices(ctx) == (0, 0)
        assert ctx.get(bench.dut.registers.error_address.address) == 9

    bench.run(test)
