"""The prover itself: that formulas mean what Amaranth means, and what it says of designs that are wrong."""

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Array, Assert, Assume, Cat, Elaboratable, Module, Mux, Signal, signed
from amaranth.sim import Simulator

from sley.hw.testing.mutation import mutated
from sley.hw.testing.proof import Counterexample, NotInductive, Property, VacuousProof, prove
from sley.hw.testing.transition_system import TransitionSystem

BINARY = [
    *(operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor),
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
    operator.mod,
]
UNARY: list[Callable[[Any], Any]] = [
    *(operator.neg, operator.invert, lambda v: v.any(), lambda v: v.all(), lambda v: v.xor(), lambda v: v[1:4]),
]


class Expressions(Elaboratable):
    """One output for each operator, of registered operands."""

    def __init__(self) -> None:
        self.a, self.b, self.s, self.t = Signal(5), Signal(5), Signal(signed(5)), Signal(signed(5))
        amount = self.b[:3]
        choice = Array([self.a, self.b, self.s])[self.b[:2]]
        self.values = [op(x, y) for op in BINARY for x, y in ((self.a, self.b), (self.s, self.t), (self.a, self.s))]
        self.values += [op(x) for op in UNARY for x in (self.a, self.s)]
        self.values += [self.a << amount, self.a >> amount, self.s >> amount, Cat(self.s, self.a), choice]
        self.values += [Mux(self.a[0], self.b, self.s), self.a.bit_select(amount, 2), self.s.as_unsigned()]
        self.results = [Signal(value.shape(), name=f"result_{k}") for k, value in enumerate(self.values)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += [result.eq(value) for result, value in zip(self.results, self.values, strict=True)]
        return m


class Agrees(Property):
    """After operands with these values come these results."""

    def __init__(self, dut: Expressions, cases: list[tuple[list[int], list[int]]]) -> None:
        super().__init__(dut)
        self.cases = cases

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        case = self.constant(range(len(self.cases)), "case")
        started = Signal()
        m.d.sync += started.eq(1)
        m.d.comb += Assume(case < len(self.cases))
        with m.Switch(case):
            for k, (operands, results) in enumerate(self.cases):
                with m.Case(k):
                    for signal, value in zip((dut.a, dut.b, dut.s, dut.t), operands, strict=True):
                        m.d.comb += signal.eq(value)
                    for signal, value in zip(dut.results, results, strict=True):
                        m.d.comb += Assert(~started | (signal == value))
        return m


def test_operators() -> None:
    rng = random.Random(1)
    dut = Expressions()
    cases: list[tuple[list[int], list[int]]] = []

    async def bench(ctx: Any) -> None:
        for _ in range(40):
            operands = [rng.randrange(32), rng.randrange(32), rng.randrange(-16, 16), rng.randrange(-16, 16)]
            for signal, value in zip((dut.a, dut.b, dut.s, dut.t), operands, strict=True):
                ctx.set(signal, value)
            await ctx.tick()
            cases.append((operands, [ctx.get(result) for result in dut.results]))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    prove(Agrees(Expressions(), cases), 2)
    wrong = [(operands, [results[0] ^ 1, *results[1:]]) for operands, results in cases[:2]]
    with pytest.raises(Counterexample, match="fails in cycle 1"):
        prove(Agrees(Expressions(), wrong), 2)


class Counter(Property):
    """Counts from 0 up to ``top`` and stays; asserted to be none of ``never``."""

    def __init__(self, top: int, *never: int, reset_less: bool = False, assume: int = 1) -> None:
        super().__init__(None)
        self.top, self.never, self.reset_less, self.assume = top, never, reset_less, assume

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(4, reset_less=self.reset_less)
        seen = Signal()
        m.d.sync += seen.eq(1)
        with m.If(count != self.top):
            m.d.sync += count.eq(count + 1)
        m.d.comb += [Assert(count != value) for value in self.never]
        m.d.comb += [Assert(seen | (count == 0)), Assume(self.assume)]
        return m


def test_outcomes() -> None:
    counter = Counter(5, 6)
    prove(counter, 1)
    counter.free(1, "name")
    with pytest.raises(ValueError, match="input name already"):
        counter.free(2, "name")
    prove(Counter(5, 7, 6), 1)
    with pytest.raises(Counterexample, match="fails in cycle 4"):
        prove(Counter(5, 4), 6)
    with pytest.raises(NotInductive):  # 6 leads to 7, and nothing but distance says that 6 is never reached
        prove(Counter(5, 7), 1)
    with pytest.raises(NotInductive):
        prove(Counter(5, 4), 3)
    prove(Counter(5, 4), 3, induction=False)
    # States from which 7 is reached without it coming in between, 6 and 8 to 15, are so many.
    prove(Counter(5, 7), 15)
    with pytest.raises(VacuousProof):
        prove(Counter(5, 6, assume=0), 1)


def test_reset_may_come_at_any_time() -> None:
    with pytest.raises(Counterexample):
        prove(Counter(5, 6, reset_less=True), 4)


def test_mutants() -> None:
    with pytest.raises(ValueError, match="is 0 times in"):
        mutated(TransitionSystem, "no such " + "text", "")
    assert mutated(TransitionSystem, "Unrolls a design.", "Another.").__doc__.startswith("Another.")
