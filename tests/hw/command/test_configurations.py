"""The command processor of unusual chips: one queue, eight queues, the widest and the narrowest bus."""

from typing import Any

import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.packets import PacketOp, encode_packet
from sley.hw.testing.command.bench import CommandBench

RING = 0x400


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "config",
    [
        preset("nano").replace(queues=1, max_burst=1),
        preset("nano").replace(queues=8, cores_x=1, cores_y=8, max_burst=2),
        preset("edge").replace(array=64, max_burst=2, addr_bits=20),
    ],
    ids=["one queue", "eight queues", "wide bus"],
)
def test_last_queue_works(config: ChipConfig) -> None:
    host = CommandBench(config, size=0x1000, latency=(1, 3), core_delay=(5, 9))
    queue = config.queues - 1

    async def test(ctx: Any) -> None:
        await host.write(ctx, "CHIP.IRQ_ENABLE", fence=0xFF)
        await host.open(ctx, queue, base=RING, log2=1, readback=0x84)
        await host.submit(
            ctx,
            queue,
            encode_packet(PacketOp.LAUNCH, program_words=1, grid_x=config.cores, grid_y=1, grid_z=1),
            encode_packet(PacketOp.FENCE, address=0xA0, sequence=3, interrupt=1),
        )
        while not ctx.get(host.dut.irq):
            await ctx.tick()
        await host.drained(ctx, queue)
        assert await host.fields(ctx, "CHIP.IRQ_STATUS") == {"fence": 1 << queue, "error": 0}

    host.run(test)
    assert host.memory.data[0x84] == 2
    assert host.memory.data[0xA0] == 3
    assert any(host.memory.data[0xA8:0xB0]), "the time, behind the sequence number"
    assert len(host.cores.runs) == config.cores
