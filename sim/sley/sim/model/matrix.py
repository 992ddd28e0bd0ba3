"""What WEIGHTS and MATMUL compute."""

import numpy as np
from numpy.typing import NDArray

from sley.abi.faults import FaultCode, Unit
from sley.abi.parameters import Param
from sley.abi.types import ElementType
from sley.sim.golden.matmul import NEUTRAL, bf16_sums, int8_sums
from sley.sim.model.memory import FaultError
from sley.sim.model.state import Command, LocalState, check_rows


def _check_type(state: LocalState, unit: Unit, command: Command) -> None:
    if command.flag("dtype") not in state.config.operand_types:
        raise FaultError(FaultCode.ILLEGAL_INSTRUCTION, unit, command.pc)


def weights(state: LocalState, unit: Unit, command: Command) -> None:
    if not 1 <= command.c <= state.config.array:
        raise FaultError(FaultCode.BAD_PARAMETER, unit, command.pc, command.c)
    _check_type(state, unit, command)
    rows = command.a + np.arange(command.c, dtype=np.int64) * state.params[unit][Param.WEIGHT_STRIDE]
    check_rows(rows, state.config.scratchpad_rows, unit, command.pc)
    state.weights[:] = NEUTRAL[ElementType(command.flag("dtype"))]
    state.weights[: command.c] = state.lanes[rows]


def _activation_rows(state: LocalState, command: Command) -> NDArray[np.int64]:
    p = state.params[Unit.MATRIX]
    index = np.arange(command.c, dtype=np.int64)
    inner = p[Param.ACT_COUNT] or command.c
    middle = p[Param.ACT_COUNT2] or command.c
    rows: NDArray[np.int64] = (
        command.a
        + index % inner * p[Param.ACT_STRIDE]
        + index // inner % middle * p[Param.ACT_STRIDE2]
        + index // (inner * middle) * p[Param.ACT_STRIDE3]
    )
    return rows


def matmul(state: LocalState, unit: Unit, command: Command) -> None:
    _check_type(state, unit, command)
    if command.c == 0:
        return
    out_rows = command.b + np.arange(command.c, dtype=np.int64)
    check_rows(out_rows, state.config.accumulator_rows, unit, command.pc)
    act_rows = _activation_rows(state, command)
    check_rows(act_rows, state.config.scratchpad_rows, unit, command.pc)
    target = state.accumulator.view(np.uint32)
    old = target[out_rows] if command.flag("accumulate") else None
    sums = bf16_sums if command.flag("dtype") == ElementType.BF16 else int8_sums
    target[out_rows] = sums(state.lanes[act_rows], state.weights, old)
