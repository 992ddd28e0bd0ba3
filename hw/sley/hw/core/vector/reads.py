"""The reads of the vector unit: which rows, and when."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Member, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import FLAGS_BITS, FLAGS_LSB, FORMATS, BinaryOp, Op
from sley.abi.types import ElementType
from sley.hw.core.params import params_layout
from sley.hw.core.sram.memories import accumulator_read, scratchpad_read
from sley.hw.core.types import is_type
from sley.hw.core.unit import UnitCommand
from sley.hw.core.vector.lane import VECTOR_FLAGS
from sley.hw.core.vector.source import int8_part
from sley.hw.core.vector.walk import ROW_BITS, RowWalk

VROW_FLAGS = data.FlexibleLayout(
    FLAGS_BITS,
    {
        name: data.Field(placed.width, placed.lsb - FLAGS_LSB)
        for name, placed in FORMATS[Op.VROW].layout.fields.items()
        if placed.lsb >= FLAGS_LSB
    },
)
"""The flags of a VROW instruction."""

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
    command : In(UnitCommand), params : In(params_layout(Unit.VECTOR)), is_vrow : In(1), to_scratchpad : In(1)
        A VECTOR, whose output may go to the scratchpad, or a VROW; parameters of the unit. Constant from ``start`` on.
    start : In(1)
        Begin with it.
    go : In(1)
        Parts may be read; only while no row is ``outside``. Once a row has begun ``go`` stays until ``advance``, unless
        nothing is read of it any more.
    scratchpad_read_a, scratchpad_read_b, accumulator_read_a, accumulator_read_b : Out(read_port)
        Where the operands are.
    a_granted, b_granted : Out(1)
        An operand of the part is read in this cycle.
    advance, row_advance : Out(1)
        The last operand that was missing is read, and the next part follows; the next part is of the next row.
    part : Out(range(row_parts))
        The part that is read.
    ends : Out(1)
        No row follows.
    outside : Out(1)
        A row of A, B or the output is needed and does not exist.
    faulted : In(1), address : Out(32)
        ``outside`` from its next cycle on; from the cycle after that, what that row is, the first of them, else 0.
    splat, uses_b, a_accumulator, b_accumulator : Out(1)
        There is no row of A; there is one of B; where they are.

    Latency
    ------- The first reads are requested in the cycle after ``start``, if ``go`` is high. From the grant of a read to
    any register are three LUTs.

    Throughput
    ----------
    One part a cycle.

    Cost
    ----
    Three walks, a counter of rows and one of parts, a multiplexer of three words for faults.
    """

    command: data.View
    params: data.View
    is_vrow: Signal
    to_scratchpad: Signal
    start: Signal
    go: Signal
    scratchpad_read_a: wiring.PureInterface
    scratchpad_read_b: wiring.PureInterface
    accumulator_read_a: wiring.PureInterface
    accumulator_read_b: wiring.PureInterface
    a_granted: Signal
    b_granted: Signal
    advance: Signal
    row_advance: Signal
    part: Signal
    ends: Signal
    outside: Signal
    faulted: Signal
    address: Signal
    splat: Signal
    uses_b: Signal
    a_accumulator: Signal
    b_accumulator: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        outputs = ("a_granted", "b_granted", "advance", "row_advance", "ends", "outside")
        decoded = ("splat", "uses_b", "a_accumulator", "b_accumulator")
        super().__init__(
            {
                "command": In(UnitCommand),
                "params": In(params_layout(Unit.VECTOR)),
                "is_vrow": In(1),
                "to_scratchpad": In(1),
                "start": In(1),
                "go": In(1),
                **operand_ports(config),
                **{name: Out(1) for name in (*outputs, *decoded)},
                "part": Out(range(config.row_parts)),
                "faulted": In(1),
                "address": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        command = self.command
        vector, vrow = data.View(VECTOR_FLAGS, command.flags), data.View(VROW_FLAGS, command.flags)
        is_vrow = self.is_vrow
        splats, reads_b = is_vrow & vrow.splat, ~is_vrow & (vector.b_op != BinaryOp.NONE)
        m.d.sync += [
            self.splat.eq(splats),
            self.uses_b.eq(reads_b),
            self.a_accumulator.eq(is_vrow | vector.a_space),
            self.b_accumulator.eq(vector.b_space),
        ]
        walks = self._walks(m, splats, reads_b)

        # Each operand of a part is asked for until granted
        types, two_int8 = self._config.operand_types, self._config.lane_elements() > 1
        all_read = []
        operands = []
        for name, walk, from_accumulator, unused, kind, half in (
            ("a", walks[0], self.a_accumulator, splats, vector.a_type, vector.a_half),
            ("b", walks[1], self.b_accumulator, ~reads_b, vector.b_type, vector.b_half),
        ):
            scratchpad, accumulator = (
                getattr(self, f"scratchpad_read_{name}"),
                getattr(self, f"accumulator_read_{name}"),
            )
            skip, read = Signal(name=f"{name}_skip"), Signal(name=f"{name}_read")
            m.d.comb += [
                scratchpad.row.eq(walk.row),
                accumulator.row.eq(walk.row),
                accumulator.part.eq(self.part),
                scratchpad.part.eq(
                    Mux(
                        two_int8 & is_type(kind, ElementType.INT8, types),
                        int8_part(self.part, half)[1:],
                        self.part,
                    )
                ),
                scratchpad.valid.eq(self.go & ~skip & ~from_accumulator),
                accumulator.valid.eq(self.go & ~skip & from_accumulator),
                read.eq(skip | Mux(from_accumulator, accumulator.ready, scratchpad.ready)),
                getattr(self, f"{name}_granted").eq(self.go & ~skip & read),
            ]
            operands.append((skip, unused))
            all_read.append(read)
        for (skip, unused), read, other in zip(operands, all_read, reversed(all_read), strict=True):
            m.d.sync += skip.eq(unused | (self.go & read & ~other))

        ends_row = Signal()
        last = Signal(reset_less=True)
        m.d.comb += [
            self.advance.eq(self.go & all_read[0] & all_read[1]),
            ends_row.eq(self.go & (self.part == self._config.row_parts - 1)),
            self.row_advance.eq(ends_row & all_read[0] & all_read[1]),
            self.ends.eq(ends_row & last & all_read[0] & all_read[1]),
        ]
        m.d.sync += self.part.eq(Mux(self.go, self.part + self.advance, 0))

        # Rows behind the current one
        count = Signal(COUNT_BITS)
        behind = Signal(COUNT_BITS, reset_less=True)
        m.d.comb += count.eq(Mux(self.start, command.c, behind))
        with m.If(self.start | self.row_advance):
            m.d.sync += [behind.eq(count - 1), last.eq(is_vrow | (count == 1))]
        return m

    def _walks(self, m: Module, splats: Value, reads_b: Value) -> list[RowWalk]:
        """Of A, B and the output."""
        command, params, is_vrow = self.command, self.params, self.is_vrow
        vector = data.View(VECTOR_FLAGS, command.flags)
        starts = (command.a, params.b_row, command.b)
        walks = []
        for name, needed, space, first, stride in zip(
            ("walk_a", "walk_b", "walk_out"),
            (~splats, reads_b, ~is_vrow),
            (is_vrow | vector.a_space, vector.b_space, ~self.to_scratchpad),
            starts,
            (params.a_stride, params.b_stride, params.out_stride),
            strict=True,
        ):
            m.submodules[name] = walk = RowWalk(self._config)
            walks.append(walk)
            m.d.comb += [
                walk.needed.eq(needed),
                walk.space.eq(space),
                walk.start.eq(first),
                walk.stride.eq(stride),
                walk.load.eq(self.start),
                walk.step.eq(self.row_advance),
            ]

        # The first that is outside tells where; the rows of the others are dropped. What a first row has beyond the
        # bits of a walk is still where it came from.
        a, b, _ = (walk.outside for walk in walks)
        others = (~a, a | ~b, a | b)
        at_first = Signal(reset_less=True)
        tells = Signal(3, reset_less=True)  # what is beyond of which first row
        with m.If(self.start | self.row_advance):
            m.d.sync += at_first.eq(self.start)
        m.d.comb += self.outside.eq(Cat(walk.outside for walk in walks).any())
        for index, (walk, other) in enumerate(zip(walks, others, strict=True)):
            m.d.comb += walk.drop.eq(self.faulted & other)
            m.d.sync += tells[index].eq(self.faulted & ~other & at_first)
        row = reduce(or_, (walk.row for walk in walks)) & self.faulted.replicate(ROW_BITS)
        beyond = reduce(
            or_, (start[ROW_BITS:] & tell.replicate(32 - ROW_BITS) for start, tell in zip(starts, tells, strict=True))
        )
        m.d.comb += self.address.eq(Cat(row, beyond | (row[-1] & ~at_first).replicate(32 - ROW_BITS)))
        return walks
