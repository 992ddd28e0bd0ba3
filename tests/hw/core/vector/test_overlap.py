"""Rows of instructions of the vector unit that are inside together: when each begins, what they read of each other."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from chain_bench import ChainBench
from chain_commands import FOLDS, set_chain, vfold
from chain_uses import ACCUMULATORS, FP32, ILLEGAL, INT32, NANO16
from vector_model import set_param, vector, vrow

from sley.abi.faults import FaultCode
from sley.abi.functions.table import Function
from sley.abi.instructions import Space, VectorRow
from sley.abi.parameters import Param
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.hw.testing.coverage import Coverage

SUM_OF_B = {"b_op": BinaryOp.ADD, "dtype": FP32}
KINDS: dict[str, tuple[Chain | None, dict[str, int]]] = {
    "copy": (None, ACCUMULATORS),
    "to int8": (None, {"a_space": Space.ACCUMULATOR, "scale": 1, "out": ElementType.INT8}),
    "from int8": (None, {"b_space": Space.ACCUMULATOR, "bias": 1, **SUM_OF_B}),
    "two rows": (None, ACCUMULATORS | SUM_OF_B),
    "chain": (Chain(binary=BinaryOp.SUB, binary_operand=Operand.B), ACCUMULATORS),
    "late": (
        Chain(function=Function.EXP2, multiply2=Operand.LATE0, late0=Late.B, add=Operand.SPLAT1),
        {"dtype": FP32, "out": ElementType.BF16, **ACCUMULATORS},
    ),
    "C": (
        Chain(multiply=Operand.LATE1, late1=Late.C, binary2=BinaryOp.MAX, binary2_operand=Operand.ROW1),
        {"a_type": ElementType.BF16, "dtype": FP32, **ACCUMULATORS, "a_space": Space.SCRATCHPAD},
    ),
    "sums": (Chain(reduce=Reduction.SUM, register=1, silent=True), {"dtype": FP32, **ACCUMULATORS}),
    "written sums": (Chain(reduce=Reduction.SUM, register=2, add=Operand.ROW0), ACCUMULATORS),
    "iota": (Chain(keep=Condition.IOTA_NEGATIVE, other=Operand.SPLAT1), ACCUMULATORS),
    "broadcast": (
        Chain(multiply2=Operand.LATE0, late0=Late.B, late0_lanes=Lanes.BROADCAST),
        {"dtype": FP32, **ACCUMULATORS},
    ),
    "last": (Chain(reduce=Reduction.LAST, register=0, multiply=Operand.X), {"dtype": FP32, **ACCUMULATORS}),
}
CHAINS = {name: 1 + number for number, name in enumerate(name for name, (chain, _) in KINDS.items() if chain)}
BEGINS_ANEW = ("iota", "broadcast", "last")
"""Instructions in which something counts from their first row on."""
BETWEEN = ("nothing", "row", "fold", "walk", "splat", "word", "no rows", "illegal", "bad value", "outside")
COVERAGE = Coverage(
    "Vector: overlap",
    {
        "the same again, behind": [(name, between) for name in KINDS for between in BETWEEN],
        "reads a row of the one before": ["SCRATCHPAD", "ACCUMULATOR"],
        "fault": ["LOCAL_ADDRESS", "BAD_PARAMETER", "ILLEGAL_INSTRUCTION"],
    },
)


def chains() -> list[dict]:
    return [item for name, number in CHAINS.items() for item in set_chain(number, KINDS[name][0] or Chain())]


def command(name: str, a: int, b: int, rows: int, **more: int) -> dict:
    fields = {**KINDS[name][1], "chain": CHAINS.get(name, 0), **more}
    return vector(a, b, rows, **fields)


# Begins


def first_reads(bench: ChainBench, rows: list[int]) -> list[tuple[int, int]]:
    """Cycles of the first and the last read of A of each of the last commands."""
    reads = iter(bench.reads_of_a[-sum(rows) :])
    found = []
    for count in rows:
        cycles = [next(reads) for _ in range(count)]
        found.append((cycles[0], cycles[-1]))
    return found


@pytest.mark.parametrize("name", KINDS)
def test_alike_instructions_follow_each_other(name: str) -> None:
    """A row a cycle, and one cycle between two instructions, with SETs of rows and strides between them. Where
    something begins anew, the lanes are empty."""
    bench = ChainBench(NANO16, seed=1)
    bench.run(chains())
    rows = [9, 20, 40]
    walks = [set_param(Param.B_ROW, 3), set_param(Param.A_STRIDE, 1)]
    bench.run([item for n in rows for item in (*walks, command(name, 5, 64, n, signal=n))])
    reads = first_reads(bench, rows)
    assert [last - first for first, last in reads] == [n - 1 for n in rows]
    gaps = [second[0] - first[1] for first, second in pairwise(reads)]
    if name in BEGINS_ANEW:
        assert min(gaps) > 8
    else:
        assert gaps == [2, 2]


@pytest.mark.parametrize("first", KINDS)
def test_others_begin_when_the_lanes_are_empty(first: str) -> None:
    """Five cycles and the latency of the lanes behind the last read, or 8 behind a row that is reduced."""
    bench = ChainBench(NANO16, seed=1)
    bench.run(chains())
    bench.run([command(first, 5, 64, 1)], alone=True)
    other = "copy" if first != "copy" else "two rows"
    rows = [12, 30]
    bench.run([command(first, 5, 64, rows[0]), command(other, 5, 80, rows[1])])
    accepted, signalled = bench.accepted[-3], bench.signalled[-3]
    lanes = signalled - accepted - 9 - (first in CHAINS)  # the sum of the column, from what the first takes alone
    reads = first_reads(bench, rows)
    settles = {"sums": 6, "written sums": 0}.get(first, 0)  # beyond the end of the lanes
    assert reads[1][0] - reads[0][1] == 5 + lanes + settles


def test_an_instruction_waits_for_the_rows_that_it_reads() -> None:
    """A row of the one before is read in the cycle after its write; rows beside those that are written do not wait."""
    for behind, waits in ((64, True), (75, True), (63 + 20, True), (64 + 20, False), (40, False)):
        bench = ChainBench(NANO16, seed=1)
        bench.run([command("copy", 5, 64, 20), command("copy", behind, 100, 1)])
        reads = first_reads(bench, [20, 1])
        assert reads[1][0] - reads[0][1] == (12 if waits else 2), behind


def test_signals_wait_in_a_queue() -> None:
    """While no signal set is taken, commands run on; each set comes when its command is done, all in order."""
    bench = ChainBench(NANO16, seed=1)
    commands = [command("copy", 5, 64 + 3 * n, 3, signal=1 + n) for n in range(5)]
    sent = 0
    for _ in range(100):
        went, _ = bench.step(commands[sent] if sent < len(commands) else None, takes=False)
        sent += went
    assert bench.written == 15
    while len(bench.signals) < 5:
        bench.step()
    for item in commands:
        bench.model.execute(item)
    bench.compare()
    assert bench.signals == [1, 2, 3, 4, 5]
    assert bench.signalled[-1] - bench.signalled[0] == 4


# Random


class Sequence:
    """Random commands whose rows meet: one reads what the one before writes, or what is beside it."""

    WINDOWS = 6
    """Of 16 rows each, in both memories. An instruction does not read the window that it writes, but in place."""

    def __init__(self, rng: random.Random, faults: bool = True) -> None:
        self.rng, self.pc, self.faults = rng, 0, faults
        self.last, self.between = "copy", "nothing"
        self.written = (Space.ACCUMULATOR, 0)  # in which window

    def commands(self, count: int) -> Iterator[dict]:
        for _ in range(count):
            yield from self._between()
            yield from self._vector(self.last if self.rng.random() < 0.6 else self.rng.choice(list(KINDS)))

    def _between(self) -> list[dict]:
        rng, self.pc = self.rng, self.pc + 1
        self.between = "nothing" if rng.random() < 0.4 else rng.choice(BETWEEN if self.faults else BETWEEN[:7])
        chain = KINDS[self.last][0] or KINDS["chain"][0] or Chain()
        words = set_chain(CHAINS.get(self.last, CHAINS["chain"]), replace(chain, relu=rng.random() < 0.5))
        splat = (Param.SPLAT1, rng.choice((0x3F800000, 0xC0400000 - (1 << 32), 0x42C80000, 7, -1)))
        iota = (rng.choice((Param.IOTA_BASE, Param.IOTA_LANE)), rng.randint(-9, 9))
        marks = {"pc": self.pc, "signal": rng.randrange(1 << 16)}
        far = rng.choice(((126, 120), (5, 126), (1 << 20, 120)))
        return {
            "nothing": [],
            "row": [vrow(rng.randrange(90), rng.choice(list(VectorRow)), splat=rng.random() < 0.5)],
            "fold": [vfold(rng.choice((1, 2)), rng.choice(FOLDS), rng.choice((INT32, FP32)))],
            "walk": [set_param(Param.B_STRIDE, rng.choice((0, 1)))],
            "splat": [set_param(*splat), set_param(*iota)],
            "word": words[: rng.randint(1, 3)],
            "no rows": [command(self.last, 500, 500, 0, **marks)],
            "illegal": [command("chain", 5, 5, 3, b_op=1, **marks)],
            "bad value": [set_param(Param.B_ROW, -1, pc=self.pc)],
            "outside": [command(self.last, *far, 4, **marks)],
        }[self.between]

    def _vector(self, name: str) -> Iterator[dict]:
        rng, (chain, fields) = self.rng, KINDS[name]
        if name == self.last:
            COVERAGE.hit("the same again, behind", (name, self.between))
        rows, stride = rng.randint(1, 14), rng.choice((1, 1, -1))
        space, before = self.written
        windows = rng.sample(range(self.WINDOWS), 4)
        if rng.random() < 0.7 and before != windows[-1]:
            windows[rng.randrange(3)] = before
            if windows[0] == before and fields.get("a_space", Space.SCRATCHPAD) == space:
                COVERAGE.hit("reads a row of the one before", space.name)
        a, b, c, out = (16 * window + rng.randrange(2) for window in windows)
        a, out = (first + (rows - 1) * (stride < 0) for first in (a, out))
        if rng.random() < 0.2:
            a = out
        walk = {Param.B_ROW: b, Param.A_STRIDE: stride, Param.OUT_STRIDE: stride}
        if name == "C":
            walk[Param.C_ROW] = c
        yield from (set_param(param, value) for param, value in walk.items())
        yield command(name, a, out, rows, signal=rng.randrange(1 << 16), pc=self.pc)
        self.last = name
        if chain is None or not chain.silent:
            out_is_word = fields.get("out", INT32) in (INT32, FP32)
            self.written = Space.ACCUMULATOR if out_is_word else Space.SCRATCHPAD, windows[-1]


@pytest.mark.parametrize(
    ("grant", "one_bank", "idle", "pause"), [(1.0, False, 0, 0), (0.8, True, 0.1, 0.3), (0.5, False, 0, 0.7)]
)
def test_random_sequences(grant: float, one_bank: bool, idle: float, pause: float) -> None:
    """Results are those of one instruction after the other, whatever is granted and when; faults in their order."""
    seed = int(10 * grant)
    bench = ChainBench(NANO16, seed=seed, grant=grant, one_bank=one_bank)
    bench.run([*chains(), *Sequence(random.Random(seed)).commands(500)], idle=idle, pause=pause)
    for code, *_ in bench.faults:
        COVERAGE.hit("fault", FaultCode(code).name)
    assert ILLEGAL in {code for code, *_ in bench.faults}


@pytest.mark.some(12)
@pytest.mark.parametrize("seed", range(24))
def test_abort_of_several(seed: int) -> None:
    """With instructions, signal sets and faults inside: idle in the next cycle but one; then as ever."""
    rng, bench = random.Random(seed), ChainBench(NANO16, seed=seed, grant=0.8)
    items = [*chains(), *Sequence(rng).commands(9)]
    sent = 0
    for _ in range(110 + rng.randrange(150)):
        went, _ = bench.step(items[sent] if sent < len(items) else None, rng.random() < 0.3)
        sent += went
    bench.pulse("abort", 2)
    assert not bench.sim.peek("busy")
    bench.pulse("clear")
    bench.adopt()
    bench.model.clear()
    bench.signals.clear()
    bench.faults.clear()
    looks = [vector(5, 100, 3, b_op=BinaryOp.ADD, **ACCUMULATORS), vector(7, 110, 2, bias=1, scale=1, **ACCUMULATORS)]
    bench.run([*looks, *chains(), *Sequence(rng).commands(8)], pause=0.3)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
