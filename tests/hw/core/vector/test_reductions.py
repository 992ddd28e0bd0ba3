"""Reductions of rows into a register, and folds: counts, partials and the adder of a lane as they are in the unit."""

import random
from functools import cache

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from vector_model import SPECIAL

from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.operations import JOIN, OPERATIONS, PARTIALS, Reduction
from sley.hw.core.vector.control import arithmetic, assign, join_op
from sley.hw.core.vector.partials import LanePartials
from sley.hw.core.vector.reductions import Reductions
from sley.hw.core.vector.row_registers import RowSource
from sley.hw.core.vector.tail import LaneTail
from sley.sim import Simulation
from sley.sim.golden.chain import RowRegisters

INPUTS = {"join": 1, "last": 1, "is_float": 1, "rows_end": 1, "start_fold": 1, "clear": 1, "abort": 1}
CASES = [(reduction, kind) for reduction in JOIN for kind in WORD_TYPES]
BUSY = {case: 14 + 3 * (1 + 1 + OPERATIONS[JOIN[case[0]]].latency[case[1]]) for case in CASES}
"""Cycles of a fold, as the data sheet has them."""
each_case = pytest.mark.parametrize(("reduction", "kind"), CASES, ids=lambda value: value.name)


class Lane(wiring.Component):
    """One lane. ``i`` goes to the adder in the cycle behind ``join``; ``held`` is what was kept last."""

    def __init__(self) -> None:
        more = {"i": In(32), "reduce": In(3), "register": In(2)}
        outputs = {"busy": Out(1), "row_load": Out(4), "row_source": Out(2), "held": Out(32)}
        super().__init__({name: In(width) for name, width in INPUTS.items()} | more | outputs)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reductions = reductions = Reductions()
        m.submodules.partials = partials = LanePartials()
        m.submodules.tail = tail = LaneTail(())
        control = tail.control
        values = {"last": arithmetic(join_op(self.reduce), self.is_float), "reduce": self.reduce, "tail": 1}
        m.d.comb += assign(control, values)
        m.d.comb += [getattr(reductions, name).eq(getattr(self, name)) for name in (*INPUTS, "reduce", "register")]
        m.d.comb += [
            *(getattr(partials, name).eq(getattr(reductions, name)) for name in ("read", "slot", "fresh")),
            *(getattr(partials, name).eq(getattr(reductions, name)) for name in ("write", "write_slot")),
            *(getattr(tail, name).eq(getattr(reductions, name)) for name in ("fold", "second")),
            partials.reduce.eq(self.reduce),
            partials.is_float.eq(self.is_float),
            partials.i.eq(tail.o),
            tail.i.eq(self.i),
            tail.partial.eq(partials.o),
            *(getattr(self, name).eq(getattr(reductions, name)) for name in ("busy", "row_load", "row_source")),
        ]
        with m.If(reductions.capture):
            m.d.sync += self.held.eq(tail.o)
        return m


@cache
def lane() -> Simulation:
    return Simulation.of(Lane())


class Bench:
    """The lane beside the golden registers."""

    def __init__(self, seed: int = 0) -> None:
        self.sim, self.rng, self.golden = lane(), random.Random(seed), RowRegisters(1)
        for name in (*INPUTS, "i", "reduce", "register"):
            self.sim.poke(name, 0)
        self.pulse("clear")

    def pulse(self, name: str) -> None:
        self.sim.poke(name, 1)
        self.sim.tick()
        self.sim.poke(name, 0)

    def select(self, register: int, reduction: Reduction, kind: ElementType) -> None:
        for name, value in (("register", register), ("reduce", reduction), ("is_float", kind is ElementType.FP32)):
            self.sim.poke(name, int(value))

    def words(self, count: int) -> list[int]:
        """All sorts, or numbers alone: sums that are no number tell nothing of their rows."""
        rng = self.rng
        if rng.random() < 0.5:
            return np.array([rng.uniform(-100, 100) for _ in range(count)], np.float32).view(np.uint32).tolist()
        kinds = (lambda: rng.choice(SPECIAL), lambda: rng.getrandbits(32), lambda: rng.randint(0x40000000, 0x44000000))
        return [rng.choice(kinds)() for _ in range(count)]

    def rows(self, register: int, reduction: Reduction, kind: ElementType, count: int, idle: float = 0.0) -> None:
        """Joins so many rows, and waits until they are done."""
        self.select(register, reduction, kind)
        words = self.words(count)
        for word in words:
            while self.rng.random() < idle:
                self.row(None)
            self.row(word)
        self.row(None)
        while self.sim.peek("busy"):
            self.sim.tick()
        self.golden.reduce(register, reduction, np.array(words, np.uint32)[:, None], kind is ElementType.FP32)

    def row(self, word: int | None) -> None:
        """x is one cycle behind the condition's register, which is in front of the adder."""
        self.sim.poke("join", word is not None)
        if word is not None:
            self.sim.poke("i", word)
        self.sim.tick()
        self.sim.poke("join", 0)
        self.sim.poke("i", self.rng.getrandbits(32))

    def fold(self, register: int, reduction: Reduction, kind: ElementType) -> int:
        """Cycles in which it is busy; compares what the register takes."""
        self.select(register, reduction, kind)
        self.pulse("start_fold")
        cycles, loads = 0, 0
        while self.sim.peek("busy"):
            cycles += 1
            load = self.sim.peek("row_load")
            if load:
                assert load == 1 << register
                assert self.sim.peek("row_source") == RowSource.FOLD
                loads += 1
            self.sim.tick()
        assert loads == 1
        self.golden.fold(register, reduction, kind is ElementType.FP32)
        assert self.sim.peek("held") == self.golden.rows[register, 0]
        return cycles


@each_case
def test_folds(reduction: Reduction, kind: ElementType) -> None:
    """Of few rows, of as many as there are partials, of more; what a fold finds is forgotten. Each takes as long."""
    bench = Bench(seed=reduction)
    for count in (0, 1, 2, PARTIALS - 1, PARTIALS, PARTIALS + 1, 0, 3, 40, 41, 9, 17, 30):
        bench.rows(1, reduction, kind, count)
        assert bench.fold(1, reduction, kind) == BUSY[reduction, kind]


@each_case
def test_bits_do_not_depend_on_instructions(reduction: Reduction, kind: ElementType) -> None:
    """Rows of four registers in turns, with gaps, at full rate: each register has its own count and partials."""
    bench = Bench(seed=10 + reduction)
    for _ in range(12):
        register = bench.rng.randrange(4)
        bench.rows(register, reduction, kind, bench.rng.choice([1, 3, 8, 9, 21]), bench.rng.choice([0, 0.5]))
    for register in range(4):
        bench.fold(register, reduction, kind)


def test_kinds_behind_each_other() -> None:
    """Partials of one kind are folded as another: that is defined, too, and no event of one meets the other's way."""
    bench = Bench(seed=3)
    for _ in range(60):
        register, (reduction, kind) = bench.rng.randrange(4), bench.rng.choice(CASES)
        bench.rows(register, reduction, kind, bench.rng.randrange(12))
        if bench.rng.random() < 0.5:
            bench.fold(register, *bench.rng.choice(CASES))


@each_case
@pytest.mark.parametrize("after", [1, 2, 5, 9, 17, 25])
def test_abort_and_clear(reduction: Reduction, kind: ElementType, after: int) -> None:
    """In the middle of rows and of a fold: idle in the next cycle, and nothing is found later."""
    for folds in (False, True):
        bench = Bench(seed=after)
        bench.rows(2, reduction, kind, 11)
        bench.select(2, reduction, kind)
        if folds:
            bench.pulse("start_fold")
        for _ in range(after):
            bench.row(None if folds else bench.rng.getrandbits(32))
        bench.pulse("abort")
        for _ in range(12):
            assert (bench.sim.peek("busy"), bench.sim.peek("row_load")) == (0, 0)
            bench.sim.tick()
        bench.pulse("clear")
        bench.golden = RowRegisters(1)
        bench.rows(2, reduction, kind, 3)
        assert bench.fold(2, reduction, kind) == BUSY[reduction, kind]


def test_last() -> None:
    """The register takes x at the end of the instruction, once, if there was a row."""
    bench = Bench()
    sim = bench.sim
    for rows in (2, 0, 1):
        bench.select(3, Reduction.LAST, WORD_TYPES[0])
        for _ in range(rows):
            bench.pulse("last")
            assert sim.peek("row_load") == 0
            sim.tick()
        sim.poke("rows_end", 1)
        found = []
        for _ in range(3):
            found.append((sim.peek("row_load"), sim.peek("row_source")))
            sim.tick()
        sim.poke("rows_end", 0)
        assert found == [(8 if rows else 0, RowSource.X), (0, RowSource.X), (0, RowSource.X)]


def test_abort_forgets_the_last_row() -> None:
    bench = Bench()
    bench.select(3, Reduction.LAST, WORD_TYPES[0])
    bench.pulse("last")
    bench.pulse("abort")
    bench.sim.poke("rows_end", 1)
    assert bench.sim.peek("row_load") == 0
