"""The vector unit against the golden data path, with memories that grant, delay and scramble like the real ones."""

import random
from collections.abc import Callable
from itertools import pairwise, product

import chain_uses
import numpy as np
import pytest
from chain_bench import ChainBench
from vector_bench import COVERAGE, Bench
from vector_commands import outputs, random_flags, random_vector, row_registers, walks
from vector_model import output_space, set_param, vector, vrow

from sley.abi.config import PRESETS
from sley.abi.faults import FaultCode
from sley.abi.instructions import Space, VectorRow
from sley.abi.parameters import Param
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.operations import SHORT_OPS, BinaryOp
from sley.hw.core.vector.reads import READ_PORTS
from sley.hw.core.vector.writes import output_rows
from sley.sim.golden import float32

NANO, EDGE = PRESETS["nano"], PRESETS["edge"]
NANO16 = NANO.replace(operand_types=("int8", "bf16"))
# Those that other benches of chains have: each is compiled once.
CHAINS, CHAINS16 = chain_uses.NANO, chain_uses.NANO16
ONE_LANE, TWO_LANES = NANO.replace(vector_lanes=1), NANO16.replace(vector_lanes=2)


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(NANO, id="int8"),
        pytest.param(NANO16, id="bf16"),
        pytest.param(ONE_LANE, id="int8-1", marks=pytest.mark.slow),
        pytest.param(TWO_LANES, id="bf16-2", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("b_op", SHORT_OPS)
@pytest.mark.parametrize("dtype", WORD_TYPES)
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_every_combination_of_flags(config, b_op, dtype, step):
    """Spaces, halves and relu at random, everything else crossed, on one row each. By default every third one."""
    bench, rng = Bench(config, seed=2 * b_op + dtype), random.Random(b_op)
    types = config.operand_types if dtype == ElementType.FP32 else (ElementType.INT8,)
    commands = []
    crossed = [*product(range(2), range(2), outputs(config), types, types)]
    for bias, scale, out, a_type, b_type in crossed[::step]:
        commands += [] if commands and rng.random() < 0.7 else row_registers(config, rng)
        fixed = {"b_op": b_op, "dtype": dtype, "bias": bias, "scale": scale, "out": out}
        commands += random_vector(config, rng, 1, a_type=a_type, b_type=b_type, **fixed)[-1:]
    bench.run(commands)
    assert not bench.faults


@pytest.mark.some(5)
@pytest.mark.parametrize(
    ("config", "count"),
    [
        pytest.param(NANO, 8, id="nano"),
        pytest.param(NANO16, 12, id="nano-bf16"),
        pytest.param(ONE_LANE, 6, id="one-lane"),
        pytest.param(TWO_LANES, 8, id="two-lanes-bf16"),
        pytest.param(EDGE, 3, id="edge", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("grant", "one_bank"), [(0.6, False), (0.3, True)])
def test_random_commands(config, count, grant, one_bank):
    seed = int(grant * 100) + one_bank
    bench, rng = Bench(config, seed=seed, grant=grant, one_bank=one_bank), random.Random(seed)
    commands = row_registers(config, rng)
    for _ in range(count):
        commands += random_vector(config, rng, rng.choice([1, 5, 13, 35]))
        if rng.random() < 0.3:
            commands += row_registers(config, rng)
    bench.run(commands, idle=0.3, pause=0.5)
    assert not bench.faults


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("config", "grant"), [(NANO, 1.0), (NANO16, 0.5), (NANO16, 1.0), (ONE_LANE, 0.5), (TWO_LANES, 1.0)]
)
def test_in_place(config, grant):
    """The output walks over the rows of A, of B or of both: every row is read before it is written."""
    rng, bench = random.Random(grant), Bench(config, seed=1, grant=grant)
    commands = row_registers(config, rng)
    for index in range(12):
        rows = rng.choice([2, 17, 50])
        is_a, is_b = [(True, False), (False, True), (True, True)][index % 3]
        while True:
            f = random_flags(config, rng)
            space = output_space(f)
            if (not is_a or f["a_space"] == space) and (not is_b or (f["b_op"] and f["b_space"] == space)):
                break
        stride = rng.choice([1, 1, 2, -1])
        out = (rng.randrange(10) if stride > 0 else 59 - rng.randrange(10), stride)
        other = (110, rng.randrange(2) if rows < 18 else 0)  # rows that are not written
        commands += walks(rng, rows, f, out if is_a else other, out if is_b else other, out)
        commands += row_registers(config, rng) if rng.random() < 0.3 else []
    bench.run(commands, idle=0.3)
    assert not bench.faults


@pytest.mark.parametrize("out", [*WORD_TYPES, *NANO16.operand_types])
@pytest.mark.parametrize("b_space", Space)
def test_scaled_sum_of_matrices(b_space, out):
    """relu(alpha * A B + beta * C) from the sums A B and a C in fp32 accumulator rows or bf16 scratchpad rows."""
    bench, rows, n = Bench(NANO16, seed=out, grant=0.7), 30, NANO16.array
    rng = np.random.default_rng(out)
    sums = float32.to_bits(rng.normal(size=(rows, n)))
    c = float32.to_bits(rng.normal(size=(rows, n)))
    alpha, beta = float32.to_bits([1.7, -0.3])
    bench.accumulators[:rows] = sums
    if b_space == Space.ACCUMULATOR:
        bench.accumulators[40 : 40 + rows] = c
        c_type = ElementType.INT8
    else:
        bench.scratchpad[40 : 40 + rows] = float32.to_bf16(c).view(np.int8)
        c, c_type = float32.from_bf16(float32.to_bf16(c)), ElementType.BF16
    bench.model.accumulators[:], bench.model.scratchpad[:] = bench.accumulators, bench.scratchpad
    fp32 = {"dtype": ElementType.FP32}
    accumulators = {"a_space": Space.ACCUMULATOR, "b_space": Space.ACCUMULATOR, **fp32}
    bench.run(
        [
            vrow(int(beta), VectorRow.SCALE, splat=True),
            vector(40, 40, rows, a_space=b_space, a_type=c_type, scale=1, **fp32),
            vrow(int(alpha), VectorRow.SCALE, splat=True),
            vector(0, 0, rows, a_space=Space.ACCUMULATOR, scale=1, **fp32),
            set_param(Param.B_ROW, 40),
            vector(0, 80, rows, b_op=BinaryOp.ADD, relu=1, out=out, **accumulators),
        ],
        pause=0.3,
    )
    expected = float32.relu(float32.add(float32.multiply(sums, alpha), float32.multiply(c, beta)))
    if out == ElementType.FP32:
        assert np.array_equal(bench.accumulators[80 : 80 + rows], expected)
    elif out == ElementType.INT32:
        assert np.array_equal(bench.accumulators[80 : 80 + rows].view(np.int32), float32.to_int32(expected))
    elif out == ElementType.INT8:
        assert np.array_equal(bench.scratchpad[80 : 80 + rows, :n], float32.to_int8(expected))
    else:
        assert np.array_equal(bench.scratchpad[80 : 80 + rows].view(np.uint16), float32.to_bf16(expected))


def test_faults_are_exact():
    """Each fault once and in order, the rows before it written, nothing after it, the unit usable."""
    rows, acc = NANO.scratchpad_rows, NANO.accumulator_rows
    space = {"a_space": Space.ACCUMULATOR}
    add_b = {"b_op": BinaryOp.ADD, "b_space": Space.ACCUMULATOR}
    commands = [
        vector(acc - 3, acc // 2, 5, pc=1, signal=1, **space),  # A leaves at the top in row 3
        set_param(Param.A_STRIDE, -2, pc=2),
        vector(3, 0, 3, pc=3, signal=3, **space),  # A leaves below 0
        vector(rows, 0, 1, pc=4),
        vector(-1, 0, 1, pc=5),
        vector(0x10000, 0, 1, pc=6),
        vector(1 << 15, 0, 1, pc=6),
        set_param(Param.A_STRIDE, 0),
        set_param(Param.B_ROW, acc - 2),
        vector(1, 60, 4, pc=7, **add_b),  # B leaves
        vector(1, acc - 1, 4, pc=8),  # output leaves
        vector(1, rows - 1, 4, pc=9, out=ElementType.INT8),
        vector(1, acc - 2, 4, pc=10, **add_b),  # B and output leave in the same row: B is reported
        set_param(Param.B_ROW, acc),
        vector(acc, acc, 1, pc=11, **space, **add_b),  # all three: A is reported
        vector(7, 0, 1, pc=12, b_op=3),  # nothing is left of the row before
        vector(1, 61, 1, pc=13, b_space=Space.ACCUMULATOR),  # B does not exist and is not used
        vector(1, 2, 1, pc=14, out=ElementType.BF16),
        vector(1, 2, 1, pc=15, a_half=1),
        vector(1, 2, 1, pc=16, b_half=1),
        vector(1, 2, 0, pc=17, out_half=1),
        vector(1, 2, 1, pc=17, a_type=ElementType.BF16, dtype=ElementType.FP32),
        vector(1, 2, 1, pc=17, b_type=ElementType.BF16, dtype=ElementType.FP32),
        vector(1, 2, 0x10000, pc=18, a_half=1),
        vector(1, 2, -1, pc=19),
        vector(-1, -1, 0, pc=20),  # no rows: nothing to complain about
        set_param(Param.B_ROW, 0x10000, pc=21),
        set_param(Param.B_ROW, -1, pc=22),
        set_param(Param.OUT_STRIDE, 0x8000, pc=23),
        set_param(Param.OUT_STRIDE, -0x8001, pc=24),
        set_param(Param.RUN_BYTES, 1, pc=25),
        set_param(255, 1, pc=26),
        vrow(acc, VectorRow.BIAS, pc=27, signal=5),
        vrow(-1, VectorRow.SCALE, pc=28),
        vrow(-1, VectorRow.SCALE, splat=True, pc=29),
        set_param(Param.OUT_STRIDE, -0x8000),
        vector(1, 60, 2, pc=30),
        set_param(Param.OUT_STRIDE, 0x7FFF),
        vector(1, 60, 2, pc=31),
        vector(1, 60, 1, scale=1, bias=1),
    ]
    bench = Bench(NANO, seed=1, grant=0.7)
    bench.run(commands, pause=0.3)
    assert len(bench.faults) == 30


@pytest.mark.parametrize("config", [NANO16, pytest.param(CHAINS16, marks=pytest.mark.slow)], ids=["bf16", "chains"])
def test_every_illegal_combination_with_bf16(config):
    """Every combination of the flags that types of 16 bits depend on: the meaningless ones fault and touch nothing."""
    types = config.vector_types
    wide = [t for t in types if t.bits == 16]
    choices = {"out": (ElementType.FP32, *wide), "dtype": WORD_TYPES, "out_half": range(2)}
    for source in ("a", "b"):
        choices |= {f"{source}_space": range(2), f"{source}_half": range(2), f"{source}_type": types}
    commands = [
        vector(3, 70, 1, pc=index, **dict(zip(choices, values, strict=True)))
        for index, values in enumerate(product(*choices.values()))
    ]
    bench = (ChainBench if config.vector_chains else Bench)(config, seed=1)
    bench.run(commands)
    # A source of 8 bits has 4 settings, one of 16 has 1 if dtype is FP32; out_half can be set where out is a word.
    narrow = 4 * (len(types) - len(wide))
    assert len(commands) - len(bench.faults) == (2 + len(wide)) * (narrow**2 + (narrow + len(wide)) ** 2)
    assert {code for code, _, _ in bench.faults} == {FaultCode.ILLEGAL_INSTRUCTION}


@pytest.mark.parametrize(
    "config",
    [NANO, NANO16, pytest.param(CHAINS, marks=pytest.mark.slow), CHAINS16],
    ids=["int8", "bf16", "chains", "chains-bf16"],
)
def test_types_that_the_chip_does_not_have(config):
    """Every code of every type: those that nobody has, and those that are not for this field, fault."""
    fields = ("dtype", "out", "a_type", "b_type")
    commands = [
        vector(3, 70, 1, pc=16 * index + code, **{"dtype": ElementType.FP32, "out": ElementType.FP32} | {name: code})
        for index, name in enumerate(fields)
        for code in range(16)
    ]
    bench = (ChainBench if config.vector_chains else Bench)(config, seed=1)
    bench.run(commands)
    legal = [len(WORD_TYPES), len(outputs(config)), *[len(config.vector_types)] * 2]
    assert len(commands) - len(bench.faults) == sum(legal)


def test_bf16_rows_that_do_not_exist():
    """The rows of a BF16 output are those of the scratchpad, of which there are more than accumulator rows."""
    rows, out = NANO16.scratchpad_rows, {"dtype": ElementType.FP32, "out": ElementType.BF16}
    bench = Bench(NANO16, grant=0.7)
    bench.run(
        [
            vector(1, rows - 2, 5, pc=1, **out),
            vector(rows - 1, 9, 2, pc=2, a_type=ElementType.BF16, **out),
            vector(1, NANO16.accumulator_rows, 1, pc=3, **out),
        ]
    )
    assert bench.faults == [(FaultCode.LOCAL_ADDRESS, pc, rows) for pc in (1, 2)]


def test_longest_row_count_is_accepted():
    """65535 rows pass the check; here they end at a fault after a few."""
    bench = Bench(NANO)
    bench.run([vector(0, 120, 0xFFFF, pc=9), vector(0, 3, 1)])
    assert bench.faults == [(FaultCode.LOCAL_ADDRESS, 9, 128)]


FP_STEPS = {"dtype": ElementType.FP32, "b_op": BinaryOp.ADD, "bias": 1, "scale": 1, "out": ElementType.INT8}


@pytest.mark.parametrize(
    ("steps", "overhead"),
    [
        ({}, 14),
        ({"a_space": Space.ACCUMULATOR, "bias": 1, "scale": 1, "relu": 1, "out": ElementType.INT8}, 24),
        ({"dtype": ElementType.FP32, "b_op": BinaryOp.MAX}, 15),
        (FP_STEPS, 33),
    ],
)
def test_one_part_of_a_row_per_cycle(steps, overhead):
    for config in (NANO, NANO16, ONE_LANE, TWO_LANES):
        check_cycles(config, steps, overhead)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("steps", "overhead"),
    [
        ({"dtype": ElementType.FP32, "a_type": ElementType.BF16}, 14),
        ({"dtype": ElementType.FP32, "a_type": ElementType.BF16, "out": ElementType.BF16}, 15),
        ({"a_space": Space.ACCUMULATOR, "out": ElementType.BF16}, 18),
        ({"a_space": Space.ACCUMULATOR, "bias": 1, "scale": 1, "relu": 1, "out": ElementType.BF16}, 22),
        (FP_STEPS | {"b_type": ElementType.BF16, "out": ElementType.BF16}, 31),
        (FP_STEPS | {"a_type": ElementType.BF16, "b_type": ElementType.BF16}, 33),
    ],
)
def test_one_part_of_a_row_per_cycle_with_bf16(steps, overhead):
    check_cycles(NANO16, steps, overhead)
    check_cycles(TWO_LANES, steps, overhead)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("steps", "overhead"),
    [
        ({"a_type": ElementType.UINT8}, 14),
        ({"a_type": ElementType.UINT8, "out": ElementType.UINT8}, 14),
        ({"dtype": ElementType.FP32, "a_type": ElementType.UINT8, "out": ElementType.UINT8}, 17),
        ({"dtype": ElementType.FP32, "a_type": ElementType.FP16}, 14),
        ({"dtype": ElementType.FP32, "a_type": ElementType.FP16, "out": ElementType.FP16}, 17),
        ({"a_space": Space.ACCUMULATOR, "out": ElementType.FP16}, 20),
    ],
)
def test_cycles_with_uint8_and_fp16(steps, overhead):
    bench, counts = ChainBench(CHAINS16), [1, 2, 23]
    bench.run([vector(5, 0, rows, **steps) for rows in counts], alone=True)
    assert bench.cycles() == [rows + overhead for rows in counts]


def check_cycles(config, steps, overhead):
    bench, counts = Bench(config), [1, 2, 23]
    sent, signals = bench.run([vector(5, 0, rows, **steps) for rows in counts], alone=True)
    latencies = [s - c for c, s in zip(sent.cycles, signals.cycles, strict=True)]
    assert latencies == [config.row_parts * rows + overhead for rows in counts]
    assert bench.bench.busy_cycles == sum(latencies)


def test_operands_in_one_bank_take_two_cycles_per_row():
    bench = Bench(NANO, one_bank=True)
    sent, signals = bench.run([vector(5, 0, 50, b_op=BinaryOp.ADD)])
    assert signals.cycles[0] - sent.cycles[0] == 100 + 14


@pytest.mark.parametrize(("config", "vrow_cycles"), [(NANO, 9), (ONE_LANE, 12), (TWO_LANES, 10)])
def test_short_commands(config, vrow_cycles):
    """Cycles of each, alone, and of commands without rows behind each other."""
    bench = Bench(config)
    commands = [set_param(Param.B_ROW, 1), vrow(5, 0), vrow(5, 1, splat=True), vector(0, 0, 0), set_param(99, 0)]
    sent, signals = bench.run(commands, alone=True)
    assert [s - c for c, s in zip(sent.cycles, signals.cycles, strict=True)] == [3, vrow_cycles, vrow_cycles, 3, 4]
    bench = Bench(config)
    sent, signals = bench.run([set_param(Param.B_ROW, 1), vector(0, 0, 0)] * 5)
    assert [b - a for a, b in pairwise(sent.cycles)] == [2] * 9
    assert [s - c for c, s in zip(sent.cycles, signals.cycles, strict=True)] == [3] * 10


@pytest.mark.parametrize("config", [NANO, ONE_LANE], ids=["four-lanes", "one-lane"])
def test_results_wait_for_the_write_port(config):
    """While nothing is granted to the writer, reads stop when the queue has no place, and nothing is lost."""
    bench = Bench(config)
    bench.hold_writes, reads = True, []
    read = bench.dut.scratchpad_read_a

    async def hold(ctx):
        for _ in range(150):
            _, _, granted = await ctx.tick().sample(read.valid & read.ready)
            reads.append(granted)
        bench.hold_writes = False

    bench.bench.add(hold, wait=True)
    bench.run([vector(3, 2, 100, bias=1, scale=1)])
    assert sum(reads) == output_rows(config) * config.row_parts


@pytest.mark.parametrize(
    ("config", "cycles"), [(NANO, 0), (NANO, 1), (NANO, 20), (NANO, 40), (ONE_LANE, 21), (ONE_LANE, 34), (ONE_LANE, 47)]
)
def test_abort(config, cycles):
    """Abort at any time: no signal, and no read or write but in its first cycle; then as ever."""
    bench = Bench(config, seed=cycles, grant=0.8)
    dut = bench.dut
    rng = random.Random(cycles)
    later = [*row_registers(config, rng), *random_vector(config, rng, 20), vector(0, 100, 3, signal=9)]
    lasts = rng.choice((2, 12))
    accepted = []

    async def process(ctx):
        await bench.bench.give(ctx, [set_param(Param.A_STRIDE, 0)])
        ctx.set(dut.signal[0].ready, 1)
        await ctx.tick().repeat(4)
        ctx.set(dut.signal[0].ready, 0)
        await bench.bench.give(ctx, [vector(5, 64, 20, signal=3, **FP_STEPS)])
        for _ in range(cycles):
            await ctx.tick()
        ctx.set(dut.abort, 1)
        for cycle in range(lasts):
            ctx.set(dut.command.payload, vector(5, 64, 20, signal=3))
            ctx.set(dut.command.valid, 1)
            _, _, ready, *offers = await ctx.tick().sample(
                dut.command.ready,
                *(
                    port.valid
                    for port in (
                        dut.signal[0],
                        *(getattr(dut, name) for name in (*READ_PORTS, "scratchpad_write", "accumulator_write")),
                    )
                    if cycle > 0
                ),
            )
            assert not any(offers)
            accepted.append(ready)
        ctx.set(dut.command.valid, 0)
        assert not ctx.get(dut.busy)
        ctx.set(dut.abort, 0)
        await bench.bench.clear(ctx)
        bench.model.scratchpad[:] = bench.scratchpad
        bench.model.accumulators[:] = bench.accumulators
        got = []
        for c in later:
            await bench.bench.give(ctx, [c])
            ctx.set(dut.signal[0].ready, 1)
            while True:
                _, _, valid, payload = await ctx.tick().sample(dut.signal[0].valid, dut.signal[0].payload)
                if valid:
                    got.append(payload)
                    break
            ctx.set(dut.signal[0].ready, 0)
        assert got == [c["signal"] for c in later]

    bench.bench.add(process, wait=True)
    bench.bench.run()
    assert accepted[1:] == [1] * (lasts - 1)  # every command offered during the abort was dropped
    for c in later:
        bench.model.execute(c)
    bench.compare()


@pytest.mark.parametrize("config", [NANO, ONE_LANE], ids=["four-lanes", "one-lane"])
def test_clear(config):
    """Parameters and row registers, which are a memory if lanes are few, start every block afresh."""
    bench = Bench(config)

    async def clear(ctx):
        await ctx.tick().repeat(40)
        await bench.bench.clear(ctx)

    bench.bench.add(clear)
    before = [vrow(9, 0), vrow(8, 1), set_param(Param.A_STRIDE, 5), set_param(Param.OUT_STRIDE, 2)]
    after = [vector(5, 64, 3, bias=1), vector(5, 90, 3, scale=1), vector(4, 100, 3, bias=1, out=ElementType.INT8)]

    def commands():
        yield from before
        for _ in range(30):
            yield set_param(99, 0)
        yield from after

    n = len(before) + 30 + len(after)
    bench.bench.send(bench.dut.command, commands())
    bench.bench.receive(bench.dut.signal[0], n)
    bench.bench.run()
    for c in after:
        bench.model.execute(c)
    bench.faults.clear()
    bench.compare()


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
