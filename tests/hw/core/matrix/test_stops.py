"""What stops the matrix unit: signals that nobody takes, abort, and clear between blocks."""

from itertools import product
from typing import Any

import pytest
from matrix_bench import MatrixBench
from matrix_programs import Program

from sley.abi.config import PRESETS
from sley.abi.parameters import Param
from sley.abi.types import OPERAND_TYPES, ElementType
from sley.hw.core.matrix.unit import IN_FLIGHT

NANO = PRESETS["nano"].replace(scratchpad_rows=64, accumulator_rows=32)
WIDE = NANO.replace(operand_types=("int8", "bf16"))


def test_blocked_signals_stop_the_unit_and_lose_nothing() -> None:
    bench = MatrixBench(NANO, 6)
    program = Program(NANO)
    program.weights(0, signal=1)
    for i in range(2 * IN_FLIGHT):
        program.matmul(i, i % 16, 5, signal=i + 1)
        program.weights(i, signal=0x100 + i)
    assert bench.model(program) is None
    bench.play_memories()
    bench.bench.send(bench.dut.command, program.payloads())
    expected = [program.signals(k) for k in range(2)]

    async def release(ctx: Any) -> None:
        await ctx.tick().repeat(600)
        started = len(bench.result.reads) // 5
        assert 0 < started <= IN_FLIGHT + 1
        got: list[list[int]] = [[], []]
        while [len(g) for g in got] != [len(e) for e in expected]:
            for k, port in enumerate(bench.dut.signal):
                ctx.set(port.ready, ctx.get(port.valid))
                if ctx.get(port.valid):
                    got[k].append(ctx.get(port.payload))
            await ctx.tick()
        assert got == expected
        for port in bench.dut.signal:
            ctx.set(port.ready, 0)

    bench.bench.add(release, wait=True)
    bench.bench.run()
    assert (bench.accumulator == bench.state.accumulator).all()


@pytest.mark.some(8)
@pytest.mark.parametrize("types", list(product(OPERAND_TYPES, repeat=2)))
@pytest.mark.parametrize("delay", [1, 9, 30, 55, 90])
def test_abort(delay: int, types: tuple[ElementType, ElementType]) -> None:
    """Whatever is interrupted, a few cycles later the unit is quiet and runs a program as if new."""
    bench = MatrixBench(WIDE, delay, floats="special")
    doomed = Program(WIDE)
    doomed.set(Param.ACT_STRIDE, 3)
    for i in range(6):
        doomed.weights(i, signal=1, dtype=types[0])
        doomed.matmul(i, 0, 2 + i, accumulate=i % 2, signal=2, dtype=types[0])
    doomed.matmul(0, WIDE.accumulator_rows, 1)
    program = Program(WIDE)
    program.weights(8, signal=0x10, dtype=types[1])
    program.matmul(2, 0, WIDE.accumulator_rows, signal=0x20, dtype=types[1])
    assert bench.model(program) is None
    bench.play_memories(weights_denied=0.2)
    dut = bench.dut

    async def send(ctx: Any, payloads: list[dict[str, int]], limit: int) -> None:
        for payload in payloads:
            ctx.set(dut.command.payload, payload)
            ctx.set(dut.command.valid, 1)
            taken = 0
            while not taken and limit:
                _, _, taken = await ctx.tick().sample(dut.command.ready)
                limit -= 1
        ctx.set(dut.command.valid, 0)

    async def process(ctx: Any) -> None:
        await send(ctx, doomed.payloads(), delay)
        ctx.set(dut.abort, 1)
        ctx.set(dut.command.valid, 1)
        for i in range(6):
            for port in dut.signal:
                ctx.set(port.ready, 1)
            assert ctx.get(dut.command.ready)
            if i:
                assert not ctx.get(dut.busy)
                assert not any(ctx.get(port.valid) for port in dut.signal)
                for port in (dut.activations, dut.weights, dut.accumulate_write, dut.fault):
                    assert not ctx.get(port.valid)
            await ctx.tick()
        ctx.set(dut.abort, 0)
        ctx.set(dut.command.valid, 0)
        bench.result.faults.clear()
        await bench.bench.give(ctx, program.payloads())
        got: list[int] = []
        while len(got) < 2:
            _, _, *sampled = await ctx.tick().sample(*(x for p in dut.signal for x in (p.valid, p.payload)))
            got += [payload for valid, payload in zip(sampled[::2], sampled[1::2], strict=True) if valid]
        assert got == [0x10, 0x20]

    bench.bench.add(process, wait=True)
    bench.bench.run()
    assert not bench.result.faults
    assert (bench.accumulator == bench.state.accumulator).all()


def test_clear_resets_the_parameters() -> None:
    bench = MatrixBench(NANO, 9)
    first, second = Program(NANO), Program(NANO)
    for param in (Param.WEIGHT_STRIDE, Param.ACT_STRIDE, Param.ACT_COUNT, Param.ACT_STRIDE2, Param.ACT_COUNT2):
        first.set(param, 2)
    second.weights(1)
    second.matmul(2, 3, 9)
    assert bench.model(second) is None
    bench.play_memories()
    dut = bench.dut

    async def process(ctx: Any) -> None:
        for port in dut.signal:
            ctx.set(port.ready, 1)
        for program in (first, second):
            await bench.bench.clear(ctx)
            await bench.bench.give(ctx, program.payloads())
            await bench.bench.finish(ctx)

    bench.bench.add(process, wait=True)
    bench.bench.run()
    assert (bench.accumulator == bench.state.accumulator).all()
