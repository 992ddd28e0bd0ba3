"""The vector unit against the golden data path, with memories that grant, delay and scramble like the real ones."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import (
    FLAGS_LSB,
    FORMATS,
    BinaryOp,
    NumberType,
    Op,
    OperandType,
    Param,
    Space,
    VectorOutput,
    VectorRow,
)
from sley.hw.core.sram import READ_LATENCY
from sley.hw.core.vector import VectorUnit
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.streams import StreamBench, compiled
from sley.sim.golden import float32
from sley.sim.golden.vector import vector_op

NANO, EDGE = PRESETS["nano"], PRESETS["edge"]
NANO16 = NANO.replace(bf16=True)
ONE_LANE, TWO_LANES = NANO.replace(vector_lanes=1), NANO16.replace(vector_lanes=2)
SPECIAL = [
    *(0, 1, 0x80000000, 0x007FFFFF, 0x00800000, 0x3F000000, 0x3F800000, 0xBFC00000, 0x4EFFFFFF, 0x4F000000),
    *(0xCF000000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF),
]


NONE_BF16 = [out for out in VectorOutput if out != VectorOutput.BF16]
COVERAGE = Coverage(
    "Vector",
    {
        "operation": [(b_op.name, t.name, out.name) for b_op in BinaryOp for t in NumberType for out in NONE_BF16],
        "operation to bf16": [b_op.name for b_op in BinaryOp],
        "A from, B from": list(product([space.name for space in Space], repeat=2)),
        "steps": list(product(["", "bias"], ["", "scale"], ["", "relu"])),
        "operand types": list(product([t.name for t in OperandType], repeat=2)),
        "rows": ["none", "one", "some", "more than 32"],
        "fault": ["LOCAL_ADDRESS", "BAD_PARAMETER", "ILLEGAL_INSTRUCTION"],
    },
)


def count_command(config: ChipConfig, command: dict) -> None:
    """What a VECTOR that runs to its end consists of."""
    f = FORMATS[Op.VECTOR].layout.unpack(command["flags"] << FLAGS_LSB)
    b_op, kind, out = BinaryOp(f["b_op"]), NumberType(f["dtype"]), VectorOutput(f["out"])
    if out == VectorOutput.BF16:
        COVERAGE.hit("operation to bf16", b_op.name)
    else:
        COVERAGE.hit("operation", (b_op.name, kind.name, out.name))
    COVERAGE.hit("A from, B from", (Space(f["a_space"]).name, Space(f["b_space"]).name))
    COVERAGE.hit("steps", tuple(name if f[name] else "" for name in ("bias", "scale", "relu")))
    COVERAGE.hit("operand types", (OperandType(f["a_type"]).name, OperandType(f["b_type"]).name))
    rows = command["c"]
    COVERAGE.hit("rows", "more than 32" if rows > 32 else {0: "none", 1: "one"}.get(rows, "some"))


def flags(op: Op, **fields: int) -> int:
    return FORMATS[op].layout.pack(**fields) >> FLAGS_LSB


def command(op: Op, flags: int, *, a: int = 0, b: int = 0, c: int = 0, pc: int = 0, signal: int = 0) -> dict:
    mask = 0xFFFFFFFF
    return {"op": op, "pc": pc, "signal": signal, "a": a & mask, "b": b & mask, "c": c & mask, "flags": flags}


def vector(a: int, b: int, c: int, pc: int = 0, signal: int = 0, **fields: int) -> dict:
    return command(Op.VECTOR, flags(Op.VECTOR, **fields), a=a, b=b, c=c, pc=pc, signal=signal)


def vrow(a: int, row: VectorRow, *, splat: bool = False, pc: int = 0, signal: int = 0) -> dict:
    return command(Op.VROW, flags(Op.VROW, row=row, splat=splat), a=a, pc=pc, signal=signal)


def set_param(param: int, value: int, *, pc: int = 0, signal: int = 0) -> dict:
    return command(Op.SET, int(param) | Unit.VECTOR << 8, a=value, pc=pc, signal=signal)


def is_legal(config: ChipConfig, f: dict[str, int]) -> bool:
    if not config.bf16:
        absent = ("a_half", "b_half", "out_half", "a_type", "b_type")
        return f["b_op"] < 3 and f["out"] < 3 and not any(f[name] for name in absent)
    a_is_wrong = f["a_type"] and (f["a_space"] or f["a_half"] or not f["dtype"])
    b_is_wrong = f["b_type"] and (f["b_space"] or f["b_half"] or not f["dtype"])
    return not (a_is_wrong or b_is_wrong or f["b_op"] == 3 or (f["out"] == 3 and f["out_half"]))


def output_space(f: dict[str, int]) -> Space:
    return Space.SCRATCHPAD if f["out"] in (VectorOutput.INT8, VectorOutput.BF16) else Space.ACCUMULATOR


@dataclass
class Model:
    """The unit's architectural state, and what its commands do to it."""

    config: ChipConfig
    scratchpad: np.ndarray
    accumulators: np.ndarray
    params: dict[Param, int] = field(default_factory=dict)
    rows: dict[int, np.ndarray] = field(default_factory=dict)
    faults: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clear()

    @classmethod
    def random(cls, config: ChipConfig, rng: np.random.Generator) -> "Model":
        words = rng.integers(0, 1 << 32, (config.accumulator_rows, config.array), np.uint64).astype(np.uint32)
        kind = rng.integers(0, 5, words.shape)
        words = np.where(kind == 1, rng.choice(np.array(SPECIAL, np.uint32), words.shape), words)
        words = np.where(kind == 2, rng.integers(-300, 300, words.shape).astype(np.int32).view(np.uint32), words)
        small = rng.integers(-600, 600, words.shape).astype(np.float32) / 4
        words = np.where(kind == 3, small.view(np.uint32), words)
        words = np.where(kind == 4, words & np.uint32(0xFFFF0000) | np.uint32(0x8000), words)  # between two bf16
        scratchpad = rng.integers(-128, 128, (config.scratchpad_rows, config.row_bytes)).astype(np.int8)
        if config.bf16:
            lanes = scratchpad.view(np.uint16)
            kind = rng.integers(0, 3, lanes.shape)
            lanes[:] = np.where(kind == 1, rng.choice(np.array(SPECIAL, np.uint32) >> 16, lanes.shape), lanes)
            small = rng.integers(-300, 300, lanes.shape).astype(np.float32) / 4
            lanes[:] = np.where(kind == 2, small.view(np.uint32) >> 16, lanes)
        return cls(config, scratchpad, words)

    def clear(self) -> None:
        self.params = {Param.A_STRIDE: 1, Param.B_ROW: 0, Param.B_STRIDE: 1, Param.OUT_STRIDE: 1}
        self.rows = {r: np.zeros(self.config.array, np.uint32) for r in VectorRow}

    def execute(self, command: dict) -> None:
        fault = {
            Op.SET: self._set,
            Op.VROW: self._vrow,
            Op.VECTOR: self._vector,
        }[command["op"]](command)
        if fault:
            code, address = fault
            self.faults.append((code, command["pc"], address & 0xFFFFFFFF))

    def _set(self, command: dict) -> tuple[int, int] | None:
        param = command["flags"] & 0xFF
        signed = command["a"] - (command["a"] >> 31 << 32)
        low, high = (0, 0xFFFF) if param == Param.B_ROW else (-0x8000, 0x7FFF)
        if param not in self.params or not low <= signed <= high:
            return FaultCode.BAD_PARAMETER, param
        self.params[Param(param)] = signed
        return None

    def _vrow(self, command: dict) -> tuple[int, int] | None:
        row, splat = command["flags"] & 1, command["flags"] >> 1 & 1
        if splat:
            self.rows[row] = np.full(self.config.array, command["a"], np.uint32)
        elif command["a"] >= self.config.accumulator_rows:
            return FaultCode.LOCAL_ADDRESS, command["a"]
        else:
            self.rows[row] = self.accumulators[command["a"]].copy()
        return None

    def _vector(self, command: dict) -> tuple[int, int] | None:
        f = FORMATS[Op.VECTOR].layout.unpack(command["flags"] << FLAGS_LSB)
        if command["c"] > 0xFFFF:
            return FaultCode.BAD_PARAMETER, command["c"]
        if not is_legal(self.config, f):
            return FaultCode.ILLEGAL_INSTRUCTION, 0
        a, b, out = command["a"], self.params[Param.B_ROW], command["b"]
        out_space = output_space(f)
        for _ in range(command["c"]):
            for row, space, used in (
                (a, f["a_space"], True),
                (b, f["b_space"], f["b_op"] != BinaryOp.NONE),
                (out, out_space, True),
            ):
                if used and not 0 <= row < self._limit(space):
                    return FaultCode.LOCAL_ADDRESS, row
            result = vector_op(
                self._read(a, f["a_space"], f["a_half"], f["a_type"]),
                self._read(b, f["b_space"], f["b_half"], f["b_type"]) if f["b_op"] else None,
                b_op=f["b_op"],
                dtype=f["dtype"],
                bias=self.rows[VectorRow.BIAS] if f["bias"] else None,
                scale=self.rows[VectorRow.SCALE] if f["scale"] else None,
                relu=bool(f["relu"]),
                out=f["out"],
            )[0]
            if out_space == Space.ACCUMULATOR:
                self.accumulators[out] = result
            elif f["out"] == VectorOutput.BF16:
                self.scratchpad[out] = result.view(np.int8)
            else:
                n = self.config.array
                self.scratchpad[out, f["out_half"] * n : (f["out_half"] + 1) * n] = result
            a += self.params[Param.A_STRIDE]
            b += self.params[Param.B_STRIDE]
            out += self.params[Param.OUT_STRIDE]
        return None

    def _limit(self, space: int) -> int:
        return self.config.accumulator_rows if space == Space.ACCUMULATOR else self.config.scratchpad_rows

    def _read(self, row: int, space: int, half: int, kind: int) -> np.ndarray:
        if space == Space.ACCUMULATOR:
            return self.accumulators[None, row]
        if kind == OperandType.BF16:
            return self.scratchpad[None, row].view(np.uint16)
        n = self.config.array
        return self.scratchpad[None, row, half * n : (half + 1) * n]


class Bench:
    """The unit between a command stream, a signal stream and two memories, and the model beside it."""

    def __init__(self, config: ChipConfig, *, seed: int = 0, grant: float = 1.0, one_bank: bool = False) -> None:
        self.config, self.grant, self.one_bank = config, grant, one_bank
        self.rng = random.Random(seed)
        self.model = Model.random(config, np.random.default_rng(seed))
        self.scratchpad = self.model.scratchpad.copy()
        self.accumulators = self.model.accumulators.copy()
        self.bench = StreamBench(compiled(VectorUnit, config), seed=seed, timeout=20_000)
        self.dut = self.bench.dut
        self.faults: list[tuple[int, int, int]] = []
        self.busy_cycles = 0
        self.hold_writes = False
        for memory, names in (
            (self.scratchpad, ("scratchpad_read_a", "scratchpad_read_b", "scratchpad_write")),
            (self.accumulators, ("accumulator_read_a", "accumulator_read_b", "accumulator_write")),
        ):
            self.bench.add(self._memory(memory, *(getattr(self.dut, name) for name in names)))
        self.bench.add(self._watch)

    def _memory(self, memory: np.ndarray, read_a, read_b, write):
        row_bits = memory[0].nbytes * 8

        async def process(ctx):
            arriving = [[None] * (READ_LATENCY - 1) for _ in range(2)]
            while True:
                ready = [self.rng.random() < self.grant for _ in range(3)]
                ready[2] = ready[2] and not self.hold_writes
                if self.one_bank:
                    ready[1] = ready[1] and not ctx.get(read_a.valid)
                for port, value in zip((read_a, read_b, write), ready, strict=True):
                    ctx.set(port.ready, value)
                _, _, valid_a, valid_b, valid_w, row_a, row_b, row_w, data, enable = await ctx.tick().sample(
                    *(read_a.valid, read_b.valid, write.valid),
                    *(read_a.row, read_b.row, write.row),
                    *(write.data, write.enable),
                )
                for port, granted, row, queue in zip(
                    (read_a, read_b),
                    (valid_a and ready[0], valid_b and ready[1]),
                    (row_a, row_b),
                    arriving,
                    strict=True,
                ):
                    queue.append(int.from_bytes(memory[row].tobytes(), "little") if granted else None)
                    word = queue.pop(0)
                    ctx.set(port.data, self.rng.getrandbits(row_bits) if word is None else word)
                if valid_w and ready[2]:
                    granule = row_bits // 8 // len(write.enable)
                    old, new = memory[row_w].tobytes(), data.to_bytes(row_bits // 8, "little")
                    mixed = b"".join(
                        (new if enable >> g & 1 else old)[g * granule : (g + 1) * granule]
                        for g in range(len(write.enable))
                    )
                    memory[row_w] = np.frombuffer(mixed, memory.dtype)

        return process

    async def _watch(self, ctx):
        while True:
            _, _, fault, busy = await ctx.tick().sample(self.dut.fault, self.dut.busy)
            self.busy_cycles += busy
            if fault.valid:
                self.faults.append((int(fault.code), int(fault.pc), int(fault.address)))

    def run(self, commands: list[dict], *, idle: float = 0.0, pause: float = 0.0):
        """Runs the commands on both and compares. Returns what passed the command and signal streams."""
        sent = self.bench.send(self.dut.command, commands, idle=idle)
        signals = self.bench.receive(self.dut.signal[0], len(commands), pause=pause)
        self.bench.run()
        for c in commands:
            self.model.execute(c)
        assert signals.items == [c["signal"] for c in commands]
        self.compare()
        faulty = {pc for _, pc, _ in self.faults}
        for code, *_ in self.faults:
            COVERAGE.hit("fault", FaultCode(code).name)
        for c in commands:
            if c["op"] is Op.VECTOR and c["pc"] not in faulty:
                count_command(self.config, c)
        return sent, signals

    def compare(self) -> None:
        assert self.faults == self.model.faults
        for name in ("scratchpad", "accumulators"):
            got, expected = getattr(self, name), getattr(self.model, name)
            where = np.argwhere(got != expected)
            assert not len(where), f"{name} differs at {where[:5].tolist()}"


def random_flags(config: ChipConfig, rng: random.Random, **fixed: int) -> dict[str, int]:
    """Flags that mean something on the chip."""
    names = ["a_space", "b_space", "dtype", "bias", "scale", "relu"]
    if config.bf16:
        names += ["a_half", "b_half", "out_half", "a_type", "b_type"]
    while True:
        f = dict.fromkeys(FORMATS[Op.VECTOR].flags, 0)
        f |= {name: rng.randrange(2) for name in names}
        f |= {"b_op": rng.choice(list(BinaryOp)), "out": rng.choice(outputs(config))} | fixed
        if is_legal(config, f):
            return f


def outputs(config: ChipConfig) -> list[VectorOutput]:
    return [out for out in VectorOutput if config.bf16 or out != VectorOutput.BF16]


def random_vector(config: ChipConfig, rng: random.Random, rows: int, **fixed: int) -> list[dict]:
    """A VECTOR that reads the lower half of the memories and writes the upper half, with its SETs."""
    f = random_flags(config, rng, **fixed)

    def walk(space: int, upper: bool) -> tuple[int, int]:
        half = (config.accumulator_rows if space == Space.ACCUMULATOR else config.scratchpad_rows) // 2
        stride = rng.choice([0, 1, 1, 1, -1, 3, -2, half // rows])
        span = stride * (rows - 1)
        if abs(span) >= half:
            stride, span = 1, rows - 1
        first = rng.randrange(max(0, -span), min(half, half - span))
        return first + (half if upper else 0), stride

    return walks(rng, rows, f, walk(f["a_space"], False), walk(f["b_space"], False), walk(output_space(f), True))


def walks(
    rng: random.Random, rows: int, f: dict[str, int], a: tuple[int, int], b: tuple[int, int], out: tuple[int, int]
) -> list[dict]:
    """A VECTOR with its SETs; A, B and output as pairs of first row and stride."""
    return [
        set_param(Param.A_STRIDE, a[1]),
        set_param(Param.B_ROW, b[0]),
        set_param(Param.B_STRIDE, b[1]),
        set_param(Param.OUT_STRIDE, out[1]),
        vector(a[0], out[0], rows, pc=rng.randrange(1 << 16), signal=rng.randrange(1 << 16), **f),
    ]


def row_registers(config: ChipConfig, rng: random.Random) -> list[dict]:
    scale = int(np.float32(rng.uniform(-2, 2)).view(np.uint32))
    return [
        vrow(rng.randrange(config.accumulator_rows // 2), VectorRow.BIAS),
        rng.choice(
            [
                vrow(scale, VectorRow.SCALE, splat=True, signal=7),
                vrow(rng.randrange(config.accumulator_rows // 2), VectorRow.SCALE),
            ]
        ),
    ]


@pytest.mark.parametrize("config", [NANO, NANO16, ONE_LANE, TWO_LANES], ids=["int8", "bf16", "int8-1", "bf16-2"])
@pytest.mark.parametrize("b_op", BinaryOp)
@pytest.mark.parametrize("dtype", NumberType)
def test_every_combination_of_flags(config, b_op, dtype):
    """Spaces, halves and relu at random, everything else crossed, on one row each."""
    bench, rng = Bench(config, seed=2 * b_op + dtype), random.Random(b_op)
    types = range(2 if config.bf16 and dtype == NumberType.FP32 else 1)
    commands = []
    for bias, scale, out, a_type, b_type in product(range(2), range(2), outputs(config), types, types):
        commands += [] if commands and rng.random() < 0.7 else row_registers(config, rng)
        fixed = {"b_op": b_op, "dtype": dtype, "bias": bias, "scale": scale, "out": out}
        commands += random_vector(config, rng, 1, a_type=a_type, b_type=b_type, **fixed)[-1:]
    bench.run(commands)
    assert not bench.faults


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


@pytest.mark.parametrize("out", VectorOutput)
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
        c_type = OperandType.INT8
    else:
        bench.scratchpad[40 : 40 + rows] = float32.to_bf16(c).view(np.int8)
        c, c_type = float32.from_bf16(float32.to_bf16(c)), OperandType.BF16
    bench.model.accumulators[:], bench.model.scratchpad[:] = bench.accumulators, bench.scratchpad
    fp32 = {"dtype": NumberType.FP32}
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
    if out == VectorOutput.WORD:
        assert np.array_equal(bench.accumulators[80 : 80 + rows], expected)
    elif out == VectorOutput.INT32:
        assert np.array_equal(bench.accumulators[80 : 80 + rows].view(np.int32), float32.to_int32(expected))
    elif out == VectorOutput.INT8:
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
        vector(1, rows - 1, 4, pc=9, out=VectorOutput.INT8),
        vector(1, acc - 2, 4, pc=10, **add_b),  # B and output leave in the same row: B is reported
        set_param(Param.B_ROW, acc),
        vector(acc, acc, 1, pc=11, **space, **add_b),  # all three: A is reported
        vector(1, 61, 1, pc=12, b_space=Space.ACCUMULATOR),  # B does not exist and is not used
        command(Op.VECTOR, flags(Op.VECTOR) | 3 << 2, c=1, pc=13),  # b_op = 3
        vector(1, 2, 1, pc=14, out=VectorOutput.BF16),
        vector(1, 2, 1, pc=15, a_half=1),
        vector(1, 2, 1, pc=16, b_half=1),
        vector(1, 2, 0, pc=17, out_half=1),
        vector(1, 2, 1, pc=17, a_type=OperandType.BF16, dtype=NumberType.FP32),
        vector(1, 2, 1, pc=17, b_type=OperandType.BF16, dtype=NumberType.FP32),
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
    assert FORMATS[Op.VECTOR].layout.fields["b_op"].lsb == FLAGS_LSB + 2
    bench.run(commands, pause=0.3)
    assert len(bench.faults) == 30


def test_every_illegal_combination_with_bf16():
    """Every combination of the flags that bf16 depends on: the meaningless ones fault and touch nothing."""
    names = ("a_space", "a_half", "a_type", "b_space", "b_half", "b_type", "dtype", "out_half")
    commands = [
        vector(3, 70, 1, pc=index, out=out, **dict(zip(names, values, strict=True)))
        for index, (out, *values) in enumerate(product((VectorOutput.WORD, VectorOutput.BF16), *[range(2)] * 8))
    ]
    bench = Bench(NANO16, seed=1)
    bench.run(commands)
    # Of the 8 settings of a source 4 have no bf16, and 1 of the others is legal if dtype is FP32; out_half: 3 of 4.
    assert len(commands) - len(bench.faults) == 3 * (4 * 4 + 5 * 5)
    assert {code for code, _, _ in bench.faults} == {FaultCode.ILLEGAL_INSTRUCTION}


def test_bf16_rows_that_do_not_exist():
    """The rows of a BF16 output are those of the scratchpad, of which there are more than accumulator rows."""
    rows, out = NANO16.scratchpad_rows, {"dtype": NumberType.FP32, "out": VectorOutput.BF16}
    bench = Bench(NANO16, grant=0.7)
    bench.run(
        [
            vector(1, rows - 2, 5, pc=1, **out),
            vector(rows - 1, 9, 2, pc=2, a_type=OperandType.BF16, **out),
            vector(1, NANO16.accumulator_rows, 1, pc=3, **out),
        ]
    )
    assert bench.faults == [(FaultCode.LOCAL_ADDRESS, pc, rows) for pc in (1, 2)]


def test_longest_row_count_is_accepted():
    """65535 rows pass the check; here they end at a fault after a few."""
    bench = Bench(NANO)
    bench.run([vector(0, 120, 0xFFFF, pc=9), vector(0, 3, 1)])
    assert bench.faults == [(FaultCode.LOCAL_ADDRESS, 9, 128)]


FP_STEPS = {"dtype": NumberType.FP32, "b_op": BinaryOp.ADD, "bias": 1, "scale": 1, "out": VectorOutput.INT8}


@pytest.mark.parametrize(
    ("steps", "overhead"),
    [
        ({}, 14),
        ({"a_space": Space.ACCUMULATOR, "bias": 1, "scale": 1, "relu": 1, "out": VectorOutput.INT8}, 24),
        ({"dtype": NumberType.FP32, "b_op": BinaryOp.MAX}, 15),
        (FP_STEPS, 33),
    ],
)
def test_one_part_of_a_row_per_cycle(steps, overhead):
    for config in (NANO, NANO16, ONE_LANE, TWO_LANES):
        check_cycles(config, steps, overhead)


@pytest.mark.parametrize(
    ("steps", "overhead"),
    [
        ({"dtype": NumberType.FP32, "a_type": OperandType.BF16}, 14),
        ({"dtype": NumberType.FP32, "a_type": OperandType.BF16, "out": VectorOutput.BF16}, 15),
        ({"a_space": Space.ACCUMULATOR, "out": VectorOutput.BF16}, 18),
        ({"a_space": Space.ACCUMULATOR, "bias": 1, "scale": 1, "relu": 1, "out": VectorOutput.BF16}, 22),
        (FP_STEPS | {"b_type": OperandType.BF16, "out": VectorOutput.BF16}, 31),
        (FP_STEPS | {"a_type": OperandType.BF16, "b_type": OperandType.BF16}, 33),
    ],
)
def test_one_part_of_a_row_per_cycle_with_bf16(steps, overhead):
    check_cycles(NANO16, steps, overhead)
    check_cycles(TWO_LANES, steps, overhead)


def check_cycles(config, steps, overhead):
    bench, counts = Bench(config), [1, 2, 61]
    sent, signals = bench.run([vector(5, 0, rows, **steps) for rows in counts])
    latencies = [s - c for c, s in zip(sent.cycles, signals.cycles, strict=True)]
    assert latencies == [config.row_parts * rows + overhead for rows in counts]
    assert bench.busy_cycles == sum(latencies)


def test_operands_in_one_bank_take_two_cycles_per_row():
    bench = Bench(NANO, one_bank=True)
    sent, signals = bench.run([vector(5, 0, 50, b_op=BinaryOp.ADD)])
    assert signals.cycles[0] - sent.cycles[0] == 100 + 14


@pytest.mark.parametrize(("config", "vrow_cycles"), [(NANO, 7), (ONE_LANE, 10), (TWO_LANES, 8)])
def test_short_commands(config, vrow_cycles):
    """Cycles from one command to the next."""
    bench = Bench(config)
    commands = [set_param(Param.B_ROW, 1), vrow(5, 0), vrow(5, 1, splat=True), vector(0, 0, 0), set_param(99, 0)]
    sent, signals = bench.run(commands)
    assert [s - c for c, s in zip(sent.cycles, signals.cycles, strict=True)] == [2, vrow_cycles, vrow_cycles, 2, 3]
    assert [b - a for a, b in zip(signals.cycles, sent.cycles[1:], strict=False)] == [1, 1, 1, 1]


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
    assert sum(reads) == 32 * config.row_parts


@pytest.mark.parametrize(
    ("config", "cycles"), [(NANO, 0), (NANO, 1), (NANO, 20), (NANO, 40), (ONE_LANE, 21), (ONE_LANE, 34), (ONE_LANE, 47)]
)
def test_abort(config, cycles):
    """Abort at any time: quiet at once, no signal, no further write; afterwards the unit works as ever."""
    bench = Bench(config, seed=cycles, grant=0.8)
    dut = bench.dut
    rng = random.Random(cycles)
    later = [*row_registers(config, rng), *random_vector(config, rng, 20), vector(0, 100, 3, signal=9)]
    written = []

    async def process(ctx):
        async def offer(c, until):
            ctx.set(dut.command.payload, c)
            ctx.set(dut.command.valid, 1)
            while not (await ctx.tick().sample(until))[-1]:
                pass
            ctx.set(dut.command.valid, 0)

        await offer(set_param(Param.A_STRIDE, 0), dut.command.ready)
        ctx.set(dut.signal[0].ready, 1)
        await ctx.tick().repeat(4)
        ctx.set(dut.signal[0].ready, 0)
        await offer(vector(5, 64, 20, signal=3, **FP_STEPS), dut.command.ready)
        for _ in range(cycles):
            await ctx.tick()
        ctx.set(dut.abort, 1)
        for _ in range(12):
            ctx.set(dut.command.payload, vector(5, 64, 20, signal=3))
            ctx.set(dut.command.valid, 1)
            _, _, ready, signal, *ports = await ctx.tick().sample(
                dut.command.ready,
                dut.signal[0].valid,
                *(getattr(dut, f"scratchpad_{p}").valid for p in ("read_a", "read_b", "write")),
                *(getattr(dut, f"accumulator_{p}").valid for p in ("read_a", "read_b", "write")),
            )
            assert not signal
            assert not any(ports)
            written.append(ready)
        ctx.set(dut.command.valid, 0)
        assert not ctx.get(dut.busy)
        ctx.set(dut.abort, 0)
        ctx.set(dut.clear, 1)
        await ctx.tick()
        ctx.set(dut.clear, 0)
        bench.model.scratchpad[:] = bench.scratchpad
        bench.model.accumulators[:] = bench.accumulators
        got = []
        for c in later:
            await offer(c, dut.command.ready)
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
    assert written[1:] == [1] * 11  # every command offered during the abort was dropped
    for c in later:
        bench.model.execute(c)
    bench.compare()


def test_clear():
    """Parameters and row registers start every block afresh."""
    bench = Bench(NANO)

    async def clear(ctx):
        for _ in range(40):
            await ctx.tick()
        ctx.set(bench.dut.clear, 1)
        await ctx.tick()
        ctx.set(bench.dut.clear, 0)

    bench.bench.add(clear)
    before = [vrow(9, 0), vrow(8, 1), set_param(Param.A_STRIDE, 5), set_param(Param.OUT_STRIDE, 2)]
    after = [vector(5, 64, 3, bias=1), vector(5, 90, 3, scale=1), vector(4, 100, 3, bias=1, out=VectorOutput.INT8)]

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
    bench.faults = []
    bench.compare()


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
