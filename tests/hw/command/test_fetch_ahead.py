"""Packets that were fetched while another one runs: what they wait for, and when they are dropped."""

from typing import Any

import pytest

from sley.abi.config import preset
from sley.abi.faults import QueueState
from sley.abi.packets import PacketOp, encode_packet
from sley.hw.testing.command.bench import CommandBench

NANO = preset("nano")
RING, RING2, DATA = 0x400, 0x800, 0xC00
LAUNCH = encode_packet(PacketOp.LAUNCH, program=0x100, program_words=3, tag=7, grid_x=1, grid_y=1, grid_z=1)


def signal(address: int, value: int) -> bytes:
    return encode_packet(PacketOp.SIGNAL, address=address, value=value)


def word(host: CommandBench, address: int) -> int:
    return int.from_bytes(host.memory.data[address : address + 8], "little")


@pytest.mark.some(1)
@pytest.mark.parametrize("latency", [1, 40])
def test_a_copy_behind_a_read_index(latency: int) -> None:
    """It has been fetched ahead, and waits for the acknowledgement before it reads or writes."""
    host = CommandBench(NANO, size=0x1000, latency=(latency, latency), core_delay=(200, 200))

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=RING, log2=2, readback=0x80)
        await host.submit(ctx, 0, LAUNCH, encode_packet(PacketOp.COPY, src=DATA, dst=DATA + 0x80, bytes=32))
        await host.drained(ctx, 0)

    host.run(test)
    copied = [cycle for cycle, _, addr in host.heads() if addr >= DATA]
    assert len(copied) >= 2
    assert copied[0] > host.answers("WORD")[0]


def test_packets_fetched_ahead_are_dropped() -> None:
    """When the queue is turned off, and when a doorbell takes the packet back; then it may change."""
    host = CommandBench(NANO, seed=3, size=0x1000, latency=(1, 8), core_delay=(300, 300))
    new = signal(0x98, 2)
    slot = RING + 64

    async def test(ctx: Any) -> None:
        for how in ("off", "taken back"):
            await host.open(ctx, 0, base=RING, log2=2)
            host.put(0, LAUNCH)
            host.put(0, signal(0x90, 1))
            await host.ring(ctx, 0)
            await host.state(ctx, 0, QueueState.LAUNCHED)
            await ctx.tick().repeat(80)
            assert host.memory.reads[-1].addr // 64 == slot // 64, "it was fetched"
            if how == "off":
                await host.write(ctx, "QUEUE0.CONTROL", enable=0)
                host.memory.data[RING : RING + 128] = new + new
                await host.write(ctx, "QUEUE0.CONTROL", enable=1)
                await host.state(ctx, 0, QueueState.READY)
                await ctx.tick().repeat(3)
                await host.ring(ctx, 0, 2)
            else:
                await host.ring(ctx, 0, 1)
                host.memory.data[slot : slot + 64] = new
                await host.ring(ctx, 0, 2)
            while await host.read(ctx, "QUEUE0.READ_INDEX") != 2:
                await ctx.tick()
            assert word(host, 0x98) == 2
            host.memory.data[0x98:0xA0] = bytes(8)
            await host.close(ctx, 0)

    host.run(test)
    assert word(host, 0x90) == 0


def test_packet_fetched_ahead_gives_way() -> None:
    """A grid runs and the next packet is here already; another queue's packets come first, and nothing is lost."""
    host = CommandBench(NANO, seed=3, size=0x1000, latency=(1, 8), core_delay=(300, 300))

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=RING, log2=2)
        await host.open(ctx, 1, base=RING2, log2=2)
        host.put(0, LAUNCH)
        host.put(0, signal(0x90, 1))
        await host.ring(ctx, 0)
        await host.state(ctx, 0, QueueState.LAUNCHED)
        await ctx.tick().repeat(80)
        await host.submit(ctx, 1, signal(0x98, 1), signal(0x98, 2))
        await host.drained(ctx, 1)
        assert host.peek_state(ctx, 0) == QueueState.LAUNCHED
        assert (word(host, 0x90), word(host, 0x98)) == (0, 2)
        await host.drained(ctx, 0)

    host.run(test)
    assert word(host, 0x90) == 1
