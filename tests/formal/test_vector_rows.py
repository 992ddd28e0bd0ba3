"""Hazards of the vector unit: no row is read while a command before has yet to write it."""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, Value

from sley.abi.config import PRESETS
from sley.hw.core.vector.in_flight import InFlight, place_layout
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

CONFIG = PRESETS["nano"].replace(scratchpad_rows=16, accumulator_rows=16, operand_types=("int8",))
ROWS = 5
"""In flight at most; what is proved does not depend on it."""
OPERANDS = 2


def dut() -> InFlight:
    return InFlight(CONFIG, ROWS, OPERANDS)


class NoReadPassesAWrite(Property):
    """Of any one write, which the solver chooses: from the start of the next command until it is done, each operand
    whose row it is is blocked. Rows of a command go up or down; those that are read are looked up when they come."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        row = place_layout(CONFIG)["row"].shape
        which, space = self.constant(row, "which"), self.constant(1, "which_space")

        # A command: it begins, issues its rows, the last one marked, and the next one may begin
        active, fresh = Signal(), Signal()  # rows are left; the row at hand came in this cycle
        ends = dut.issue & dut.last
        to_before, last_before = Signal(row), Signal()
        about = Cat(dut.writes, dut.backwards, dut.to.space)
        about_before, begun = Signal(3), Signal(reset_less=True)
        m.d.sync += [
            active.eq((dut.start | (active & ~ends)) & ~dut.abort),
            fresh.eq(dut.start | dut.issue),
            begun.eq(dut.start),
            to_before.eq(dut.to.row),
            last_before.eq(dut.last),
            about_before.eq(about),
        ]
        same = dut.to.row == to_before
        goes_on = Mux(dut.backwards, dut.to.row <= to_before, dut.to.row >= to_before)
        m.d.comb += [
            Assume(~dut.start | ~active),
            Assume(~dut.issue | (active & dut.room & ~dut.start)),
            Assume(~dut.last | active),
            Assume(~dut.done | dut.some),
            Assume(~active | begun | ((about == about_before) & Mux(fresh, goes_on, same & (dut.last == last_before)))),
            *(Assume(~look.take | dut.start | (dut.issue & ~dut.last)) for look in dut.looks),
            *(Assume(~dut.start | look.take) for look in dut.looks),
        ]

        # The write
        marks = self.free(1, "marks")
        marked, own = Signal(), Signal()
        ahead = Signal(range(ROWS + 2))  # rows in flight up to it
        chosen = dut.issue & dut.writes & (dut.to.row == which) & (dut.to.space == space) & marks & ~marked
        m.d.sync += [ahead.eq(ahead - (dut.done & marked)), own.eq(own & ~dut.start)]
        with m.If(dut.done & (ahead == 1)):
            m.d.sync += marked.eq(0)
        with m.If(chosen):
            m.d.sync += [marked.eq(1), own.eq(1), ahead.eq(inner["outstanding"] - dut.done + 1)]
        with m.If(dut.abort):
            m.d.sync += marked.eq(0)

        # The rows that are read
        for index, look in enumerate(dut.looks):
            reads = Signal(name=f"reads_{index}")
            with m.If(look.take):
                m.d.sync += reads.eq(look.used & (look.place.row == which) & (look.place.space == space))
            touches: Value = inner["touches"][index]
            meets = active & reads & marked & ~own
            m.d.comb += [Assert(~meets | dut.blocked), Assert(~meets | touches)]

        outstanding, earlier = inner["outstanding"], inner["earlier"]
        low, high, first = inner["low"], inner["high"], inner["first"]
        passed = Mux(dut.backwards, (first >= which) & (dut.to.row <= which), (first <= which) & (dut.to.row >= which))
        in_range = (low <= which) & (which <= high) & inner["spaces"].bit_select(space, 1)
        m.d.comb += [
            Assert(~dut.blocked | (earlier != 0)),
            Assert(outstanding <= ROWS),
            Assert(earlier <= outstanding),
            Assert(inner["pending"] == (earlier != 0)),
            Assert(dut.room == (outstanding != ROWS)),
            Assert(dut.some == (outstanding != 0)),
            Assert(~marked | ((ahead != 0) & (ahead <= outstanding))),
            Assert(~(marked & ~own) | ((ahead <= earlier) & in_range)),
            Assert(~(marked & own & active) | (passed & dut.writes & (dut.to.space == space) & ~inner["began"])),
            Assert(~(marked & own & ~active) | in_range),
            Assert(inner["began"] == begun),
            Assert(~active | begun | Mux(dut.backwards, dut.to.row <= first, dut.to.row >= first)),
        ]
        return m


def test_no_read_passes_a_write() -> None:
    prove(NoReadPassesAWrite(dut()), 3)


@planted(
    {
        "union": ("pending & (low < lower)", "pending & (low > lower)"),
        "spaces": ("Mux(pending, spaces, 0) |", "0 |"),
        "edge": ("(row <= high)", "(row < high)"),
        "earlier": ("left.eq(Mux(self.start, outstanding, earlier))", "left.eq(earlier)"),
        "late": ("with m.If(self.last & self.writes):", "with m.If(self.last & self.writes & ~pending):"),
        "downwards": ("Mux(self.backwards, self.to.row, one_end)", "one_end"),
        "soon": ("(left == 1)", "(left <= 2)"),
    }
)
def test_no_read_passes_a_write_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(NoReadPassesAWrite(mutated(InFlight, line, bug)(CONFIG, ROWS, OPERANDS)), 12, induction=False)
