"""Queue in front of a unit: order kept, semaphores asked once and before the unit sees the command, abort."""

import random
from typing import Any

import pytest

from sley.abi.faults import Unit
from sley.abi.instructions import FORMATS, Op
from sley.hw.core.unit_front import UnitFront
from sley.hw.testing.parameters import rejects
from sley.hw.testing.streams import StreamBench

FLAGS = (FORMATS[Op.LOAD].layout.mask | FORMATS[Op.SET].layout.mask) >> 112
WORDS = 128


def commands(rng: random.Random, count: int, waits: float = 0.5) -> list[dict[str, int]]:
    return [
        {
            "op": rng.choice([Op.LOAD, Op.SET]),
            "pc": index,
            "wait": rng.getrandbits(16) | 1 if rng.random() < waits else 0,
            "signal": rng.getrandbits(16),
            "a": rng.getrandbits(32),
            "b": rng.getrandbits(32),
            "c": rng.getrandbits(32),
            "flags": rng.getrandbits(16) & FLAGS,
        }
        for index in range(count)
    ]


def asks(command: dict[str, int]) -> bool:
    return command["op"] != Op.SET and command["wait"] != 0


@pytest.mark.parametrize(
    ("idle", "grant", "pause"), [(0, 0, 0), (0.6, 0, 0), (0, 0.7, 0), (0, 0, 0.7), (0.4, 0.4, 0.4)]
)
@pytest.mark.parametrize("depth", [2, 5])
def test_order_and_waits(idle: float, grant: float, pause: float, depth: int) -> None:
    items = commands(random.Random(depth), 100)
    bench = StreamBench(UnitFront(Unit.LOAD, depth, WORDS), seed=depth)
    bench.send(bench.dut.i, items, idle=idle)
    waits = bench.receive(bench.dut.wait, sum(map(asks, items)), pause=grant)
    got = bench.receive(bench.dut.o, len(items), pause=pause)
    bench.run()
    assert [{name: int(item[name]) for name in items[0]} for item in got.items] == items
    asking = [(c, cycle) for c, cycle in zip(items, got.cycles, strict=True) if asks(c)]
    assert waits.items == [c["wait"] for c, _ in asking]
    assert all(taken < cycle for taken, (_, cycle) in zip(waits.cycles, asking, strict=True))


@pytest.mark.parametrize("unit", [Unit.LOAD, Unit.STORE, Unit.MATRIX, Unit.VECTOR])
def test_every_bit(unit: Unit) -> None:
    """Of every operation of a unit, whatever it can say in its flags."""
    items = []
    for op in (Op.SET, *(op for op, form in FORMATS.items() if form.unit is unit)):
        flags = FORMATS[op].layout.mask >> 112
        for bit in (1 << k for k in range(16) if flags >> k & 1):
            same = {"pc": WORDS - 1, "wait": 0, "signal": 0x8001, "a": 1, "b": 1 << 31, "c": 3}
            items += [{"op": int(op), "flags": bit, **same}, {"op": int(op), "flags": flags & ~bit, **same}]
    bench = StreamBench(UnitFront(unit, 2, WORDS))
    bench.send(bench.dut.i, items)
    got = bench.receive(bench.dut.o, len(items))
    bench.run()
    assert [{name: int(item[name]) for name in items[0]} for item in got.items] == items


@pytest.mark.parametrize(("waits", "cycles"), [(0, 1), (1, 2)])
def test_throughput_and_latency(waits: float, cycles: int) -> None:
    items = [c | {"op": int(Op.LOAD)} for c in commands(random.Random(1), 40, waits)]
    bench = StreamBench(UnitFront(Unit.LOAD, 8, WORDS))
    sent = bench.send(bench.dut.i, items)
    bench.receive(bench.dut.wait)
    got = bench.receive(bench.dut.o, len(items))
    bench.run()
    assert got.cycles[0] - sent.cycles[0] == 1 + cycles
    assert got.cycles[-1] - got.cycles[0] == cycles * (len(items) - 1)


def test_holds_depth_commands() -> None:
    bench = StreamBench(UnitFront(Unit.LOAD, 4, WORDS), timeout=100)
    items = commands(random.Random(2), 4, waits=1)
    bench.send(bench.dut.i, items)
    bench.run()


@pytest.mark.parametrize("seed", range(4))
def test_abort(seed: int) -> None:
    """Commands before and during an abort are dropped whatever the neighbours do; those after it pass."""
    rng = random.Random(seed)
    dut = UnitFront(Unit.LOAD, 4, WORDS)
    bench = StreamBench(dut)
    fresh = commands(rng, 10)
    fresh[0] |= {"op": int(Op.LOAD), "wait": 5}
    passed: list[int] = []
    waited: list[int] = []

    async def waits(ctx: Any) -> None:
        async for _, _, abort, valid, ready, mask in ctx.tick().sample(
            dut.abort, dut.wait.valid, dut.wait.ready, dut.wait.payload
        ):
            if valid and ready and not abort:
                waited.append(mask)

    async def process(ctx: Any) -> None:
        ctx.set(dut.i.valid, 1)
        for command in commands(rng, 3 + seed, waits=1):
            ctx.set(dut.i.payload, {**command, "op": int(Op.LOAD)})
            _, _, ready = await ctx.tick().sample(dut.i.ready)
            assert ready or seed == 3
        ctx.set(dut.i.valid, 0)
        await ctx.tick()
        assert ctx.get(dut.waiting)
        assert not ctx.get(dut.empty)
        if seed & 1:
            ctx.set(dut.wait.ready, 1)
            await ctx.tick()
            ctx.set(dut.wait.ready, 0)
            assert ctx.get(dut.o.valid)
            assert not ctx.get(dut.waiting)
        ctx.set(dut.abort, 1)
        ctx.set(dut.wait.ready, seed % 2)
        assert not ctx.get(dut.o.valid)
        cycles = 0
        while not ctx.get(dut.empty):
            await ctx.tick()
            cycles += 1
        assert cycles <= 6
        ctx.set(dut.i.valid, 1)
        assert ctx.get(dut.i.ready)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        assert not ctx.get(dut.empty)
        while not ctx.get(dut.empty):
            await ctx.tick()
        ctx.set(dut.abort, 0)
        ctx.set(dut.wait.ready, 1)
        ctx.set(dut.o.ready, 1)
        for command in fresh:
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.payload, command)
            while True:
                _, _, ready, valid, pc = await ctx.tick().sample(dut.i.ready, dut.o.valid, dut.o.payload.pc)
                if valid:
                    passed.append(pc)
                if ready:
                    break
        ctx.set(dut.i.valid, 0)
        while not ctx.get(dut.empty):
            _, _, valid, pc = await ctx.tick().sample(dut.o.valid, dut.o.payload.pc)
            if valid:
                passed.append(pc)

    bench.add(waits)
    bench.add(process, wait=True)
    bench.run()
    assert passed == [c["pc"] for c in fresh]
    masks = [c["wait"] for c in fresh if asks(c)]
    assert waited[len(waited) - len(masks) :] == masks


def test_parameters() -> None:
    with rejects("takes no commands"):
        UnitFront(Unit.SEQUENCER, 4, WORDS)
    with rejects("depth of the LOAD queue is 1"):
        UnitFront(Unit.LOAD, 1, WORDS)
