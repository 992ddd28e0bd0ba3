"""Everything that stops a queue: the record, the interrupt, and the other queue untouched."""

import random
from typing import Any

from sley.abi.config import preset
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.network import LaunchWord
from sley.abi.packets import PACKET_BYTES, PacketOp, encode_packet
from sley.hw.testing.command.bench import CommandBench
from sley.hw.testing.command.cores import BlockRun

CONFIG = preset("nano").replace(addr_bits=24, cores_x=2)
RING, RING2 = 0x400, 0x800
SIZE = 0x1000
LIMIT = 1 << CONFIG.addr_bits
NOP = encode_packet(PacketOp.NOP)
LAUNCH = {"program": 0x100, "program_words": 3, "grid_x": 1, "grid_y": 1, "grid_z": 1}


def record(code: FaultCode, address: int, **others: int) -> dict[str, int]:
    return {"code": code, "unit": Unit.COMMAND, "core": 0, "pc": 0, "block": 0, "address": address} | others


def launch(**fields: int) -> bytes:
    return encode_packet(PacketOp.LAUNCH, **{**LAUNCH, **fields})


def with_bit(packet: bytes, bit: int) -> bytes:
    return (int.from_bytes(packet, "little") | 1 << bit).to_bytes(PACKET_BYTES, "little")


# One packet of each way to fail; test_check.py has them all.
BAD_PACKETS = {
    "zeros": (bytes(64), FaultCode.BAD_PACKET, 0),
    "reserved bit": (with_bit(NOP, 511), FaultCode.BAD_FIELD, 15),
    "long program": (launch(program_words=CONFIG.program_words + 1), FaultCode.BAD_FIELD, 1),
    "signal outside": (encode_packet(PacketOp.SIGNAL, address=LIMIT + 8), FaultCode.BAD_ADDRESS, LIMIT + 8),
    # inside the address width, but there is no memory
    "copy from nowhere": (encode_packet(PacketOp.COPY, src=SIZE, dst=0, bytes=4), FaultCode.BUS_ERROR, SIZE),
    "copy to nowhere": (encode_packet(PacketOp.COPY, src=0, dst=SIZE - 8, bytes=90), FaultCode.BUS_ERROR, SIZE - 8),
    "fence nowhere": (encode_packet(PacketOp.FENCE, address=SIZE), FaultCode.BUS_ERROR, SIZE),
    "wait nowhere": (encode_packet(PacketOp.WAIT, address=SIZE + 8), FaultCode.BUS_ERROR, SIZE + 8),
}


def test_bad_packets() -> None:
    """One after another on queue 0; queue 1 works on and never notices."""
    host = CommandBench(CONFIG, seed=2, size=SIZE, latency=(1, 6))
    work = [encode_packet(PacketOp.SIGNAL, address=0x90, value=k) for k in range(len(BAD_PACKETS))]

    async def test(ctx: Any) -> None:
        await host.write(ctx, "CHIP.IRQ_ENABLE", error=1)
        await host.open(ctx, 1, base=RING2, log2=4, readback=0x80)
        for k, (name, (packet, code, address)) in enumerate(BAD_PACKETS.items()):
            await host.open(ctx, 0, base=RING, log2=2)
            await host.submit(ctx, 1, work[k])
            await host.submit(ctx, 0, NOP, packet, NOP)
            assert await host.error(ctx, 0) == record(code, address), name
            assert ctx.get(host.dut.irq)
            assert await host.fields(ctx, "CHIP.IRQ_STATUS") == {"fence": 0, "error": 1}
            await host.write(ctx, "CHIP.IRQ_STATUS", error=1)
            assert not ctx.get(host.dut.irq)
            assert await host.fields(ctx, "QUEUE0.READ_INDEX") == {"index": 1}
            # a doorbell is not heard any more, the record holds
            await host.ring(ctx, 0, 2)
            await ctx.tick().repeat(5)
            assert await host.fields(ctx, "QUEUE0.WRITE_INDEX") == {"index": 3}
            assert await host.error(ctx, 0) == record(code, address), name
            await host.close(ctx, 0)
            await ctx.tick().repeat(2)
            for register in ("READ_INDEX", "WRITE_INDEX", "ERROR", "ERROR_ADDRESS", "DOORBELL_TIME_LO"):
                assert await host.read(ctx, f"QUEUE0.{register}") == 0
        await host.drained(ctx, 1)

    host.run(test)
    assert host.memory.data[0x80] == len(BAD_PACKETS) % 32
    assert host.memory.data[0x90] == len(BAD_PACKETS) - 1
    assert host.cores.runs == []


def test_bad_rings() -> None:
    host = CommandBench(CONFIG, seed=2, size=SIZE, latency=(1, 6))

    async def test(ctx: Any) -> None:
        for base, code in ((LIMIT, FaultCode.BAD_ADDRESS), (2 * SIZE, FaultCode.BUS_ERROR)):
            await host.open(ctx, 0, base=base, log2=3)
            await host.ring(ctx, 0, 1)
            assert await host.error(ctx, 0) == record(code, base)
            await host.close(ctx, 0)
        for readback, code in ((LIMIT + 4, FaultCode.BAD_ADDRESS), (SIZE, FaultCode.BUS_ERROR)):
            await host.open(ctx, 0, base=RING, log2=3, readback=readback)
            await host.submit(ctx, 0, NOP)
            assert await host.error(ctx, 0) == record(code, readback)
            assert await host.fields(ctx, "QUEUE0.READ_INDEX") == {"index": 1}
            await host.close(ctx, 0)

    host.run(test)


def test_packet_of_which_memory_has_only_the_beginning() -> None:
    """What is missing reads as zeros, with which the packet would be a good one."""
    beat = CONFIG.bus_bytes
    host = CommandBench(CONFIG, size=SIZE + beat, latency=(1, 6))
    assert not any(NOP[beat:])
    host.memory.data[SIZE:] = NOP[:beat]

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=SIZE, log2=3)
        await host.ring(ctx, 0, 1)
        assert await host.error(ctx, 0) == record(FaultCode.BUS_ERROR, SIZE)

    host.run(test)


def test_read_index_that_cannot_be_written() -> None:
    """The error comes while the next packet is on its way: that one finishes, a grid too, and the queue stops. Turning
    it off waits for the answer."""
    host = CommandBench(CONFIG, size=SIZE, latency=(60, 60), core_delay=(200, 200))

    async def test(ctx: Any) -> None:
        await host.open(ctx, 1, base=RING2, log2=3)
        for following, done in ((NOP, (1, 2)), (launch(), (2,))):
            await host.open(ctx, 0, base=RING, log2=3, readback=SIZE + 2)
            for packet in (NOP, following, NOP, NOP):
                host.put(0, packet)
            await host.ring(ctx, 0)
            assert await host.error(ctx, 0) == record(FaultCode.BUS_ERROR, SIZE)
            assert (await host.fields(ctx, "QUEUE0.READ_INDEX"))["index"] in done
            await host.close(ctx, 0)
            await host.submit(ctx, 1, NOP)
            await host.drained(ctx, 1)
        # The answer to the old read index must not arrive after the queue is off.
        await host.open(ctx, 0, base=RING, log2=3, readback=0x80)
        await host.submit(ctx, 0, NOP)
        while host.distance(ctx, 0):
            await ctx.tick()
        await host.close(ctx, 0)
        assert host.memory.data[0x80] == 1
        assert host.memory.quiet

    host.run(test)


def test_bad_doorbell_while_a_packet_runs() -> None:
    host = CommandBench(CONFIG, seed=4, size=SIZE, latency=(1, 2), core_delay=(150, 150))

    async def test(ctx: Any) -> None:
        # too far ahead: the packet finishes, then the queue stops
        await host.open(ctx, 0, base=RING, log2=2, readback=0x80)
        await host.submit(ctx, 0, launch())
        await host.state(ctx, 0, QueueState.LAUNCHED)
        await host.ring(ctx, 0, 5)
        assert host.peek_state(ctx, 0) == QueueState.LAUNCHED
        await host.ring(ctx, 0, 2)
        assert await host.error(ctx, 0) == record(FaultCode.BAD_DOORBELL, 5)
        await host.close(ctx, 0)
        assert host.memory.data[0x80] == 1
        # back to before the packet that runs
        await host.open(ctx, 0, base=RING, log2=2, readback=0x80)
        await host.submit(ctx, 0, launch())
        await host.state(ctx, 0, QueueState.LAUNCHED)
        await host.ring(ctx, 0, 0)
        assert await host.error(ctx, 0) == record(FaultCode.BAD_DOORBELL, 0)

    host.run(test)


def test_fault_of_a_block() -> None:
    rng = random.Random(5)

    def judge(run: BlockRun) -> tuple[FaultCode, Unit, int, int] | None:
        if run[LaunchWord.PROGRAM] != 0x100 or len(host.cores.runs) < 3:
            return None
        return FaultCode.LOCAL_ADDRESS, Unit.VECTOR, rng.getrandbits(16), rng.getrandbits(32)

    host = CommandBench(CONFIG, seed=6, size=SIZE, latency=(1, 5), core_delay=(5, 60), judge=judge)

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=RING, log2=2)
        await host.open(ctx, 1, base=RING2, log2=2)
        await host.submit(ctx, 0, launch(grid_x=3, grid_y=3, grid_z=2), NOP)
        await host.submit(ctx, 1, launch(program=0x200, grid_x=3))
        got = await host.error(ctx, 0)
        first = min((run for run in host.cores.runs if run.fault), key=lambda run: run.reported)
        assert first.fault is not None
        x, y, z = (first[word] for word in (LaunchWord.BLOCK_X, LaunchWord.BLOCK_Y, LaunchWord.BLOCK_Z))
        code, unit, pc, address = first.fault
        assert got == {
            "code": code,
            "unit": unit,
            "core": first.core,
            "pc": pc,
            "block": (z * 3 + y) * 3 + x,
            "address": address,
        }
        await host.drained(ctx, 1)

    host.run(test)
    # nothing was handed out after the first report; every block that ran has reported
    stopped = [run for run in host.cores.runs if run[LaunchWord.PROGRAM] == 0x100]
    assert len(stopped) < 18
    assert all(run.reported for run in host.cores.runs)
    assert len([run for run in host.cores.runs if run[LaunchWord.PROGRAM] == 0x200]) == 3
