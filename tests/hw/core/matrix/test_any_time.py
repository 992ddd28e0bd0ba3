"""The matrix unit and its twin under anything at any time: bad commands, denied reads, late signals, abort, clear."""

import random
from collections import Counter
from typing import Any

import pytest
from matrix_programs import Program

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.parameters import Param
from sley.abi.types import ElementType
from sley.hw.core.matrix.unit import MatrixUnit
from sley.hw.testing.streams import compiled
from sley.hw.testing.unit import UnitBench

NANO = PRESETS["nano"].replace(scratchpad_rows=64, accumulator_rows=32)
WIDE = NANO.replace(operand_types=("int8", "bf16"))
STRIDES = (Param.WEIGHT_STRIDE, Param.ACT_STRIDE, Param.ACT_STRIDE2, Param.ACT_STRIDE3)
COUNTS = (Param.ACT_COUNT, Param.ACT_COUNT2)


def command(rng: random.Random, config: ChipConfig, dtype: int) -> dict[str, int]:
    """Good ones mostly."""
    program, signal, n = Program(config), rng.getrandbits(16), config.array
    row = rng.choice([*[rng.randrange(32)] * 8, rng.randrange(config.scratchpad_rows), rng.getrandbits(32)])
    kind = rng.random()
    if kind < 0.35:
        rows = rng.choice([n, n, n, n - 1, 1, rng.randrange(n + 2)])
        program.weights(row, rows, dtype=dtype, signal=signal)
    elif kind < 0.85:
        dest = rng.choice([0, 1, 5, rng.randrange(config.accumulator_rows + 1)])
        rows = rng.choice([0, 0, 1, 1, 1, 2, 2, 3, n, n + 1, 9, 20, rng.getrandbits(rng.choice([3, 5, 18]))])
        program.matmul(row, dest, rows, accumulate=rng.randrange(2), dtype=dtype, signal=signal)
    elif kind < 0.95:
        program.set(rng.choice(STRIDES), rng.choice([0, 1, 1, 2, -1, 3]) & 0xFFFFFFFF)
    else:
        program.set(rng.choice([*COUNTS, rng.randrange(256)]), rng.choice([0, 0, 1, 2, 3, 1 << 16]))
    return program.payloads()[0] | {"pc": rng.getrandbits(8)}


@pytest.mark.some(1)
@pytest.mark.parametrize("config", [NANO, WIDE], ids=["int8", "both"])
def test_any_time(config: ChipConfig) -> None:
    rng, met = random.Random(7), Counter[str]()
    bench = UnitBench(compiled(MatrixUnit, config), timeout=2_500)
    dut = bench.dut

    async def process(ctx: Any) -> None:
        dtype, waiting, aborts = 0, False, 0
        for _ in range(20):
            idle, denied, late, abort = (rng.choice(rates) for rates in ((0, 0.4, 0.9), (0, 0.3), (0, 0.5), (0, 0.02)))
            for _ in range(100):
                if not waiting and rng.random() >= idle:
                    dtype = rng.choice([*config.operand_types, *[dtype] * 6])
                    bad = rng.random() < 0.02
                    ctx.set(dut.command.payload, command(rng, config, ElementType.FP32 if bad else dtype))
                    waiting = True
                aborts = max(0, aborts - 1) if rng.random() >= abort else rng.choice([1, 2, 9])
                clear = not (waiting or ctx.get(dut.busy)) and rng.random() < 0.1
                ctx.set(dut.command.valid, waiting)
                ctx.set(dut.abort, aborts > 0)
                ctx.set(dut.clear, clear)
                for port in (dut.activations, dut.weights):
                    ctx.set(port.ready, rng.random() >= denied)
                for port in dut.signal:
                    ctx.set(port.ready, rng.random() >= late)
                _, _, taken, busy, rows = await ctx.tick().sample(dut.command.ready, dut.busy, dut.rows)
                met.update(aborted=busy and aborts > 0, cleared=clear, rows=rows, commands=waiting and taken)
                waiting = waiting and not taken

    bench.add(process, wait=True)
    bench.run()
    assert min(met["aborted"], met["cleared"], met["rows"] - 100, met["commands"] - 200) > 0, met
    assert len({code for code, *_ in bench.faults}) == 3
