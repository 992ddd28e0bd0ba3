"""Commands of the vector unit behind each other: what one leaves in it meets the next; and rows at every bound."""

import random
from collections.abc import Callable
from itertools import pairwise, product

from vector_bench import Bench
from vector_model import set_param, vector, vrow

from sley.abi.config import PRESETS
from sley.abi.instructions import Space, VectorRow
from sley.abi.parameters import Param
from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.hw.testing.bounds import REACHES, high_bits, reach, reached
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.meetings import every_pair

NANO = PRESETS["nano"].replace(scratchpad_rows=128, accumulator_rows=64)
KINDS = [
    *("sums", "to int8", "from int8", "two operands", "with rows", "reads the last", "writes over the last"),
    *("no rows", "row", "splat", "set", "outside", "illegal"),
]
OPERANDS = ("A", "B", "output")
COVERAGE = Coverage(
    "Vector: what meets",
    {
        "behind": list(product(KINDS, KINDS)),  # one at a time is inside
        "last row": [(space.name, operand, *how) for space in Space for operand in OPERANDS for how in REACHES],
    },
)


PLACES = (6, 24, 42)
"""Rows that are read and written begin near two of these; they do not overlap, whatever the strides are."""


class Commands:
    """Commands of each kind; which rows the last VECTOR read and wrote."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.read, self.written, self.rows = *PLACES[:2], 3

    def command(self, kind: str, pc: int) -> dict:
        rng, a, b = self.rng, {"a_space": Space.ACCUMULATOR}, {"b_op": BinaryOp.ADD, "b_space": Space.ACCUMULATOR}
        marks = {"pc": pc, "signal": rng.randrange(1 << 16)}
        if kind in ("row", "splat"):
            return vrow(rng.randrange(60), rng.choice(list(VectorRow)), splat=kind == "splat", **marks)
        if kind == "set":
            name, values = rng.choice(
                [
                    (Param.A_STRIDE, [1, 1, 0, 2, -1]),
                    (Param.B_STRIDE, [1, 0, -1]),
                    (Param.OUT_STRIDE, [1, 1, 0, -1]),
                    (Param.B_ROW, [57, 58]),
                ]
            )
            return set_param(name, rng.choice(values), pc=pc)
        if kind == "no rows":
            return vector(5, 5, 0, **marks)
        if kind == "illegal":
            return vector(5, 5, 2, b_op=3, **marks)
        if kind == "outside":
            first = rng.choice([(-1, 5), (64, 5), (5, 64), (5, -1)])
            return vector(*first, 2, **a, **marks)
        read, written = rng.sample([place + rng.randrange(3) for place in PLACES], 2)
        rows, fields = rng.choice([1, 2, 3]), dict(a)
        if kind == "reads the last":
            read, written, rows = self.written, self.read, self.rows
        if kind == "writes over the last":
            read, written, rows = self.written, self.read, self.rows
        if kind == "to int8":
            fields["out"] = ElementType.INT8
        if kind == "from int8":
            fields["a_space"] = Space.SCRATCHPAD
        if kind == "two operands":
            fields |= b
        if kind == "with rows":
            fields |= {"bias": 1, "scale": 1}
        self.read, self.written, self.rows = read, written, rows
        return vector(read, written, rows, **fields, **marks)


def test_each_behind_each():
    rng = random.Random(1)
    order, made, bench = every_pair(KINDS, rng), Commands(rng), Bench(NANO, seed=1)
    bench.run([made.command(kind, pc) for pc, kind in enumerate(order)])
    for pair in pairwise(order):
        COVERAGE.hit("behind", pair)


def test_last_rows():
    """Rows just inside of their memory, and outside by every distance, of each operand and of the output; rows of one
    high bit."""
    rng, commands, params = random.Random(5), [], {}
    for space, (at, operand), how in product(Space, enumerate(OPERANDS), REACHES):
        rows = NANO.accumulator_rows if space == Space.ACCUMULATOR else NANO.scratchpad_rows
        last, steps = reached(rng, *how, rows, 1 << 14), rng.choice([1, 1, 2, 3])
        first = next(row for row in rng.sample(range(rows), rows) if (last - row) % steps == 0)
        firsts, strides = [5, 6, 7], [0, 0, 0]
        firsts[at], strides[at] = first, (last - first) // steps
        fields = {"b_op": BinaryOp.ADD, "out": ElementType.INT8 if space == Space.SCRATCHPAD else ElementType.INT32}
        values = {
            Param.A_STRIDE: strides[0],
            Param.B_ROW: firsts[1],
            Param.B_STRIDE: strides[1],
            Param.OUT_STRIDE: strides[2],
        }
        commands += [set_param(param, value) for param, value in values.items() if params.get(param) != value]
        params |= values
        pc = len(commands)
        commands.append(
            vector(firsts[0], firsts[2], steps + 1, a_space=space, b_space=space, pc=pc, signal=pc, **fields)
        )
        COVERAGE.hit("last row", (space.name, operand, *reach(last, rows)))
    outside = len(Space) * len(OPERANDS) * sum(how != "just inside" for _, how in REACHES)
    for row in high_bits(NANO.scratchpad_rows):
        commands.append(vector(row, 7, 1, pc=len(commands)))
        commands.append(vector(5, row, 1, pc=len(commands)))
        outside += 2
    bench = Bench(NANO, seed=1)
    bench.run(commands)
    assert len(bench.faults) == outside


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
