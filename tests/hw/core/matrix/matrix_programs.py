"""Programs for the matrix unit: made by hand or at random, and what is counted of them."""

import random

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import FLAGS_LSB, FORMATS, Op
from sley.abi.parameters import Param
from sley.abi.types import OPERAND_TYPES, ElementType
from sley.hw.testing.coverage import Coverage
from sley.sim.model.state import Command


class Program:
    """Matrix instructions, as the model and as the unit take them."""

    def __init__(self, config: ChipConfig) -> None:
        self.config = config
        self.commands: list[Command] = []

    def _add(self, op: Op, a: int = 0, b: int = 0, c: int = 0, **fields: int) -> "Program":
        full = {name: 0 for name in FORMATS[op].fields} | fields
        self.commands.append(Command(op, len(self.commands), full, a & 0xFFFFFFFF, b & 0xFFFFFFFF, c))
        return self

    def weights(self, row: int, rows: int | None = None, **fields: int) -> "Program":
        return self._add(Op.WEIGHTS, row, c=self.config.array if rows is None else rows, **fields)

    def matmul(self, row: int, dest: int, rows: int, **fields: int) -> "Program":
        return self._add(Op.MATMUL, row, dest, rows, **fields)

    def set(self, param: int, value: int) -> "Program":
        return self._add(Op.SET, value, param=param, unit=Unit.MATRIX)

    def payloads(self) -> list[dict[str, int]]:
        def flags(command: Command) -> int:
            layout = FORMATS[command.op].layout.fields
            high = {n: f for n, f in layout.items() if f.lsb >= FLAGS_LSB}
            return sum(command.fields[n] << (f.lsb - FLAGS_LSB) for n, f in high.items())

        return [
            {
                "op": c.op,
                "pc": c.pc,
                "wait": 0,
                "signal": c.fields.get("signal", 0),
                "a": c.a,
                "b": c.b,
                "c": c.c,
                "flags": flags(c),
            }
            for c in self.commands
        ]

    def signals(self, stream: int) -> list[int]:
        """What must come on a signal stream: SET completes on the one of WEIGHTS."""
        return [c.fields.get("signal", 0) for c in self.commands if (c.op is Op.MATMUL) == (stream == 1)]


COVERAGE = Coverage(
    "Matrix",
    {
        "weights": [(n, t) for n in ("one row", "some rows", "all rows but one", "all rows") for t in ("int8", "bf16")],
        "activations": [
            (n, t, how)
            for n in ("no rows", "one row", "less than an array", "an array", "more")
            for t in ("int8", "bf16")
            for how in ("overwrite", "accumulate")
        ],
        "stride of weights": ["up", "none", "down"],
        "loads and products": ["weights never used", "several products of one tile"],
        "streams": ["full speed", "commands wait", "weights wait", "activations wait"],
        "fault": ["LOCAL_ADDRESS", "BAD_PARAMETER", "ILLEGAL_INSTRUCTION"],
    },
)


def count_commands(config: ChipConfig, program: Program) -> None:
    """What a program consists of."""
    n, stride, products = config.array, 1, 0
    for command in program.commands:
        dtype = "bf16" if command.fields.get("dtype") else "int8"
        if command.op is Op.SET and command.fields["param"] == Param.WEIGHT_STRIDE:
            stride = command.a
        elif command.op is Op.WEIGHTS:
            rows = {n: "all rows", n - 1: "all rows but one", 1: "one row"}.get(command.c, "some rows")
            COVERAGE.hit("weights", (rows, dtype))
            COVERAGE.hit("stride of weights", "none" if not stride else "down" if stride >> 31 else "up")
            if not products:
                COVERAGE.hit("loads and products", "weights never used")
            products = 0
        elif command.op is Op.MATMUL:
            few = {0: "no rows", 1: "one row", n: "an array"}.get(
                command.c, "more" if command.c > n else "less than an array"
            )
            COVERAGE.hit("activations", (few, dtype, "accumulate" if command.fields["accumulate"] else "overwrite"))
            products += 1
            if products > 1:
                COVERAGE.hit("loads and products", "several products of one tile")


def random_program(config: ChipConfig, rng: random.Random, tiles: int, types: str = "int8") -> Program:
    """``types``: int8, bf16, one of them for each tile (tiles), or for each instruction (any)."""
    n = config.array
    program = Program(config)
    dtype = ElementType.BF16 if types == "bf16" else ElementType.INT8
    for _ in range(tiles):
        if types == "tiles":
            dtype = rng.choice(OPERAND_TYPES)
        for _ in range(rng.choice((0, 1, 1, 1, 1, 2))):
            stride = rng.choice((1, 1, -1, 2, 3, 0))
            program.set(Param.WEIGHT_STRIDE, stride & 0xFFFFFFFF)
            count = rng.choice((1, rng.randrange(1, n), n - 1, n, n, n))
            low, high = sorted((0, (count - 1) * stride))
            row = rng.randrange(-low, config.scratchpad_rows - high)
            if types == "any":
                dtype = rng.choice(OPERAND_TYPES)
            program.weights(row, count, dtype=dtype, signal=rng.getrandbits(16))
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            rows = rng.choice((0, 1, 1, 2, 3, n - 1, n, n + 1, 2 * n + 3, 17))
            counts = rng.choice(((0, 0), (0, 0), (1, 0), (2, 3), (3, 2), (n, 1), (1, 1), (rows, 5)))
            strides = [rng.randrange(-3, 4) for _ in range(3)]
            inner, middle = (c or max(rows, 1) for c in counts)
            offsets = [
                i % inner * strides[0] + i // inner % middle * strides[1] + i // (inner * middle) * strides[2]
                for i in range(max(rows, 1))
            ]
            if max(offsets) - min(offsets) >= config.scratchpad_rows:
                strides, offsets = [1, 0, 0], [*range(rows), 0]
                counts = (0, 0)
            for k, param in enumerate((Param.ACT_STRIDE, Param.ACT_STRIDE2, Param.ACT_STRIDE3)):
                program.set(param, strides[k] & 0xFFFFFFFF)
            program.set(Param.ACT_COUNT, counts[0])
            program.set(Param.ACT_COUNT2, counts[1])
            row = rng.randrange(-min(offsets), config.scratchpad_rows - max(offsets))
            dest = rng.choice((0, rng.randrange(config.accumulator_rows - rows), config.accumulator_rows - rows))
            if types == "any":
                dtype = rng.choice(OPERAND_TYPES)
            program.matmul(row, dest, rows, accumulate=rng.randrange(2), dtype=dtype, signal=rng.getrandbits(16))
    return program
