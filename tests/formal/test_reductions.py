"""Reductions of the vector unit: a partial result is never read while its new value is on the way, but in the cycle in
which that is written; every row is written once."""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Signal

from sley.abi.vector.operations import JOIN, PARTIALS
from sley.hw.core.vector.partials import LONGEST, SLOTS
from sley.hw.core.vector.reductions import FoldState, Reductions
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove


class OneAtATime(Property):
    """Of any one partial: at most one new value is on the way, and a read meets it at its write or not at all. The unit
    keeps what it says of the rows while ``busy``, and starts a fold, or a block, when nothing is."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        which = self.constant(range(SLOTS), "which")

        said = Cat(dut.reduce, dut.register, dut.is_float)
        said_before, busy_before = Signal(len(said)), Signal()
        m.d.sync += [said_before.eq(said), busy_before.eq(dut.busy | dut.join | dut.start_fold)]
        folds = dut.reduce.matches(*JOIN)
        m.d.comb += [
            Assume(~busy_before | (said == said_before)),
            Assume(~dut.join | (folds & ~dut.fold)),
            Assume(~dut.start_fold | (folds & ~dut.busy & ~dut.join)),
            Assume(~dut.clear | (~dut.busy & ~dut.join)),
        ]

        line = inner["to_write"]
        slots = [inner[f"slot_{age}"] for age in range(1, LONGEST + 1)]
        begins, ends = Signal(), Signal()
        pending = Signal(4)
        m.d.comb += [
            begins.eq((dut.join | dut.second) & (dut.slot == which)),
            ends.eq(dut.write & (dut.write_slot == which)),
        ]
        m.d.sync += pending.eq(pending + begins - ends)
        with m.If(dut.abort):
            m.d.sync += pending.eq(0)
        m.d.comb += [
            Assert(pending <= 1),
            Assert(~(dut.read & (dut.slot == which) & (pending != 0)) | ends),
            Assert(pending == sum(bit & (slot == which) for bit, slot in zip(line, slots, strict=True))),
            Assert(inner["on_the_way"] == sum(line)),
            Assert(inner["state"] <= FoldState.WAIT.value),
            Assert((inner["state"] == 0) | folds),
            Assert((inner["state"] == 0) | inner["distance"].matches(1, 2, 4)),
            Assert((inner["state"] != FoldState.JOIN.value) | (inner["pair"] < inner["distance"])),
            Assert((inner["state"] != FoldState.WAIT.value) | ((inner["pair"] == 0) & ~inner["second"])),
        ]
        return m


DEPTH = LONGEST + 2


def test_one_at_a_time() -> None:
    prove(OneAtATime(Reductions()), DEPTH)


@planted(
    {
        "twice": ("on_the_way + value - self.write", "on_the_way + value"),
        "waits": ("(state == FoldState.WAIT) & (on_the_way == 0)", "(state == FoldState.WAIT)"),
        "counts": ("count.eq(count + 1)", "count.eq(count + 2)"),
        "slot": ("slots[cycles - 1]", "slots[cycles - 2]"),
    }
)
def test_one_at_a_time_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(OneAtATime(mutated(Reductions, line, bug)()), 3 * PARTIALS, induction=False)
