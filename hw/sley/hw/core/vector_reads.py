"""The reads of the vector unit: which rows, and when."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import FLAGS_LSB, FORMATS, BinaryOp, Op, Space, VectorOutput
from sley.hw.core.params import params_layout
from sley.hw.core.sram import read_port
from sley.hw.core.unit import UnitCommand
from sley.hw.core.vector_lane import VECTOR_FLAGS
from sley.hw.core.vector_walk import RowWalk

VROW_FLAGS = data.FlexibleLayout(
    16,
    {
        name: data.Field(placed.width, placed.lsb - FLAGS_LSB)
        for name, placed in FORMATS[Op.VROW].layout.fields.items()
        if placed.lsb >= FLAGS_LSB
    },
)
"""The flags of a VROW instruction."""

READ_PORTS = ("scratchpad_read_a", "scratchpad_read_b", "accumulator_read_a", "accumulator_read_b")


class VectorReads(wiring.Component):
    """Asks for the rows that a command reads, part after part of each, and walks over those that it writes.

    Parameters
    ----------
    config: the chip.

    Members
    -------
    command: a VECTOR or VROW; params: of the unit. Both constant from ``start`` on.
    start: begin with it. ``go``: parts may be read; only while no row is ``outside``.
    scratchpad_read_a, scratchpad_read_b, accumulator_read_a, accumulator_read_b: where the operands are.
    a_granted, b_granted: an operand of the part is read in this cycle. ``advance``: the last one that was missing is,
        and the next part follows; ``row_advance``: of the next row.
    part: that is read. ``last``: its row is the last one.
    outside: the row of A, of B, of the output is needed and does not exist; ``rows``: they.
    splat, uses_b, a_accumulator, b_accumulator: there is no row of A, there is one of B, where they are.

    Latency: the first reads are asked for in the cycle after ``start``, if ``go`` is high. One part a cycle.
    Cost: three walks, a counter of rows and one of parts.
    """

    command: data.View
    params: data.View
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
    last: Signal
    outside: Signal
    rows: list[Signal]
    splat: Signal
    uses_b: Signal
    a_accumulator: Signal
    b_accumulator: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        ports = {
            "scratchpad": read_port(config.scratchpad_rows, 8 * config.row_bytes),
            "accumulator": read_port(config.accumulator_rows, 8 * config.accumulator_row_bytes),
        }
        outputs = ("a_granted", "b_granted", "advance", "row_advance", "last")
        decoded = ("splat", "uses_b", "a_accumulator", "b_accumulator")
        super().__init__(
            {
                "command": In(UnitCommand),
                "params": In(params_layout(Unit.VECTOR)),
                "start": In(1),
                "go": In(1),
                **{name: Out(ports[name.split("_")[0]]) for name in READ_PORTS},
                **{name: Out(1) for name in (*outputs, *decoded)},
                "part": Out(range(config.row_parts)),
                "outside": Out(3),
                "rows": Out(32).array(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        command, params = self.command, self.params
        vector, vrow = data.View(VECTOR_FLAGS, command.flags), data.View(VROW_FLAGS, command.flags)
        is_vrow = command.op == Op.VROW
        to_scratchpad = (vector.out == VectorOutput.BF16) | (vector.out == VectorOutput.INT8)
        splats, reads_b = is_vrow & vrow.splat, ~is_vrow & (vector.b_op != BinaryOp.NONE)
        parts = self._config.row_parts
        loads_row, remaining = Signal(reset_less=True), Signal(16, reset_less=True)
        m.d.comb += [
            self.row_advance.eq(self.advance & (self.part == parts - 1)),
            self.last.eq(loads_row | (remaining == 1)),
        ]

        m.submodules.walk_a = walk_a = RowWalk(self._config)
        m.submodules.walk_b = walk_b = RowWalk(self._config)
        m.submodules.walk_out = walk_out = RowWalk(self._config)
        for index, (walk, needed, space, first, stride) in enumerate(
            (
                (walk_a, ~splats, Mux(is_vrow, Space.ACCUMULATOR, vector.a_space), command.a, params.a_stride),
                (walk_b, reads_b, vector.b_space, params.b_row, params.b_stride),
                (walk_out, ~is_vrow, ~to_scratchpad, command.b, params.out_stride),
            )
        ):
            m.d.comb += [
                walk.needed.eq(needed),
                walk.space.eq(space),
                walk.start.eq(first),
                walk.stride.eq(stride),
                walk.load.eq(self.start),
                walk.step.eq(self.row_advance),
                self.outside[index].eq(walk.outside),
                self.rows[index].eq(walk.row),
            ]

        # Each operand of a part is asked for until granted
        a_wanted, b_wanted = Signal(reset_less=True), Signal(reset_less=True)
        for scratchpad, accumulator, walk, from_accumulator, wanted, granted in (
            (self.scratchpad_read_a, self.accumulator_read_a, walk_a, self.a_accumulator, a_wanted, self.a_granted),
            (self.scratchpad_read_b, self.accumulator_read_b, walk_b, self.b_accumulator, b_wanted, self.b_granted),
        ):
            m.d.comb += [
                scratchpad.row.eq(walk.row),
                accumulator.row.eq(walk.row),
                scratchpad.valid.eq(self.go & wanted & ~from_accumulator),
                accumulator.valid.eq(self.go & wanted & from_accumulator),
                granted.eq((scratchpad.valid & scratchpad.ready) | (accumulator.valid & accumulator.ready)),
            ]
        m.d.comb += self.advance.eq(self.go & (~a_wanted | self.a_granted) & (~b_wanted | self.b_granted))
        m.d.sync += remaining.eq(remaining - self.row_advance)
        with m.If(self.start):
            m.d.sync += [
                self.part.eq(0),
                a_wanted.eq(~splats),
                b_wanted.eq(reads_b),
                remaining.eq(command.c),
                loads_row.eq(is_vrow),
                self.splat.eq(splats),
                self.uses_b.eq(reads_b),
                self.a_accumulator.eq(is_vrow | vector.a_space),
                self.b_accumulator.eq(vector.b_space),
            ]
        with m.Elif(self.advance):
            m.d.sync += [self.part.eq(self.part + 1), a_wanted.eq(~self.splat), b_wanted.eq(self.uses_b)]
        with m.Else():
            m.d.sync += [a_wanted.eq(a_wanted & ~self.a_granted), b_wanted.eq(b_wanted & ~self.b_granted)]
        return m
