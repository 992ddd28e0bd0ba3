"""The reads of the vector unit: which rows, and when."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Member, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.vector.chains import Late
from sley.abi.vector.operations import BinaryOp
from sley.hw.core.params import params_layout
from sley.hw.core.sram.memories import accumulator_read, scratchpad_read
from sley.hw.core.types import has_bits
from sley.hw.core.unit import UnitCommand
from sley.hw.core.vector.chain_table import CHAIN
from sley.hw.core.vector.control import VECTOR_FLAGS, VROW_FLAGS, broadcasts, late_reads, reads_b
from sley.hw.core.vector.in_flight import look_layout, place_layout
from sley.hw.core.vector.source import int8_part
from sley.hw.core.vector.walk import ROW_BITS, RowWalk

COUNT_BITS = 16
"""Of the number of rows."""

READ_PORTS = ("scratchpad_read_a", "scratchpad_read_b", "accumulator_read_a", "accumulator_read_b")


def operand_ports(config: ChipConfig) -> dict[str, Member]:
    """The ``READ_PORTS`` of a vector unit: it reads what its lanes take at once."""
    scratchpad, accumulator = scratchpad_read(config, config.row_parts), accumulator_read(config, config.row_parts)
    return dict(zip(READ_PORTS, map(Out, (scratchpad, scratchpad, accumulator, accumulator)), strict=True))


class VectorReads(wiring.Component):
    """Reads the rows of a command, part after part of each, and walks over those that it writes.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    command : In(UnitCommand), params : In(params_layout), is_vrow : In(1), to_scratchpad : In(1)
        A VECTOR, whose output may go to the scratchpad, or a VROW; parameters of the unit. Taken with ``start``; where
        its rows begin is asked for again if the first of them is ``outside``.
    chained : In(1), chain : In(CHAIN)
        With chains: the command is a VECTOR with this one. Taken with ``start``.
    start : In(1), begin : In(1)
        Take it, as often as may be: all rows of the one before were read. Begin with it, which is taken in this cycle;
        what is said of the rows on their way changes now.
    flags : In(VECTOR_FLAGS)
        Those of the command that began last.
    go : In(1)
        Parts may be read; only while no row is ``outside``. Once a row has begun ``go`` stays until ``advance``, unless
        nothing is read of it any more.
    scratchpad_read_a, scratchpad_read_b, accumulator_read_a, accumulator_read_b : Out(read_port)
        Where the operands are.
    a_granted, b_granted, c_granted : Out(1)
        An operand of the part is read in this cycle.
    advance, row_advance : Out(1)
        The last operand that was missing is read, and the next part follows; the next part is of the next row.
    part : Out(range(row_parts))
        The part that is read.
    ends : Out(1)
        No row follows.
    last : Out(1)
        The row that is read is the last one.
    looks : Out(look_layout(config)).array(operands)
        The rows of A, B and, with chains, C that are read next, as of ``InFlight``.
    to : Out(place_layout(config)), writes : Out(1), backwards : Out(1)
        Where the row that is read will be written, if the command writes; whether it goes to lower rows.
    outside : Out(1)
        A row of A, B, C or the output is needed and does not exist.
    faulted : In(1), address : Out(32)
        ``outside`` from its next cycle on; from the cycle after that, what that row is, the first of them, else 0.
    splat, uses_b, uses_c, a_accumulator, b_accumulator : Out(1)
        There is no row of A; there is one of B; of C; where the first two are. C is where B is not, and read by its
        other port.

    Latency
    ------- The first reads are requested in the cycle after ``begin``, if ``go`` is high. From the grant of a read to
    any register are three LUTs.

    Throughput
    ----------
    One part a cycle.

    Cost
    ----
    Three walks, a counter of rows and one of parts, a multiplexer of three words for faults, some 10 flip-flops.
    """

    command: data.View
    params: data.View
    is_vrow: Signal
    to_scratchpad: Signal
    chained: Signal
    chain: data.View
    start: Signal
    begin: Signal
    flags: data.View
    go: Signal
    scratchpad_read_a: wiring.PureInterface
    scratchpad_read_b: wiring.PureInterface
    accumulator_read_a: wiring.PureInterface
    accumulator_read_b: wiring.PureInterface
    a_granted: Signal
    b_granted: Signal
    c_granted: Signal
    advance: Signal
    row_advance: Signal
    part: Signal
    ends: Signal
    last: Signal
    looks: list[data.View]
    to: data.View
    writes: Signal
    backwards: Signal
    outside: Signal
    faulted: Signal
    address: Signal
    splat: Signal
    uses_b: Signal
    uses_c: Signal
    a_accumulator: Signal
    b_accumulator: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        self._chains = config.vector_chains > 0
        outputs = ("a_granted", "b_granted", "c_granted", "advance", "row_advance", "ends", "last", "outside")
        decoded = ("splat", "uses_b", "uses_c", "a_accumulator", "b_accumulator")
        super().__init__(
            {
                "command": In(UnitCommand),
                "params": In(params_layout(Unit.VECTOR, config)),
                "chained": In(1),
                "chain": In(CHAIN),
                "is_vrow": In(1),
                "to_scratchpad": In(1),
                "start": In(1),
                "begin": In(1),
                "flags": In(VECTOR_FLAGS),
                "go": In(1),
                **operand_ports(config),
                **{name: Out(1) for name in (*outputs, *decoded)},
                "part": Out(range(config.row_parts)),
                "looks": Out(look_layout(config)).array(3 if self._chains else 2),
                "to": Out(place_layout(config)),
                "writes": Out(1),
                "backwards": Out(1),
                "faulted": In(1),
                "address": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        command = self.command
        vector, vrow = data.View(VECTOR_FLAGS, command.flags), data.View(VROW_FLAGS, command.flags)
        is_vrow, current = self.is_vrow, self.flags
        splats = is_vrow & vrow.splat
        uses_b, uses_c = Signal(name="uses_b_first"), Signal(name="uses_c_first")
        if self._chains:
            m.d.comb += [
                uses_b.eq(~is_vrow & Mux(self.chained, reads_b(self.chain), vector.b_op != BinaryOp.NONE)),
                uses_c.eq(self.chained & late_reads(self.chain, Late.C)),
            ]
        else:
            m.d.comb += uses_b.eq(~is_vrow & (vector.b_op != BinaryOp.NONE))
        with m.If(self.begin):
            m.d.sync += [
                self.splat.eq(splats),
                self.uses_b.eq(uses_b),
                self.uses_c.eq(uses_c),
                self.a_accumulator.eq(is_vrow | vector.a_space),
                self.b_accumulator.eq(vector.b_space),
            ]
        walks = self._walks(m, {"a": ~splats, "b": uses_b, "c": uses_c})

        # Each operand of a part is asked for until granted
        operands = {
            "a": (self.a_accumulator, Mux(self.start, splats, self.splat)),
            "b": (self.b_accumulator, ~Mux(self.start, uses_b, self.uses_b)),
        }
        if self._chains:
            operands["c"] = (~self.b_accumulator, ~Mux(self.start, uses_c, self.uses_c))
        reads = {name: Signal(name=f"{name}_read") for name in operands}
        every = Signal()  # operand of the part is read
        m.d.comb += every.eq(Cat(reads.values()).all())
        asks: dict[str, Value] = {}
        for name, (from_accumulator, unused) in operands.items():
            port = "a" if name == "a" else "b"
            accumulator, scratchpad = (
                getattr(self, f"{memory}_read_{port}") for memory in ("accumulator", "scratchpad")
            )
            skip = Signal(name=f"{name}_skip")
            asks[name] = self.go & ~skip
            m.d.comb += [
                reads[name].eq(skip | Mux(from_accumulator, accumulator.ready, scratchpad.ready)),
                getattr(self, f"{name}_granted").eq(asks[name] & reads[name]),
            ]
            m.d.sync += skip.eq(unused | (self.go & reads[name] & ~every))
        two_int8, types = self._config.lane_elements() > 1, self._config.vector_types
        for name, kind, half in (("a", current.a_type, current.a_half), ("b", current.b_type, current.b_half)):
            scratchpad, accumulator = (
                getattr(self, f"{memory}_read_{name}") for memory in ("scratchpad", "accumulator")
            )
            in_accumulator = operands[name][0]
            rows = {True: walks[name].row, False: walks[name].row}
            valid = {True: asks[name] & in_accumulator, False: asks[name] & ~in_accumulator}
            if name == "b" and self._chains:
                rows = {True: Mux(in_accumulator, rows[True], walks["c"].row)}
                rows[False] = Mux(in_accumulator, walks["c"].row, walks["b"].row)
                valid[True] |= asks["c"] & ~in_accumulator
                valid[False] |= asks["c"] & in_accumulator
            m.d.comb += [
                scratchpad.row.eq(rows[False]),
                accumulator.row.eq(rows[True]),
                accumulator.part.eq(self.part),
                scratchpad.part.eq(Mux(two_int8 & has_bits(kind, 8, types), int8_part(self.part, half)[1:], self.part)),
                scratchpad.valid.eq(valid[False]),
                accumulator.valid.eq(valid[True]),
            ]

        ends_row = Signal()
        m.d.comb += [
            self.advance.eq(self.go & every),
            ends_row.eq(self.go & (self.part == self._config.row_parts - 1)),
            self.row_advance.eq(ends_row & every),
            self.ends.eq(ends_row & self.last & every),
        ]
        m.d.sync += self.part.eq(Mux(self.go, self.part + self.advance, 0))

        # Rows behind the current one
        count = Signal(COUNT_BITS)
        behind = Signal(COUNT_BITS, reset_less=True)
        m.d.comb += count.eq(Mux(self.start, command.c, behind))
        with m.If(self.start | self.row_advance):
            m.d.sync += [behind.eq(count - 1), self.last.eq((self.start & is_vrow) | (count == 1))]
        return m

    def _walks(self, m: Module, used: dict[str, Value]) -> dict[str, RowWalk]:
        """Of A, B, C with chains, and the output."""
        command, params, is_vrow = self.command, self.params, self.is_vrow
        vector = data.View(VECTOR_FLAGS, command.flags)
        writes = ~is_vrow
        if self._chains:
            writes &= ~(self.chained & self.chain.operands.silent)
        plans = {
            "a": (used["a"], is_vrow | vector.a_space, command.a, params.a_stride),
            "b": (used["b"], vector.b_space, params.b_row, params.b_stride),
        }
        steps: dict[str, Value] = {}
        if self._chains:
            in_other = Mux(vector.b_space == Space.ACCUMULATOR, Space.SCRATCHPAD, Space.ACCUMULATOR)
            plans["c"] = (used["c"], in_other, params.c_row, params.c_stride)
            steps = self._broadcast_steps(m)
        plans["out"] = (writes, ~self.to_scratchpad, command.b, params.out_stride)
        walks = {}
        for name, (needed, space, first, stride) in plans.items():
            m.submodules[f"walk_{name}"] = walk = RowWalk(self._config)
            walks[name] = walk
            m.d.comb += [
                walk.needed.eq(needed),
                walk.space.eq(space),
                walk.start.eq(first),
                walk.stride.eq(stride),
                walk.load.eq(self.start),
                walk.step.eq(steps.get(name, self.row_advance)),
            ]
        starts = [first for _, _, first, _ in plans.values()]
        for look, name in zip(self.looks, "abc", strict=False):
            walk = walks[name]
            m.d.comb += [
                look.take.eq(walk.load | walk.step),
                look.used.eq(walk.follows_needed),
                look.place.row.eq(walk.follows),
                look.place.space.eq(walk.follows_space),
            ]
        out = walks["out"]
        with m.If(self.start):
            m.d.sync += self.writes.eq(writes)
        m.d.comb += [
            self.to.row.eq(out.row),
            self.to.space.eq(out.where),
            self.backwards.eq(out.backwards),
        ]

        # The first that is outside tells where; the rows of the others are dropped. What a first row has beyond the
        # bits of a walk is still where it came from.
        outside = [walk.outside for walk in walks.values()]
        others = [Cat(*outside[:index], ~own).any() for index, own in enumerate(outside)]
        at_first = Signal(reset_less=True)
        tells = Signal(len(walks), reset_less=True)  # what is beyond of which first row
        with m.If(self.start | self.row_advance):
            m.d.sync += at_first.eq(self.start)
        m.d.comb += self.outside.eq(Cat(outside).any())
        for index, (walk, other) in enumerate(zip(walks.values(), others, strict=True)):
            m.d.comb += walk.drop.eq(self.faulted & other)
            m.d.sync += tells[index].eq(self.faulted & ~other & at_first)
        row = reduce(or_, (walk.row for walk in walks.values())) & self.faulted.replicate(ROW_BITS)
        beyond = reduce(
            or_, (start[ROW_BITS:] & tell.replicate(32 - ROW_BITS) for start, tell in zip(starts, tells, strict=True))
        )
        m.d.comb += self.address.eq(Cat(row, beyond | (row[-1] & ~at_first).replicate(32 - ROW_BITS)))
        return walks

    def _broadcast_steps(self, m: Module) -> dict[str, Value]:
        """When B and C go to their next rows: behind N rows if one lane of them is broadcast."""
        n = self._config.array
        row = Signal(range(n), reset_less=True)
        with m.If(self.start):
            m.d.sync += row.eq(0)
        with m.Elif(self.row_advance):
            m.d.sync += row.eq(row + 1)
        steps: dict[str, Value] = {}
        for name, late in (("b", Late.B), ("c", Late.C)):
            serves = Signal(name=f"{name}_serves", reset_less=True)  # a row of it N rows
            with m.If(self.start):
                m.d.sync += serves.eq(self.chained & broadcasts(self.chain, late))
            steps[name] = self.row_advance & (~serves | (row == n - 1))
        return steps
