# amaranth: UnusedElaboratable=no
"""The part of the vector unit that chips with chains have: the chain of a command, and what it drives in the lanes."""

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import SPLATS, Lanes
from sley.abi.vector.operations import JOIN, LOGIC_OPS, BinaryOp, Reduction
from sley.hw.core.params import UnitParams
from sley.hw.core.types import is_one_of, is_type
from sley.hw.core.vector.chain_lane import ChainLane
from sley.hw.core.vector.chain_table import CHAIN, ChainTable
from sley.hw.core.vector.control import (
    CONTROL,
    STAGES,
    VECTOR_FLAGS,
    VFOLD_FLAGS,
    arithmetic,
    assign,
    chain_control,
    floats_behind_add,
    is_code,
    is_illegal,
    join_op,
    short_control,
)
from sley.hw.core.vector.lane_control import is_float
from sley.hw.core.vector.reductions import Reductions
from sley.hw.core.vector.row_registers import RowSource
from sley.hw.core.vector.stages import ChainStages


class Decoded:
    """Registers that say what the lanes do, and the parts that go with them. They take what the command at hand says
    with ``stages.start``, when no row is in the lanes.

    Attributes: ``table``, ``stages`` and ``reductions``: the parts. ``chain``: the words of the chain of the command at
    hand, 0 without one. ``illegal``: it is none of this chip, while ``decode``. ``known``, ``bad``: a SET is one of
    the table, and a fault. ``bad_fold``: a VFOLD means nothing. ``flags``: of a VECTOR without a chain that does the
    same in the first stages. ``control``, ``needs_float``: as the lanes have them. ``c_half``, ``c_type``: of operand
    C. ``counts``: what the lanes do begins anew with each command. ``busy``: a reduction is.
    """

    def __init__(self, m: Module, config: ChipConfig, command: data.View, kind: data.View, decode: Value) -> None:
        m.submodules.chain_table = self.table = ChainTable(config.vector_chains)
        m.submodules.stages = self.stages = ChainStages(config)
        m.submodules.reductions = self.reductions = Reductions()
        vector, fold = data.View(VECTOR_FLAGS, command.flags), data.View(VFOLD_FLAGS, command.flags)
        m.d.comb += [
            self.table.param.eq(command.flags[:8]),
            self.table.value.eq(command.a),
            self.table.index.eq(vector.chain),
        ]
        self.known, self.bad = self.table.known, self.table.bad
        self.bad_fold = ~is_code(fold.reduce, JOIN) | ~is_one_of(fold.dtype, WORD_TYPES)

        self.chain = Signal(CHAIN, name="chain", reset_less=True)
        m.d.sync += self.chain.eq(Mux(kind.chained, self.table.o.as_value(), 0))
        self.illegal = Signal(name="illegal_chain")
        m.d.comb += self.illegal.eq(is_illegal(self.chain, vector, config))

        front = self.chain.front
        flags, needs_float = Signal(VECTOR_FLAGS, name="flags_next"), Signal(name="needs_float_next")
        m.d.comb += [flags.eq(vector), needs_float.eq(vector.scale)]
        with m.If(decode):
            takes_two = is_code(front.binary, (BinaryOp.MAX, BinaryOp.MIN, *LOGIC_OPS))
            m.d.comb += [
                flags.b_op.eq(Mux(takes_two, BinaryOp.MAX, Mux(front.binary.any(), BinaryOp.ADD, BinaryOp.NONE))),
                flags.bias.eq(front.add.any()),
                flags.scale.eq(front.multiply.any()),
                flags.relu.eq(front.relu),
                needs_float.eq(floats_behind_add(self.chain)),
            ]
        self.flags = Signal(VECTOR_FLAGS, name="lane_flags", reset_less=True)
        self.needs_float = Signal(name="needs_float", reset_less=True)
        self.control = Signal(CONTROL, name="control", reset_less=True)
        floats = is_float(flags, config.vector_types, needs_float)
        operands = self.chain.operands
        self.c_half = Signal(name="c_half", reset_less=True)
        self.c_type = Signal.like(operands.c_type, name="c_type", reset_less=True)
        self._loaded = Signal()
        m.d.sync += self._loaded.eq(self.stages.start)
        with m.If(~self.stages.abort & self.stages.start):
            m.d.sync += [
                self.flags.eq(flags),
                self.needs_float.eq(needs_float),
                self.c_half.eq(operands.c_half),
                self.c_type.eq(operands.c_type),
            ]
            with m.If(decode):
                m.d.sync += assign(self.control, chain_control(self.chain, vector, floats, config))
            with m.Else():
                of_floats = is_type(fold.dtype, ElementType.FP32, WORD_TYPES)
                folds = {
                    "reduce": Mux(kind.vfold, fold.reduce, 0),
                    "register": fold.row,
                    "is_float": of_floats,
                    "last": arithmetic(join_op(fold.reduce), of_floats),
                }
                m.d.sync += assign(self.control, short_control(vector) | folds)
        m.d.comb += self.stages.control.eq(self.control)
        m.d.comb += [
            self.reductions.reduce.eq(self.control.reduce),
            self.reductions.register.eq(self.control.register),
            self.reductions.is_float.eq(self.control.is_float),
        ]
        self.busy = self.reductions.busy
        lanes = (is_code(lanes, (Lanes.BROADCAST,)) for lanes in self.control.late_lanes)
        self.counts = self.control.keep_iota | is_code(self.control.reduce, (Reduction.LAST,)) | Cat(*lanes).any()

    def connect_lanes(
        self, m: Module, lanes: Sequence[ChainLane], loads: Value, row: Value, params: UnitParams
    ) -> None:
        """``loads``: a VROW writes ``row`` from the words of A."""
        stages, reductions = self.stages, self.reductions
        splats = Array(getattr(params.values, f"splat{index}") for index in range(len(SPLATS)))
        chosen = [Signal(32, name=f"splat_of_{stage}", reset_less=True) for stage in STAGES]
        for splat, select in zip(chosen, self.control.select, strict=True):
            with m.If(self._loaded):
                m.d.sync += splat.eq(splats[select.index] & select.splat.replicate(32))
        row_load = reductions.row_load | Mux(loads, 1 << row, 0)
        row_source = Mux(loads, RowSource.A, reductions.row_source)
        m.d.comb += [
            getattr(stages, name).eq(Cat(getattr(lane, f"{name}_word") for lane in lanes)) for name in ("a", "b", "c")
        ]
        for index, lane in enumerate(lanes):
            m.d.comb += [
                lane.control.eq(self.control),
                lane.needs_float.eq(self.needs_float),
                lane.late0.eq(stages.late0.word_select(index, 32)),
                lane.late1.eq(stages.late1.word_select(index, 32)),
                lane.iota_negative.eq(stages.iota_negative[index]),
                lane.row_load.eq(row_load),
                lane.capture.eq(reductions.capture),
                lane.row_source.eq(row_source),
                *(mine.eq(splat) for mine, splat in zip(lane.splat, chosen, strict=True)),
            ]
            m.d.comb += [
                getattr(lane, name).eq(getattr(reductions, name))
                for name in ("read", "slot", "fresh", "fold", "second", "write", "write_slot")
            ]
