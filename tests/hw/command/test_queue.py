"""One queue between its registers and an executor played by the test."""

from collections.abc import Callable
from typing import Any

import pytest

from sley.abi.command import ErrorAddress, QueueEvent
from sley.abi.config import preset
from sley.abi.faults import FaultCode, QueueState
from sley.abi.timing import RETRY_CYCLES
from sley.hw.command.queue import Queue
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.streams import Design

CONFIG = preset("nano")
COVERAGE = Coverage(
    "queue",
    {
        "event": [
            (event, where)
            for event in ("RETIRE", "FINISH", "LAUNCH", "BLOCK", "ENTER", "FAULT")
            for where in ("ring", "buffer")
            if (event, where) != ("ENTER", "buffer")  # a buffer holds no INDIRECT
        ],
        "doorbell": [state.name for state in QueueState],
        "stopped by": ("BAD_DOORBELL", "ABORTED"),
        "log2": (0, 1, 2, 3, 15),
    },
)


class Bench:
    """Registers, doorbell and events by name."""

    def __init__(self) -> None:
        self.dut = Queue(CONFIG)

    def run(self, test: Any) -> None:
        Design(self.dut).run([test])

    async def open(self, ctx: Any, log2: int, base: int = 0) -> None:
        r = self.dut.registers
        ctx.set(r.control.enable, 0)
        await ctx.tick().repeat(3)
        assert self.state(ctx) == QueueState.DISABLED
        COVERAGE.hit("log2", log2)
        ctx.set(r.size.log2, log2)
        ctx.set(r.base.address, base)
        ctx.set(r.control.enable, 1)
        await ctx.tick().repeat(2)
        assert self.state(ctx) == QueueState.READY

    def stopped(self, ctx: Any, code: FaultCode, address: ErrorAddress) -> None:
        """By that error, whose address is there."""
        COVERAGE.hit("stopped by", code.name)
        assert self.state(ctx) == QueueState.ERROR
        assert (ctx.get(self.dut.error.code), ctx.get(self.dut.error.address)) == (code, address)

    async def ring(self, ctx: Any, index: int, *, heard: bool = True) -> None:
        COVERAGE.hit("doorbell", QueueState(self.state(ctx)).name)
        ctx.set(self.dut.doorbell, index)
        ctx.set(self.dut.doorbell_written, 1)
        assert ctx.get(self.dut.rings) == heard
        await ctx.tick()
        ctx.set(self.dut.doorbell_written, 0)

    async def event(self, ctx: Any, *events: QueueEvent) -> None:
        for event in events:
            if event is not QueueEvent.TAKE:
                where = "buffer" if ctx.get(self.dut.registers.buffer_index.in_buffer) else "ring"
                COVERAGE.hit("event", (event.name, where))
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
                if index >= ring or (index - done) % ring > length:
                    bench.stopped(ctx, FaultCode.BAD_DOORBELL, ErrorAddress.DOORBELL)
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
        await bench.open(ctx, 2)
        assert not ctx.get(bench.dut.rung)
        await bench.ring(ctx, 1)
        assert ctx.get(bench.dut.rung)
        assert not ctx.get(bench.dut.pending)
        await ctx.tick()
        assert ctx.get(bench.dut.pending)

    bench.run(test)


def test_blocked_and_launched() -> None:
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
        await bench.event(ctx, QueueEvent.TAKE, QueueEvent.LAUNCH)
        assert bench.state(ctx) == QueueState.LAUNCHED
        await bench.event(ctx, QueueEvent.RETIRE, QueueEvent.FINISH)
        assert bench.indices(ctx) == (2, 2)
        await ctx.tick().repeat(2)
        assert not ctx.get(pending)

    bench.run(test)


def test_doorbells_while_a_packet_waits_or_runs() -> None:
    """They count at once and disturb nothing, in the ring and in a buffer."""
    bench = Bench()
    dut = bench.dut

    async def test(ctx: Any) -> None:
        async def ring(index: int, state: QueueState, done: int) -> None:
            await ctx.tick()
            assert bench.state(ctx) == state
            await bench.ring(ctx, index)
            await ctx.tick().repeat(2)
            assert bench.state(ctx) == state
            assert bench.indices(ctx) == (done, index)

        await bench.open(ctx, 2)
        await bench.ring(ctx, 1)
        await bench.event(ctx, QueueEvent.TAKE, QueueEvent.BLOCK)
        await ring(2, QueueState.BLOCKED, 0)
        while not ctx.get(dut.pending):
            await ctx.tick()
        await bench.event(ctx, QueueEvent.TAKE, QueueEvent.LAUNCH)
        await ring(3, QueueState.LAUNCHED, 0)
        await bench.event(ctx, QueueEvent.RETIRE, QueueEvent.FINISH)
        assert bench.indices(ctx) == (1, 3)

        ctx.set(dut.buffer_packets, 2)
        await ctx.tick().repeat(2)
        await bench.event(ctx, QueueEvent.TAKE, QueueEvent.ENTER)
        await bench.event(ctx, QueueEvent.TAKE, QueueEvent.LAUNCH)
        await ring(4, QueueState.LAUNCHED, 1)
        await bench.event(ctx, QueueEvent.RETIRE, QueueEvent.FINISH)
        index = dut.registers.buffer_index
        assert (ctx.get(index.index), ctx.get(index.in_buffer)) == (1, 1)
        await bench.advance(ctx, 1)
        assert bench.indices(ctx) == (2, 4)

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


@pytest.mark.parametrize("packets", [1, 2, 3, 65535])
def test_buffer(packets: int) -> None:
    """Packets of a buffer come one after another, then the ring goes on; the look ahead is always at the next one."""
    bench = Bench()
    dut, start = bench.dut, 0x7F000
    shown = min(packets, 5)

    async def test(ctx: Any) -> None:
        async def next_is(packet: int, nested: int, ahead: int = 1) -> None:
            await ctx.tick().repeat(2)
            assert (ctx.get(dut.ahead), ctx.get(dut.nested)) == (ahead, nested)
            assert not ahead or ctx.get(dut.packet) == packet

        await bench.open(ctx, 2, base=0x1000)
        await bench.advance(ctx, 0)
        await bench.ring(ctx, 2)
        await ctx.tick()
        assert (ctx.get(dut.packet), ctx.get(dut.nested)) == (0x40, 0)
        ctx.set(dut.buffer, start)
        ctx.set(dut.buffer_packets, packets)
        await bench.event(ctx, QueueEvent.TAKE, QueueEvent.ENTER)
        r = dut.registers
        assert bench.state(ctx) == QueueState.READY
        for k in range(shown):
            await next_is(start + k, 1)
            assert ctx.get(dut.pending)
            assert bench.indices(ctx) == (0, 2)
            assert (ctx.get(r.buffer_index.index), ctx.get(r.buffer_index.in_buffer)) == (k, 1)
            await bench.event(ctx, QueueEvent.TAKE)
            last = k == packets - 1
            await next_is(0x41 if last else start + k + 1, not last)
            if k == 1:  # a WAIT, tried again
                await bench.event(ctx, QueueEvent.BLOCK)
                await next_is(start + k, 1)
                while not ctx.get(dut.pending):
                    await ctx.tick()
                await bench.event(ctx, QueueEvent.TAKE)
            await bench.event(ctx, QueueEvent.RETIRE)
            assert ctx.get(dut.registers.buffer_index.in_buffer) == (not last)
            await bench.event(ctx, QueueEvent.FINISH)
        if packets > shown:
            await bench.event(ctx, QueueEvent.TAKE, QueueEvent.FAULT)
            await ctx.tick().repeat(3)
            assert (ctx.get(r.buffer_index.index), ctx.get(r.buffer_index.in_buffer)) == (shown, 1)
            assert bench.indices(ctx) == (0, 2)
            ctx.set(r.control.enable, 0)
            await ctx.tick().repeat(3)
            assert (ctx.get(r.buffer_index.index), ctx.get(r.buffer_index.in_buffer)) == (0, 0)
            return
        assert bench.indices(ctx) == (1, 2)
        assert (ctx.get(r.buffer_index.index), ctx.get(r.buffer_index.in_buffer)) == (0, 0)
        await next_is(0x41, 0)
        await bench.advance(ctx, 1)
        await next_is(0, 0, ahead=0)

    bench.run(test)


def test_buffer_taken_back() -> None:
    """A doorbell takes the INDIRECT packet back whose buffer is being executed."""
    bench = Bench()

    async def test(ctx: Any) -> None:
        await bench.open(ctx, 2)
        await bench.ring(ctx, 1)
        ctx.set(bench.dut.buffer_packets, 9)
        await bench.event(ctx, QueueEvent.TAKE, QueueEvent.ENTER)
        await bench.advance(ctx, 1)
        await bench.event(ctx, QueueEvent.TAKE)
        await bench.ring(ctx, 0)
        await bench.event(ctx, QueueEvent.RETIRE, QueueEvent.FINISH)
        await ctx.tick().repeat(2)
        bench.stopped(ctx, FaultCode.BAD_DOORBELL, ErrorAddress.DOORBELL)
        assert ctx.get(bench.dut.registers.buffer_index.index) == 2

    bench.run(test)


@pytest.mark.parametrize("log2", [0, 1, 3])
def test_taken_back(log2: int) -> None:
    """A doorbell takes the packet back that is executed: the queue stops behind it, unless it is rung again before."""
    bench = Bench()

    async def test(ctx: Any) -> None:
        for again in (True, False):
            await bench.open(ctx, log2)
            await bench.ring(ctx, 1)
            await bench.event(ctx, QueueEvent.TAKE)
            await bench.ring(ctx, 0)
            if again:
                await bench.ring(ctx, 1)
            await bench.event(ctx, QueueEvent.RETIRE, QueueEvent.FINISH)
            await ctx.tick().repeat(3)
            if again:
                assert bench.state(ctx) == QueueState.READY
            else:
                bench.stopped(ctx, FaultCode.BAD_DOORBELL, ErrorAddress.DOORBELL)

    bench.run(test)


@pytest.mark.parametrize("enable", [0, 1])
@pytest.mark.parametrize("when", ["empty", "pending", "blocked", "active", "launched"])
def test_abort(when: str, enable: int) -> None:
    """A pulse is enough. The queue stops when it is not held: ERROR with ABORTED, or DISABLED without an error."""
    bench = Bench()
    dut = bench.dut

    async def test(ctx: Any) -> None:
        failed = 0

        async def tick(cycles: int = 1) -> None:
            nonlocal failed
            for _ in range(cycles):
                failed += (await ctx.tick().sample(dut.failed))[-1]

        await bench.open(ctx, 2)
        if when != "empty":
            await bench.ring(ctx, 3)
        if when in ("blocked", "active", "launched"):
            await bench.event(ctx, QueueEvent.TAKE)
        if when == "blocked":
            await bench.event(ctx, QueueEvent.BLOCK)
        if when == "launched":
            await bench.event(ctx, QueueEvent.LAUNCH)
        ctx.set(dut.registers.control.abort, 1)
        ctx.set(dut.registers.control.enable, enable)
        await tick()
        ctx.set(dut.registers.control.abort, 0)
        if when in ("active", "launched"):
            await tick(30)
            assert ctx.get(dut.aborting)
            assert bench.state(ctx) in (QueueState.ACTIVE, QueueState.LAUNCHED)
            if when == "active":  # it has finished all the same
                await bench.event(ctx, QueueEvent.RETIRE, QueueEvent.FINISH)
            else:
                ctx.set(dut.fault_code, FaultCode.ABORTED)
                await bench.event(ctx, QueueEvent.FAULT)
        await tick(4)
        assert not ctx.get(dut.pending)
        if enable:
            bench.stopped(ctx, FaultCode.ABORTED, ErrorAddress.FAULT if when == "launched" else ErrorAddress.NONE)
            assert failed == 1
        else:
            assert bench.state(ctx) == QueueState.DISABLED
            assert (ctx.get(dut.error.code), ctx.get(dut.error.address)) == (FaultCode.NONE, ErrorAddress.NONE)
            assert not ctx.get(dut.rung)
            assert not failed
        await bench.open(ctx, 2)
        await bench.ring(ctx, 1)
        await ctx.tick()
        assert ctx.get(dut.pending)
        assert not ctx.get(dut.aborting)

    bench.run(test)


def test_ignored_doorbells() -> None:
    bench = Bench()

    async def test(ctx: Any) -> None:
        for index in (1, 0xFFFF):
            await bench.ring(ctx, index, heard=False)
            await ctx.tick().repeat(3)
            assert bench.state(ctx) == QueueState.DISABLED
            assert bench.indices(ctx) == (0, 0)
        await bench.open(ctx, 2)
        await bench.ring(ctx, 9)
        await ctx.tick().repeat(3)
        await bench.ring(ctx, 1, heard=False)
        await ctx.tick().repeat(3)
        assert bench.indices(ctx) == (0, 0)
        bench.stopped(ctx, FaultCode.BAD_DOORBELL, ErrorAddress.DOORBELL)

    bench.run(test)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
