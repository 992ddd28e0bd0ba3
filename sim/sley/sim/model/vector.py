"""What VECTOR, VROW and VFOLD compute."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Space, VectorRow
from sley.abi.parameters import Param
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import CHAIN_WORDS, SPLATS, Chain, Late, chain_of
from sley.abi.vector.operations import SHORT_OPS, Reduction
from sley.sim.golden.chain import ChainInputs, chain_rows, convert
from sley.sim.golden.operations import Words
from sley.sim.golden.vector import short_chain, source_words
from sley.sim.model.memory import FaultError
from sley.sim.model.state import Command, LocalState, check_rows


def _half(state: LocalState, rows: NDArray[np.int64], half: int) -> NDArray[np.int8]:
    n = state.config.array
    return state.scratchpad[rows, half * n : (half + 1) * n].view(np.int8)


def _source_is_legal(config: ChipConfig, kind: int, space: int, half: int, dtype: int) -> bool:
    """Whether rows of an operand can be this."""
    if kind not in config.vector_types or (half and config.lane_elements() == 1):
        return False
    in_scratchpad = space == Space.SCRATCHPAD and dtype == ElementType.FP32 and not half
    return ElementType(kind).bits == 8 or in_scratchpad


def _chain(state: LocalState, f: Mapping[str, int]) -> Chain | None:
    """The chain of a VECTOR, or None if it or the flags mean nothing on this chip."""
    c = state.config
    sources = [(f[f"{name}_type"], f[f"{name}_space"], f[f"{name}_half"], f["dtype"]) for name in ("a", "b")]
    if f["dtype"] not in WORD_TYPES or f["out"] not in (*WORD_TYPES, *c.vector_types):
        return None
    if f["out_half"] and (ElementType(f["out"]).bits == 16 or c.lane_elements() == 1):
        return None
    if not all(_source_is_legal(c, *source) for source in sources):
        return None
    number, short = f["chain"], (f["b_op"], f["bias"], f["scale"], f["relu"])
    if not number:
        return short_chain(f["b_op"], *map(bool, short[1:])) if f["b_op"] in SHORT_OPS else None
    if number > c.vector_chains or any(short):
        return None
    chain = chain_of(tuple(state.chains.get((number, word), 0) for word in range(CHAIN_WORDS)))
    if chain is None or chain.function not in (None, *c.vector_functions):
        return None
    c_space = Space.SCRATCHPAD if f["b_space"] else Space.ACCUMULATOR
    if chain.type_problem(ElementType(f["dtype"]), ElementType(f["out"])):
        return None
    return chain if _source_is_legal(c, chain.c_type, c_space, chain.c_half, f["dtype"]) else None


def vector(state: LocalState, unit: Unit, command: Command) -> None:
    f, p, c = command.fields, state.params[unit], state.config
    chain = _chain(state, f)
    if chain is None:
        raise FaultError(FaultCode.ILLEGAL_INSTRUCTION, unit, command.pc)
    if command.c == 0:
        return
    index = np.arange(command.c, dtype=np.int64)
    limits = {Space.SCRATCHPAD: c.scratchpad_rows, Space.ACCUMULATOR: c.accumulator_rows}
    dtype, out = ElementType(f["dtype"]), ElementType(f["out"])

    to_scratchpad = out not in WORD_TYPES
    out_space = Space.SCRATCHPAD if to_scratchpad else Space.ACCUMULATOR
    c_space = Space.SCRATCHPAD if f["b_space"] else Space.ACCUMULATOR

    def steps(late: Late) -> NDArray[np.int64]:
        return index // c.array if chain.broadcasts(late) else index

    # Row by row, A before B before C before the output.
    walks = {"a": (command.a + index * p[Param.A_STRIDE], f["a_space"])}
    if chain.uses_b:
        walks["b"] = (p[Param.B_ROW] + steps(Late.B) * p[Param.B_STRIDE], f["b_space"])
    if chain.uses_c:
        walks["c"] = (p[Param.C_ROW] + steps(Late.C) * p[Param.C_STRIDE], c_space)
    if not chain.silent:
        walks["out"] = (command.b + index * p[Param.OUT_STRIDE], out_space)
    offsets = [np.where(rows < limits[Space(space)], rows, -1) for rows, space in walks.values()]
    in_order, checked = np.stack([rows for rows, _ in walks.values()], 1), np.stack(offsets, 1)
    if (checked < 0).any():
        bad = int(in_order.flat[int(np.argmax(checked.reshape(-1) < 0))])
        raise FaultError(FaultCode.LOCAL_ADDRESS, unit, command.pc, bad)

    def source(name: str, half: int, kind: int) -> Words | None:
        if name not in walks:
            return None
        rows, space = walks[name]
        if space == Space.ACCUMULATOR:
            return state.accumulator.view(np.uint32)[rows]
        if ElementType(kind).bits == 16:
            whole = np.uint16 if kind == ElementType.BF16 else np.float16
            return source_words(state.scratchpad.view(whole)[rows], dtype)
        return source_words(_half(state, rows, half).view(np.uint8 if kind == ElementType.UINT8 else np.int8), dtype)

    a = source("a", f["a_half"], f["a_type"])
    assert a is not None
    inputs = ChainInputs(
        a,
        source("b", f["b_half"], f["b_type"]),
        source("c", chain.c_half, chain.c_type),
        tuple(p[Param(Param.SPLAT0 + k)] for k in range(len(SPLATS))) if c.vector_chains else (),
        (p[Param.IOTA_BASE], p[Param.IOTA_ROW], p[Param.IOTA_LANE]) if c.vector_chains else (0, 0, 0),
        p[Param.EXCHANGE] if c.vector_chains else 0,
    )
    x, is_float = chain_rows(chain, inputs, state.rows, dtype=dtype, out=out)
    if chain.reduce:
        state.rows.reduce(chain.register, chain.reduce, x, is_float)
    if chain.silent:
        return
    target = state.scratchpad if to_scratchpad else state.accumulator
    first = f["out_half"] * c.array if out.bits == 8 else 0
    for row, value in zip(walks["out"][0], convert(x, is_float, out), strict=True):
        written = np.ascontiguousarray(value).view(np.uint8)
        target[row, first : first + len(written)] = written


def _register(state: LocalState, unit: Unit, command: Command) -> VectorRow:
    """The row register of a command. Raises ``FaultError`` if the chip has it not."""
    row = VectorRow(command.flag("row"))
    if row >= state.config.row_registers:
        raise FaultError(FaultCode.ILLEGAL_INSTRUCTION, unit, command.pc)
    return row


def vrow(state: LocalState, unit: Unit, command: Command) -> None:
    row = _register(state, unit, command)
    if command.flag("splat"):
        value = np.full(state.config.array, command.a, np.uint32)
    else:
        check_rows(np.array([command.a], np.int64), state.config.accumulator_rows, unit, command.pc)
        value = state.accumulator.view(np.uint32)[command.a].copy()
    state.rows.rows[row] = value


def vfold(state: LocalState, unit: Unit, command: Command) -> None:
    row, kind = command.flag("row"), command.flag("reduce")
    folds = (Reduction.SUM, Reduction.MAX, Reduction.MIN)
    if not state.config.vector_chains or kind not in folds or command.flag("dtype") not in WORD_TYPES:
        raise FaultError(FaultCode.ILLEGAL_INSTRUCTION, unit, command.pc)
    state.rows.fold(row, Reduction(kind), command.flag("dtype") == ElementType.FP32)
