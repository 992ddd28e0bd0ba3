"""The command processor as software sees it: registers on one side, memory and pretending cores on the other."""

import random
from itertools import pairwise
from typing import Any

import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.faults import QueueState
from sley.abi.network import LaunchWord
from sley.abi.packets import PacketOp, decode_packet, encode_packet
from sley.abi.timing import INVALIDATE_CYCLES
from sley.hw.testing.command.bench import CommandBench

NANO = preset("nano")
DUO = NANO.replace(cores_x=3, cores_y=2, queues=3)

RING, RING2, DATA = 0x400, 0x800, 0xC00
NOP = encode_packet(PacketOp.NOP)


def fence(address: int, sequence: int, interrupt: int = 0) -> bytes:
    return encode_packet(PacketOp.FENCE, address=address, sequence=sequence, interrupt=interrupt)


def signal(address: int, value: int) -> bytes:
    return encode_packet(PacketOp.SIGNAL, address=address, value=value)


def wait(address: int, value: int) -> bytes:
    return encode_packet(PacketOp.WAIT, address=address, value=value)


def launch(**fields: int) -> bytes:
    defaults = {"program": 0x100, "program_words": 3, "tag": 7, "arg_words": 2, "arg0": 0x1234, "arg1": 0xFFFF_FFFF}
    return encode_packet(PacketOp.LAUNCH, **{**defaults, "grid_x": 1, "grid_y": 1, "grid_z": 1, **fields})


def word(host: CommandBench, address: int, size: int = 8) -> int:
    return int.from_bytes(host.memory.data[address : address + size], "little")


@pytest.mark.some(1)
@pytest.mark.parametrize("config", [NANO, preset("edge")], ids=lambda c: str(c.bus_bytes))
def test_every_packet(config: ChipConfig) -> None:
    host = CommandBench(config, seed=3, size=0x1000, pause=0.2, idle=0.2)
    host.memory.data[DATA : DATA + 99] = content = random.Random(1).randbytes(99)

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=RING, log2=2, readback=0x84)
        assert await host.fields(ctx, "QUEUE0.STATE") == {"state": QueueState.READY}
        await host.submit(ctx, 0, NOP)
        await host.drained(ctx, 0)
        assert word(host, 0x84, 4) == 1
        await host.submit(
            ctx,
            0,
            encode_packet(PacketOp.COPY, src=DATA + 1, dst=DATA + 0x102, bytes=97),
            encode_packet(PacketOp.FILL, dst=DATA + 0x203, bytes=45, value=0xA5),
            signal(0x90, 0x0123_4567_89AB_CDEF),
            wait(0x90, 0x0123_4567_89AB_CDEF),
            launch(),
            launch(arg_words=7, args=0x200, arg0=0, arg1=0),
            fence(0xA0, 0xFEDC_BA98_7654_3210),
        )
        await host.drained(ctx, 0)
        assert await host.fields(ctx, "QUEUE0.READ_INDEX") == {"index": 0}
        assert await host.fields(ctx, "QUEUE0.WRITE_INDEX") == {"index": 0}

    host.run(test)
    data = host.memory.data
    assert word(host, 0x84, 4) == 0
    assert data[DATA + 0x101 : DATA + 0x102 + 98] == b"\0" + content[1:98] + b"\0"
    assert data[DATA + 0x202 : DATA + 0x203 + 46] == b"\0" + b"\xa5" * 45 + b"\0"
    assert word(host, 0x90) == 0x0123_4567_89AB_CDEF
    assert word(host, 0xA0) == 0xFEDC_BA98_7654_3210
    assert 0 < word(host, 0xA8) <= host.bench.cycle
    assert [run.words for run in host.cores.runs] == [
        [2 << 16 | 3, 0x100, 7, 0, 0, 0, 1, 1, 1, 0x1234, 0xFFFF_FFFF],
        [7 << 16 | 3, 0x100, 7, 0x200, 0, 0, 0, 1, 1, 1],
    ]


def test_random_work_on_three_queues() -> None:
    """Rings of length 1, 2 and 4 wrap many times; every queue's effects come in its order."""
    host = CommandBench(DUO, seed=5, size=0x1000, latency=(1, 12), core_delay=(1, 20))
    rng = random.Random(7)
    packets: list[list[bytes]] = []
    for queue in range(3):
        area = DATA + 0x100 * queue
        jobs = []
        for step in range(7):
            jobs.append(
                rng.choice(
                    [
                        NOP,
                        encode_packet(PacketOp.FILL, dst=area + rng.randrange(64), bytes=rng.randrange(20), value=step),
                        launch(program=0x100 * (queue + 1), grid_x=rng.randint(1, 3), grid_y=rng.randint(1, 2)),
                        signal(area + 0x80, step),
                    ]
                )
            )
        packets.append([*jobs, signal(area + 0xF0, queue + 1)])
    expected = bytearray(0x1000)
    launches = []
    for jobs in packets:
        for job in jobs:
            op, f = decode_packet(job)
            if op is PacketOp.FILL:
                expected[f["dst"] : f["dst"] + f["bytes"]] = bytes([f["value"]]) * f["bytes"]
            if op is PacketOp.SIGNAL:
                expected[f["address"] : f["address"] + 8] = f["value"].to_bytes(8, "little")
            if op is PacketOp.LAUNCH:
                launches += [f["program"]] * (f["grid_x"] * f["grid_y"])

    async def test(ctx: Any) -> None:
        for queue in range(3):
            await host.open(ctx, queue, base=RING + 0x100 * queue, log2=queue, readback=0x80 + 4 * queue)
        todo = [list(p) for p in packets]
        while any(todo):
            queue = rng.randrange(3)
            if todo[queue] and host.distance(ctx, queue) < 1 << queue:
                await host.submit(ctx, queue, todo[queue].pop(0))
            await ctx.tick()
        for queue in range(3):
            await host.drained(ctx, queue)
        assert await host.fields(ctx, "CHIP.PROGRESS") == {"count": 24 + len(host.cores.runs)}

    host.run(test)
    assert host.memory.data[DATA : DATA + 0x300] == expected[DATA : DATA + 0x300]
    assert sorted(run[LaunchWord.PROGRAM] for run in host.cores.runs) == sorted(launches)
    for queue in range(3):
        assert word(host, 0x80 + 4 * queue, 4) == len(packets[queue]) % (2 << queue)


@pytest.mark.parametrize("gaps", [0.0, 0.5])
def test_fence_order(gaps: float) -> None:
    """A packet's writes are acknowledged before the fence behind it is written, and that before the interrupt; only the
    read index may still be on its way when a fence or a signal follows it."""
    host = CommandBench(NANO, seed=11, size=0x1000, latency=(20, 60), pause=gaps, idle=gaps)
    raised: list[int] = []

    async def test(ctx: Any) -> None:
        await host.write(ctx, "CHIP.IRQ_ENABLE", fence=1)
        await host.open(ctx, 0, base=RING, log2=3, readback=0x80)
        fill = encode_packet(PacketOp.FILL, dst=DATA + 3, bytes=150, value=7)
        await host.submit(ctx, 0, fill, signal(0x90, 5), fence(0xA0, 1, interrupt=1))
        while not ctx.get(host.dut.irq):
            await ctx.tick()
        raised.append(host.bench.cycle)
        assert word(host, 0xA0) == 1
        assert await host.fields(ctx, "CHIP.IRQ_STATUS") == {"fence": 1, "error": 0}
        await host.write(ctx, "CHIP.IRQ_STATUS", fence=1)
        assert not ctx.get(host.dut.irq)
        await host.submit(ctx, 0, fence(0xA0, 2))
        await host.drained(ctx, 0)
        assert await host.fields(ctx, "CHIP.IRQ_STATUS") == {"fence": 0, "error": 0}

    host.run(test)
    acknowledged = host.answers("STORE", "WORD")
    heads = [(cycle, addr) for cycle, kind, addr in host.heads() if kind == "WRITE"]
    assert len(heads) - len(acknowledged) in (0, 1)  # the last read index may be on its way back
    early = 0
    for k in range(1, len(heads)):
        if heads[k][1] < RING:  # anything but a later burst of the fill
            follows = heads[k - 1][1] == 0x80 != heads[k][1]
            assert acknowledged[k - 1 - follows] < heads[k][0]
            early += acknowledged[k - 1] >= heads[k][0]
    assert early or gaps
    fences = [k for k, (_, addr) in enumerate(heads) if addr == 0xA0]
    assert acknowledged[fences[0]] < raised[0]


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))])
def test_small_accesses_behind_a_read_index(seed: int) -> None:
    """Fences and signals follow the read index of the packet before, everything else waits for its acknowledgement,
    whenever that comes."""
    host = CommandBench(NANO, seed=seed, size=0x1000, latency=(1, 30))
    raised: list[int] = []

    async def test(ctx: Any) -> None:
        await host.write(ctx, "CHIP.IRQ_ENABLE", fence=1)
        await host.open(ctx, 0, base=RING, log2=4, readback=0x80)
        packets = (NOP, *[signal(0x90, 5 << 32)] * 4, wait(0x90, 5 << 32), NOP, fence(0xA0, 1, interrupt=1))
        await host.submit(ctx, 0, *packets)
        while not ctx.get(host.dut.irq):
            await ctx.tick()
        raised.append(host.bench.cycle)
        await host.drained(ctx, 0)

    host.run(test)
    heads = [head for head in host.heads() if head[1] != "WALK" and head[2] < RING]
    answers = iter(host.answers("WORD"))
    # The last read index may be on its way back.
    answered = [[next(answers, 0) for _ in range(2 if kind == "READ" else 1)][-1] for _, kind, _ in heads]
    for k in range(1, len(heads)):
        follows = heads[k - 1][2] == 0x80 and heads[k][1] == "WRITE" and heads[k][2] != 0x80
        assert max(answered[: k - follows], default=0) < heads[k][0]
    assert answered[[addr for *_, addr in heads].index(0xA0)] < raised[0]
    assert [kind for _, kind, _ in heads].count("READ") == 1, "the semaphore was read again"
    assert all(answered[:-1])


def test_semaphores_between_queues() -> None:
    host = CommandBench(NANO, seed=13, size=0x1000, latency=(1, 10))
    seen: set[int] = set()

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=RING, log2=3)
        await host.open(ctx, 1, base=RING2, log2=3)
        await host.submit(ctx, 0, wait(0x90, 2), signal(0x98, 1), fence(0xA0, 1), wait(0x90, 3), fence(0xB0, 1))
        await host.state(ctx, 0, QueueState.BLOCKED)
        await host.submit(ctx, 1, signal(0x90, 1), NOP, NOP, NOP, NOP)
        await host.drained(ctx, 1)
        await ctx.tick().repeat(150)
        assert host.peek_state(ctx, 0) == QueueState.BLOCKED
        assert await host.fields(ctx, "QUEUE0.READ_INDEX") == {"index": 0}
        await host.submit(ctx, 1, signal(0x90, 2), wait(0x98, 1), signal(0x90, 1 << 63))
        while host.distance(ctx, 0) or host.distance(ctx, 1):
            seen.add(host.peek_state(ctx, 0))
            await ctx.tick()

    host.run(test)
    assert word(host, 0xA0) == word(host, 0xB0) == 1
    assert seen >= {QueueState.BLOCKED, QueueState.READY, QueueState.ACTIVE}


def test_blocked_queue_is_retried_at_intervals() -> None:
    host = CommandBench(NANO, size=0x1000, latency=(5, 5))

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=RING, log2=0)
        await host.submit(ctx, 0, wait(0x90, 1))
        await ctx.tick().repeat(600)
        assert host.peek_state(ctx, 0) == QueueState.BLOCKED
        # turning off a queue that waits takes effect at once
        await host.close(ctx, 0)

    host.run(test)
    polls = [burst for burst in host.memory.reads if burst.addr == 0x90]
    assert 3 <= len(polls) <= 600 // 64


@pytest.mark.slow
def test_blocks_of_two_queues_take_turns() -> None:
    """The second queue's grid arrives while the first block runs."""
    host = CommandBench(NANO, seed=17, size=0x1000, latency=(1, 8), core_delay=(150, 190))
    launched: set[tuple[int, int]] = set()

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=RING, log2=3)
        await host.open(ctx, 1, base=RING2, log2=3)
        await host.submit(ctx, 0, launch(grid_x=3), launch(grid_x=2))
        await host.submit(ctx, 1, launch(program=0x300, grid_y=3), signal(0x90, 9))
        await host.state(ctx, 0, QueueState.LAUNCHED)
        while host.distance(ctx, 0) or host.distance(ctx, 1):
            launched.add((host.peek_state(ctx, 0), host.peek_state(ctx, 1)))
            await ctx.tick()

    host.run(test)
    assert (QueueState.LAUNCHED, QueueState.LAUNCHED) in launched
    programs = [run[LaunchWord.PROGRAM] for run in host.cores.runs]
    assert programs == [0x100, 0x300, 0x100, 0x300, 0x100, 0x300, 0x100, 0x100]
    assert word(host, 0x90) == 9


def test_other_queue_runs_while_a_grid_does() -> None:
    host = CommandBench(NANO, size=0x1000, latency=(1, 8), core_delay=(500, 500))

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=RING, log2=2)
        await host.open(ctx, 1, base=RING2, log2=2)
        await host.submit(ctx, 0, launch())
        await host.state(ctx, 0, QueueState.LAUNCHED)
        await host.submit(ctx, 1, signal(0x90, 1), fence(0xA0, 1))
        await host.drained(ctx, 1)
        assert host.peek_state(ctx, 0) == QueueState.LAUNCHED
        # turned off while it runs: it stops when the packet has finished
        await host.write(ctx, "QUEUE0.CONTROL", enable=0)
        assert host.peek_state(ctx, 0) == QueueState.LAUNCHED
        await host.state(ctx, 0, QueueState.DISABLED)
        assert host.cores.runs[0].reported
        await ctx.tick().repeat(2)
        assert await host.fields(ctx, "QUEUE0.READ_INDEX") == {"index": 0}

    host.run(test)


def test_timestamps() -> None:
    host = CommandBench(NANO, size=0x1000, latency=(3, 3))

    async def test(ctx: Any) -> None:
        low = await host.read(ctx, "CHIP.TIME_LO")
        first = host.bench.cycle
        await ctx.tick().repeat(37)
        again = await host.read(ctx, "CHIP.TIME_LO")
        assert again - low == host.bench.cycle - first
        assert await host.read(ctx, "CHIP.TIME_HI") == 0
        await host.open(ctx, 0, base=RING, log2=2)
        assert await host.read(ctx, "QUEUE0.DOORBELL_TIME_LO") == 0
        before = await host.read(ctx, "CHIP.TIME_LO")
        await host.submit(ctx, 0, fence(0xA0, 1))
        rung = await host.read(ctx, "QUEUE0.DOORBELL_TIME_LO")
        assert before < rung < await host.read(ctx, "CHIP.TIME_LO")
        await host.drained(ctx, 0)
        written = word(host, 0xA8)
        assert rung < written < await host.read(ctx, "CHIP.TIME_LO")
        assert await host.read(ctx, "QUEUE0.DOORBELL_TIME_HI") == 0

    host.run(test)


def test_invalidation_is_told_for_as_long_as_it_takes() -> None:
    """STATUS says so for a number of cycles from the write on."""
    host = CommandBench(NANO, size=0x1000)
    found: list[int] = []

    async def test(ctx: Any) -> None:
        bus, placed = host.dut.bus, host.map["CHIP.INVALIDATE"]
        for wait in range(INVALIDATE_CYCLES + 4):
            ctx.set(bus.write, 1)
            ctx.set(bus.write_address, placed.address)
            ctx.set(bus.write_data, placed.layout.pack(context=1, contents=0))
            await ctx.tick()
            ctx.set(bus.write, 0)
            for _ in range(wait):
                await ctx.tick()
            found.append((await host.fields(ctx, "CHIP.STATUS"))["invalidating"])
            await ctx.tick().repeat(2 * INVALIDATE_CYCLES)

    host.run(test)
    assert found.count(1) == INVALIDATE_CYCLES
    assert found[-1] == 0


def test_reset_request_and_hold() -> None:
    host = CommandBench(NANO, size=0x1000, latency=(3, 3))
    requested: list[int] = []

    async def watch(ctx: Any) -> None:
        while True:
            *_, request = await ctx.tick().sample(host.dut.reset_request)
            requested.append(request)

    async def test(ctx: Any) -> None:
        await host.write(ctx, "CHIP.CONTROL", reset=0)
        assert not any(requested)
        await host.write(ctx, "CHIP.CONTROL", reset=1)
        assert sum(requested) == 1
        ctx.set(host.dut.resetting, 1)
        await ctx.tick()
        assert await host.fields(ctx, "CHIP.STATUS") == {"resetting": 1, "invalidating": 0}
        await host.open(ctx, 0, base=RING, log2=2)
        await host.submit(ctx, 0, NOP)
        await ctx.tick().repeat(100)
        assert host.distance(ctx, 0) == 1
        ctx.set(host.dut.resetting, 0)
        await host.drained(ctx, 0)

    host.bench.add(watch)
    host.run(test)


def test_core_registers() -> None:
    host = CommandBench(DUO, size=0x1000)
    rng = random.Random(3)
    states = [
        {
            "pc": rng.getrandbits(16),
            "running": k & 1,
            "sequencer": rng.randrange(4),
            "load": rng.randrange(4),
            "store": rng.randrange(4),
            "matrix": rng.randrange(4),
            "vector": rng.randrange(4),
            "semaphores": rng.getrandbits(64),
            "counter": rng.getrandbits(32),
            "retired": 0,
        }
        for k in range(6)
    ]

    async def test(ctx: Any) -> None:
        for k, state in enumerate(states):
            ctx.set(host.dut.core_debug[k], state)
        for k in (3, 0, 5, 1, 2, 4):
            await host.write(ctx, "CHIP.CORE_SELECT", core=k)
            s = states[k]
            assert await host.fields(ctx, "CHIP.CORE_PC") == {"pc": s["pc"], "running": s["running"]}
            units = ("sequencer", "load", "store", "matrix", "vector")
            assert await host.fields(ctx, "CHIP.CORE_UNITS") == {u: s[u] for u in units}
            low = await host.read(ctx, "CHIP.CORE_SEMAPHORES_LO")
            assert low | await host.read(ctx, "CHIP.CORE_SEMAPHORES_HI") << 32 == s["semaphores"]
            assert await host.read(ctx, "CHIP.COUNTER") == s["counter"]
        await host.write(ctx, "CHIP.CORE_SELECT", core=6)
        assert await host.read(ctx, "CHIP.CORE_SEMAPHORES_LO") == 0
        total = 0
        for _ in range(20):
            counts = [rng.randrange(6) for _ in states]
            total += sum(counts)
            for k, (state, count) in enumerate(zip(states, counts, strict=True)):
                ctx.set(host.dut.core_debug[k], {**state, "retired": count})
            await ctx.tick()
        for k, state in enumerate(states):
            ctx.set(host.dut.core_debug[k], state)
        await ctx.tick().repeat(5)
        assert await host.read(ctx, "CHIP.PROGRESS") == total

    host.run(test)


def test_latencies() -> None:
    """The numbers in docs/theory/command-processor.md, with a bus of a quarter of a packet."""
    host = CommandBench(preset("edge"), size=0x1000, latency=(32, 32), core_delay=(10, 10))
    begun: list[int] = []

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=RING, log2=3, readback=0x80)
        for packet in (NOP, NOP, launch(), fence(0xA0, 1)):  # the first one fetches translations
            host.put(0, packet)
            begun.append(host.bench.cycle)
            await host.ring(ctx, 0)
            await host.drained(ctx, 0)
            await ctx.tick().repeat(5)

    host.run(test)
    heads = [(cycle, kind) for cycle, kind, _ in host.heads()]
    # Answers reach the processor one cycle later, through the merge in the bench.
    fetched = [cycle + 1 for cycle in host.answers("FETCH")[3::4]]  # the last beat of each packet
    stored = [cycle + 1 for cycle in host.answers("WORD")]
    # From the access to the doorbell register to the fetch on the network.
    fetches = [cycle for cycle, kind in heads if kind == "READ"]
    assert [f - b for f, b in zip(fetches[1:], begun[1:], strict=True)] == [7, 7, 7]
    # From the last beat of the packet to what it does: a read index, a launch message, a fence.
    writes = [cycle for cycle, kind in heads if kind == "WRITE"][1:]
    stored, fetched = stored[1:], fetched[1:]
    message = next(cycle for cycle, kind in heads if kind == "MESSAGE")
    assert (writes[0] - fetched[0], message - fetched[1], writes[2] - fetched[2]) == (9, 6, 7)
    # From the acknowledgement of the fence to the write of the read index.
    assert writes[3] - stored[2] == 5


@pytest.mark.slow  # tests/system/test_launch_timing.py has the number of a whole chip
@pytest.mark.parametrize("readback", [0, 0x80])
def test_launches_back_to_back(readback: int) -> None:
    """The number in docs/theory/command-processor.md: cores that answer after 10 cycles, memory after 32."""
    host = CommandBench(preset("edge"), size=0x1000, latency=(32, 32), core_delay=(10, 10))

    async def test(ctx: Any) -> None:
        await host.open(ctx, 0, base=RING, log2=3, readback=readback)
        for _ in range(8):
            host.put(0, launch())
        await host.ring(ctx, 0)
        await host.drained(ctx, 0)

    host.run(test)
    heads = [cycle for cycle, kind, _ in host.heads() if kind == "MESSAGE"]
    assert [after - before for before, after in pairwise(heads)] == [55] * 7
    assert len(host.memory.reads) == 8  # each packet once
