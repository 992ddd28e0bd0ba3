"""Queues beside each other: buffers, copies that take turns, priorities, interrupts that are told together."""

from itertools import pairwise
from typing import Any

import pytest

from sley.abi.config import preset
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.packets import PacketOp, encode_packet
from sley.abi.registers import PATIENCE
from sley.abi.timing import SLICE_CHUNKS
from sley.hw.testing.command.bench import CommandBench

NANO = preset("nano")
EIGHT = NANO.replace(queues=8)
NOP = encode_packet(PacketOp.NOP)
CHUNK = 16 * NANO.bus_bytes


def launch(**fields: int) -> bytes:
    return encode_packet(
        PacketOp.LAUNCH, **{"program": 0x100, "program_words": 3, "grid_x": 1, "grid_y": 1, "grid_z": 1, **fields}
    )


def signal(address: int, value: int) -> bytes:
    return encode_packet(PacketOp.SIGNAL, address=address, value=value)


def fence(address: int, sequence: int = 1) -> bytes:
    return encode_packet(PacketOp.FENCE, address=address, sequence=sequence, interrupt=1)


def indirect(address: int, packets: int) -> bytes:
    return encode_packet(PacketOp.INDIRECT, address=address, packets=packets)


@pytest.mark.slow
def test_replay_with_one_doorbell() -> None:
    """Forty recorded launches: one doorbell, one read index, and the rate of launches in the ring."""
    host = CommandBench(preset("edge"), size=0x4000, latency=(32, 32), core_delay=(10, 10))
    count = 40
    host.memory.data[0x1000 : 0x1000 + 64 * count] = launch(tag=7, arg_words=2, arg0=1, arg1=2) * count

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=0x400, log2=3, readback=0x80)
        await host.submit(ctx, 0, indirect(0x1000, count))
        await host.drained(ctx, 0)
        assert (await host.fields(ctx, "CHIP.PROGRESS"))["count"] == 2 * count

    host.run(test)
    heads = [cycle for cycle, kind, _ in host.heads() if kind == "MESSAGE"]
    assert len(heads) == count
    assert max(after - before for before, after in pairwise(heads)) <= 55
    assert len(host.memory.writes) == 1
    packets = [burst.addr for burst in host.memory.reads]
    assert packets == [0x400, *range(0x1000, 0x1000 + 64 * count, 64)]  # each once


def test_buffers_in_order_and_their_faults() -> None:
    """Any packet but INDIRECT in a buffer, also the last one; none of length 0; the record says where it was."""
    host = CommandBench(EIGHT, size=0x2000, latency=(1, 9), core_delay=(5, 30))
    data = host.memory.data
    wait = encode_packet(PacketOp.WAIT, address=0x90, value=2)
    copy = encode_packet(PacketOp.COPY, src=0x400, dst=0x803, bytes=100)
    good = [signal(0x90, 1), launch(), copy, signal(0x90, 2), wait, NOP]
    data[0x1000 : 0x1000 + 64 * 6] = b"".join(good)
    bad = {
        "nested": (indirect(0x1000, 1), FaultCode.BAD_FIELD, 0),
        "zeros": (bytes(64), FaultCode.BAD_PACKET, 0),
        "nowhere": (signal(0x2000, 1), FaultCode.BUS_ERROR, 0x2000),
    }

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=0x400, log2=2, readback=0x80)
        await host.submit(ctx, 0, indirect(0x1000, 6), indirect(0x1000, 0), signal(0x98, 7), indirect(0x1100, 1))
        await host.drained(ctx, 0)
        assert (data[0x90], data[0x98], data[0x80]) == (2, 7, 4)
        assert data[0x803 : 0x803 + 100] == data[0x400:0x464]
        for k, (packet, code, address) in enumerate(bad.values()):
            data[0x1400 : 0x1400 + 64 * 4] = NOP * k + packet + NOP * (3 - k)
            await host.open(ctx, 1, base=0x600, log2=2)
            await host.submit(ctx, 1, NOP, indirect(0x1400, 4), NOP)
            record = await host.error(ctx, 1)
            assert (record["code"], record["unit"], record["address"]) == (code, Unit.COMMAND, address)
            assert await host.fields(ctx, "QUEUE1.BUFFER_INDEX") == {"index": k, "in_buffer": 1}
            assert await host.fields(ctx, "QUEUE1.READ_INDEX") == {"index": 1}
            await host.close(ctx, 1)
            await ctx.tick().repeat(2)
            assert await host.fields(ctx, "QUEUE1.BUFFER_INDEX") == {"index": 0, "in_buffer": 0}
        # the buffer itself is not there
        await host.open(ctx, 1, base=0x600, log2=2)
        await host.submit(ctx, 1, indirect(0x2000, 4))
        assert (await host.error(ctx, 1))["address"] == 0x2000

    host.run(test)


@pytest.mark.slow
def test_a_copy_delays_nobody() -> None:
    """Packets and launches of other queues pass a long copy; they only share memory with it."""
    host = CommandBench(EIGHT, size=0x8000, latency=(8, 8), core_delay=(20, 20))
    ends: dict[int, int] = {}

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=0x400, log2=2)
        await host.submit(ctx, 0, encode_packet(PacketOp.COPY, src=0x2000, dst=0x5000, bytes=0x2000))
        await host.open(ctx, 1, base=0x600, log2=3, readback=0x80)
        for packet in (signal(0x90, 1), launch(), fence(0xA0), launch()):
            host.put(1, packet)
        await host.ring(ctx, 1)
        begun = host.bench.cycle
        await host.drained(ctx, 1)
        ends[1] = host.bench.cycle - begun
        assert host.peek_state(ctx, 0) == QueueState.ACTIVE
        await host.drained(ctx, 0)
        ends[0] = host.bench.cycle

    host.run(test)
    assert ends[1] < 1000
    assert ends[0] > 0x2000 // 4 * 17 // 16


@pytest.mark.slow
def test_copies_take_turns() -> None:
    """Slice by slice; the urgent one first, the other after ``PATIENCE`` slices, and every byte in its place."""
    size = 20 * SLICE_CHUNKS * CHUNK
    host = CommandBench(EIGHT, size=0x24000, latency=(8, 8), timeout=90_000)
    data = host.memory.data
    data[0x1000 : 0x1000 + size] = bytes(k * 7 & 0xFF for k in range(size))
    small = 3 * SLICE_CHUNKS * CHUNK + 5

    async def test(ctx: Any) -> None:
        await host.write(ctx, "QUEUE3.OWNER", context=0, priority=2)
        for queue in (2, 3):
            await host.open(ctx, queue, base=0x400 + 0x100 * queue, log2=2)
        await host.submit(ctx, 2, encode_packet(PacketOp.FILL, dst=0x20003, bytes=small, value=0x5A))
        await host.submit(ctx, 3, encode_packet(PacketOp.COPY, src=0x1000, dst=0x10000, bytes=size))
        await host.drained(ctx, 2)
        await host.drained(ctx, 3)

    host.run(test)
    assert data[0x10000 : 0x10000 + size] == data[0x1000 : 0x1000 + size]
    assert data[0x20002 : 0x20003 + small + 1] == b"\0" + b"\x5a" * small + b"\0"
    owners = [burst.addr >= 0x20000 for burst in host.memory.writes if burst.addr >= 0x10000]
    runs = [0]
    for before, after in pairwise(owners):
        if before != after:
            runs.append(0)
        runs[-1] += 1
    slices = [round(run / SLICE_CHUNKS) for run in runs]
    assert slices[0] == 1, "the fill came first"
    assert slices[1] == PATIENCE, "then the urgent one, until the fill was overdue"
    assert slices[2] == 1


def test_copy_cut_short_by_abort() -> None:
    host = CommandBench(EIGHT, size=0x8000, latency=(8, 8))

    async def test(ctx: Any) -> None:
        for queue in (0, 1):
            await host.open(ctx, queue, base=0x400 + 0x100 * queue, log2=2)
        await host.submit(ctx, 0, encode_packet(PacketOp.FILL, dst=0x2000, bytes=0x4000, value=1))
        await host.submit(ctx, 1, encode_packet(PacketOp.FILL, dst=0x1000, bytes=0x100, value=2))
        await ctx.tick().repeat(150)
        await host.write(ctx, "QUEUE0.CONTROL", enable=1, abort=1)
        begun = host.bench.cycle
        record = await host.error(ctx, 0)
        assert host.bench.cycle - begun < 150
        assert (record["code"], record["unit"], record["address"]) == (FaultCode.ABORTED, Unit.COMMAND, 0)
        await host.drained(ctx, 1)

    host.run(test)
    written = host.memory.data[0x2000:0x6000]
    assert 0 < written.count(1) < 0x1000
    assert written == written.rstrip(b"\0") + bytes(0x4000 - len(written.rstrip(b"\0")))
    assert host.memory.data[0x1000:0x1100] == b"\x02" * 0x100


def test_urgent_packets_first_and_nobody_starves() -> None:
    """Queue 1 is urgent and never empty; queue 0 gets every seventeenth packet, and all once queue 1 is done."""
    host = CommandBench(EIGHT, size=0x4000, latency=(4, 4), timeout=40_000)

    async def test(ctx: Any) -> None:
        await host.write(ctx, "QUEUE1.OWNER", context=0, priority=3)
        await host.open(ctx, 0, base=0x1000, log2=4)
        await host.open(ctx, 1, base=0x2000, log2=6)
        for _ in range(50):
            host.put(1, signal(0x98, 1))
        for _ in range(4):
            host.put(0, signal(0x90, 1))
        await host.ring(ctx, 1)
        await host.ring(ctx, 0)
        await host.drained(ctx, 0)

    host.run(test)
    places = [k for k, burst in enumerate(host.memory.writes) if burst.addr == 0x90]
    assert [after - before for before, after in pairwise(places)][:2] == [PATIENCE + 1] * 2
    assert places[0] <= PATIENCE + 1
    assert places[-1] == 53


def test_a_copy_behind_one_that_was_interrupted_begins_anew() -> None:
    """A long fill makes room for another queue's, goes on and ends; the next one of its queue has all of its bytes."""
    host = CommandBench(EIGHT, size=0x4000, latency=(2, 2))
    long, data = SLICE_CHUNKS * CHUNK + 3 * CHUNK, host.memory.data

    async def test(ctx: Any) -> None:
        for queue in (0, 1):
            await host.open(ctx, queue, base=0x400 + 0x100 * queue, log2=2)
        await host.submit(ctx, 0, encode_packet(PacketOp.FILL, dst=0x1000, bytes=long, value=1))
        await host.submit(ctx, 1, encode_packet(PacketOp.FILL, dst=0x2000, bytes=9, value=2))
        await host.submit(ctx, 0, encode_packet(PacketOp.FILL, dst=0x3000, bytes=2 * CHUNK, value=3))
        for queue in (0, 1):
            await host.drained(ctx, queue)

    host.run(test)
    assert data[0x1000 : 0x1000 + long + 1] == b"\1" * long + b"\0"
    assert data[0x2000:0x200A] == b"\2" * 9 + b"\0"
    assert data[0x3000 : 0x3000 + 2 * CHUNK + 1] == b"\3" * 2 * CHUNK + b"\0"
    writes = [burst.addr for burst in host.memory.writes]
    assert writes.index(0x2000) < writes.index(0x1000 + long - CHUNK)


def test_a_count_of_one_waits_for_nothing() -> None:
    """The line rises in the same cycle as without a count."""
    raised = []
    for count in (0, 1):
        host = CommandBench(NANO, size=0x1000, latency=(4, 4))

        async def test(ctx: Any, host: CommandBench = host, count: int = count) -> None:
            await host.write(ctx, "CHIP.IRQ_ENABLE", fence=1, error=1)
            await host.write(ctx, "CHIP.IRQ_COALESCE", count=count, cycles=500)
            await host.open(ctx, 0, base=0x400, log2=3)
            await host.submit(ctx, 0, fence(0xA0))
            while not ctx.get(host.dut.irq):
                await ctx.tick()

        host.run(test)
        raised.append(host.bench.cycle)
    assert raised[0] == raised[1]


@pytest.mark.parametrize("count", [pytest.param(0, marks=pytest.mark.slow), 1, 3])  # 0 is like 1, see above
def test_interrupts_told_together(count: int) -> None:
    """The line rises with the third fence, or so many cycles after the first; an error is told at once."""
    host = CommandBench(NANO, size=0x2000, latency=(4, 4))

    async def test(ctx: Any) -> None:
        async def told(limit: int) -> int:
            """Cycles until the line is high, at most so many."""
            for cycle in range(limit):
                if ctx.get(host.dut.irq):
                    return cycle
                await ctx.tick()
            return limit

        async def clear() -> None:
            await host.write(ctx, "CHIP.IRQ_STATUS", fence=3, error=3)
            await ctx.tick().repeat(2)
            assert not ctx.get(host.dut.irq)

        await host.write(ctx, "CHIP.IRQ_ENABLE", fence=3, error=3)
        await host.write(ctx, "CHIP.IRQ_COALESCE", count=count, cycles=500)
        await host.open(ctx, 0, base=0x400, log2=3)
        await host.open(ctx, 1, base=0x800, log2=3)
        for _ in range(2):  # by number
            for k in range(3):
                await host.submit(ctx, k & 1, fence(0xA0))
                await host.drained(ctx, k & 1)
                assert (await told(5) < 5) == (k >= count - 1)
            await clear()
        await host.submit(ctx, 0, fence(0xA0))  # by time
        await host.drained(ctx, 0)
        waited = await told(600)
        assert waited < 5 if count < 2 else 450 < waited < 510
        await host.submit(ctx, 1, fence(0xA0))  # stays high until all is cleared
        await host.drained(ctx, 1)
        await host.write(ctx, "CHIP.IRQ_STATUS", fence=1)
        await ctx.tick().repeat(3)
        assert ctx.get(host.dut.irq)
        await clear()
        await host.submit(ctx, 0, fence(0xA0), bytes(64))
        await host.error(ctx, 0)
        assert ctx.get(host.dut.irq)

    host.run(test)
