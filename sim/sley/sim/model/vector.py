"""What VECTOR and VROW compute."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import BinaryOp, Param, Space, VectorRow
from sley.abi.types import WORD_TYPES, ElementType
from sley.sim.golden.vector import vector_op
from sley.sim.model.memory import FaultError
from sley.sim.model.state import Command, LocalState, check_rows


def _half(state: LocalState, rows: NDArray[np.int64], half: int) -> NDArray[np.int8]:
    n = state.config.array
    return state.scratchpad[rows, half * n : (half + 1) * n].view(np.int8)


def _vector_is_legal(config: ChipConfig, f: Mapping[str, int]) -> bool:
    """Whether the flags of a VECTOR mean something on this chip."""
    halves = any(f[name] for name in ("a_half", "b_half", "out_half"))
    if f["b_op"] > max(BinaryOp) or (config.lane_elements() == 1 and halves):
        return False
    if f["dtype"] not in WORD_TYPES or f["out"] not in (*WORD_TYPES, *config.operand_types):
        return False
    if any(f[name] not in config.operand_types for name in ("a_type", "b_type")):
        return False
    if f["out"] == ElementType.BF16 and f["out_half"]:
        return False
    is_fp32 = f["dtype"] == ElementType.FP32
    return all(
        f[f"{source}_type"] == ElementType.INT8
        or (f[f"{source}_space"] == Space.SCRATCHPAD and is_fp32 and not f[f"{source}_half"])
        for source in ("a", "b")
    )


def vector(state: LocalState, unit: Unit, command: Command) -> None:
    f, p, c = command.fields, state.params[unit], state.config
    if not _vector_is_legal(c, f):
        raise FaultError(FaultCode.ILLEGAL_INSTRUCTION, unit, command.pc)
    if command.c == 0:
        return
    index = np.arange(command.c, dtype=np.int64)
    limits = {Space.SCRATCHPAD: c.scratchpad_rows, Space.ACCUMULATOR: c.accumulator_rows}

    to_scratchpad = f["out"] not in WORD_TYPES
    out_space = Space.SCRATCHPAD if to_scratchpad else Space.ACCUMULATOR
    a_rows, b_rows, out_rows = (
        first + index * p[stride]
        for first, stride in (
            (command.a, Param.A_STRIDE),
            (p[Param.B_ROW], Param.B_STRIDE),
            (command.b, Param.OUT_STRIDE),
        )
    )
    # Row by row, A before B before the output.
    walks = [(a_rows, f["a_space"]), *([(b_rows, f["b_space"])] if f["b_op"] else []), (out_rows, out_space)]
    offsets = [np.where(rows < limits[Space(space)], rows, -1) for rows, space in walks]
    in_order, checked = np.stack([rows for rows, _ in walks], 1), np.stack(offsets, 1)
    if (checked < 0).any():
        bad = int(in_order.flat[int(np.argmax(checked.reshape(-1) < 0))])
        raise FaultError(FaultCode.LOCAL_ADDRESS, unit, command.pc, bad)

    def source(name: str, rows: NDArray[np.int64]) -> NDArray[np.generic]:
        if f[f"{name}_space"] == Space.ACCUMULATOR:
            return state.accumulator.view(np.uint32)[rows]
        if f[f"{name}_type"] == ElementType.BF16:
            return state.scratchpad.view(np.uint16)[rows]
        return _half(state, rows, f[f"{name}_half"])

    a = source("a", a_rows)
    b = source("b", b_rows) if f["b_op"] else None
    result = vector_op(
        a,
        b,
        bias=state.rows[VectorRow.BIAS] if f["bias"] else None,
        scale=state.rows[VectorRow.SCALE] if f["scale"] else None,
        b_op=f["b_op"],
        dtype=ElementType(f["dtype"]),
        relu=bool(f["relu"]),
        out=ElementType(f["out"]),
    )
    target = state.scratchpad if to_scratchpad else state.accumulator
    first = f["out_half"] * c.array if f["out"] == ElementType.INT8 else 0
    for row, value in zip(out_rows, result, strict=True):
        written = np.ascontiguousarray(value).view(np.uint8)
        target[row, first : first + len(written)] = written


def vrow(state: LocalState, unit: Unit, command: Command) -> None:
    if command.flag("splat"):
        value = np.full(state.config.array, command.a, np.uint32)
    else:
        check_rows(np.array([command.a], np.int64), state.config.accumulator_rows, unit, command.pc)
        value = state.accumulator.view(np.uint32)[command.a].copy()
    state.rows[VectorRow(command.flag("row"))] = value
