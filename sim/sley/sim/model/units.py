"""What each unit instruction computes, on numpy arrays: the definition that the gateware is held against."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import (
    FORMATS,
    INTERLEAVE_CHUNKS,
    PARAMS,
    TRANSPOSE_CHUNKS,
    BinaryOp,
    Op,
    Param,
    Space,
    VectorRow,
)
from sley.abi.pages import Permission
from sley.abi.types import WORD_TYPES, ElementType
from sley.sim.golden.matmul import NEUTRAL, Lanes, bf16_sums, int8_sums
from sley.sim.golden.vector import vector_op
from sley.sim.model.memory import AccessError, FaultError, ModelMemory


@dataclass
class Command:
    """A unit instruction with its operands read."""

    op: Op
    pc: int
    fields: Mapping[str, int]
    a: int = 0
    b: int = 0
    c: int = 0

    def flag(self, name: str) -> int:
        return self.fields[name]


@dataclass
class LocalState:
    """Memories and registers of one core that unit instructions work on."""

    config: ChipConfig
    memory: ModelMemory
    scratchpad: NDArray[np.uint8] = field(init=False)
    accumulator: NDArray[np.uint8] = field(init=False)
    weights: Lanes = field(init=False)
    """Lanes [N, N], one for each array row and column."""
    rows: dict[VectorRow, NDArray[np.uint32]] = field(init=False)
    params: dict[Unit, dict[Param, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.scrub()
        self.clear()

    def scrub(self) -> None:
        """What a block of another context finds: zeros."""
        c = self.config
        self.scratchpad = np.zeros((c.scratchpad_rows, c.row_bytes), np.uint8)
        self.accumulator = np.zeros((c.accumulator_rows, c.accumulator_row_bytes), np.uint8)
        self.weights = np.zeros_like(self.lanes[: c.array])

    def clear(self) -> None:
        """What a block starts with: row registers at zero, parameters at their reset values."""
        self.rows = {row: np.zeros(self.config.array, np.uint32) for row in VectorRow}
        self.params = {unit: {p: i.reset for p, i in PARAMS.items() if unit in i.units} for unit in Unit}

    @property
    def lanes(self) -> Lanes:
        """The scratchpad as operand lanes."""
        return self.scratchpad.view(np.uint16) if self.config.has(ElementType.BF16) else self.scratchpad

    def space(self, space: int) -> NDArray[np.uint8]:
        return self.scratchpad if space == Space.SCRATCHPAD else self.accumulator


def execute(state: LocalState, unit: Unit, command: Command) -> None:
    """Runs one instruction of a unit. Raises ``FaultError``; what was written before a fault is not defined."""
    if command.op is Op.SET:
        _set(state, unit, command)
        return
    if "rc" in FORMATS[command.op].fields and command.c > 0xFFFF:
        raise FaultError(FaultCode.BAD_PARAMETER, unit, command.pc, command.c)
    _EXECUTE[command.op](state, unit, command)


def _set(state: LocalState, unit: Unit, command: Command) -> None:
    number = command.flag("param")
    info = PARAMS.get(Param(number)) if number in Param._value2member_map_ else None
    bad = FaultError(FaultCode.BAD_PARAMETER, unit, command.pc, number)
    if info is None or unit not in info.units:
        raise bad
    value = command.a
    if info.signed:
        value = value - (1 << 32) if value >> 31 else value
        if not -(1 << (info.width - 1)) <= value < 1 << (info.width - 1):
            raise bad
    elif value >= 1 << info.width:
        raise bad
    state.params[unit][info.param] = value


def _check_rows(rows: NDArray[np.int64], limit: int, unit: Unit, pc: int) -> None:
    bad = (rows < 0) | (rows >= limit)
    if bad.any():
        raise FaultError(FaultCode.LOCAL_ADDRESS, unit, pc, int(rows.flat[int(np.argmax(bad))]))


def _check_type(state: LocalState, unit: Unit, command: Command) -> None:
    if command.flag("dtype") not in state.config.operand_types:
        raise FaultError(FaultCode.ILLEGAL_INSTRUCTION, unit, command.pc)


@dataclass(frozen=True, order=True)
class _Fault:
    """A fault in a LOAD or STORE; the one that comes first is the smallest."""

    place: tuple[int, ...]
    code: FaultCode
    address: int


def _first(mask: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Index of the first element that is true, if there is one."""
    return [tuple(int(i) for i in index) for index in np.argwhere(mask)[:1]]


def _raise_first(unit: Unit, pc: int, faults: list[_Fault]) -> None:
    if faults:
        fault = min(faults)
        raise FaultError(fault.code, unit, pc, fault.address)


def _addresses(state: LocalState, unit: Unit, command: Command) -> NDArray[np.int64]:
    """Memory address of every run with data, shape [slabs, runs]."""
    p = state.params[unit]
    slab = np.arange(p[Param.COUNT2], dtype=np.int64)[:, None] * p[Param.MEM_STRIDE2]
    run = np.arange(command.c if p[Param.RUN_BYTES] else 0, dtype=np.int64)[None, :] * p[Param.MEM_STRIDE]
    addresses: NDArray[np.int64] = (command.a + slab + run) & 0xFFFFFFFF
    return addresses


def _beyond(addresses: NDArray[np.int64], length: int, limit: int) -> list[tuple[int, ...]]:
    """The first run that ends beyond the limit."""
    return _first(addresses + length > limit)


def _local(state: LocalState, unit: Unit, command: Command, runs: int, chunks: int) -> NDArray[np.int64]:
    """Local row of every chunk, shape [slabs, runs, chunks], in the order of the walk."""
    p = state.params[unit]
    slab = np.arange(p[Param.COUNT2], dtype=np.int64)[:, None, None] * p[Param.LOCAL_STRIDE2]
    run = np.arange(runs, dtype=np.int64)[None, :, None] * p[Param.LOCAL_STRIDE]
    chunk = np.arange(chunks, dtype=np.int64)[None, None, :] * p[Param.CHUNK_STRIDE]
    rows: NDArray[np.int64] = command.b + slab + run + chunk
    return rows


def _outside(rows: NDArray[np.int64], limit: int) -> list[tuple[int, ...]]:
    """The first row that does not exist."""
    return _first((rows < 0) | (rows >= limit))


def _load(state: LocalState, unit: Unit, command: Command) -> None:
    p, c = state.params[unit], state.config
    interleave, transpose = command.flag("interleave"), command.flag("transpose")
    if (interleave or transpose) and (command.flag("space") or (interleave and c.lane_elements() == 1)):
        raise FaultError(FaultCode.ILLEGAL_INSTRUCTION, unit, command.pc)
    target = state.space(command.flag("space"))
    run_bytes, chunks, slabs = p[Param.RUN_BYTES], p[Param.CHUNKS], p[Param.COUNT2]
    runs = command.c + p[Param.PAD_RUNS] if command.c else 0
    if not slabs or not runs:
        return
    if run_bytes > chunks * target.shape[1]:
        raise FaultError(FaultCode.BAD_PARAMETER, unit, command.pc, run_bytes)
    if not chunks:
        return
    permuted = bool(interleave or transpose)
    whole = 1
    if permuted:
        most = TRANSPOSE_CHUNKS >> interleave if transpose else INTERLEAVE_CHUNKS
        if chunks > most:
            raise FaultError(FaultCode.BAD_PARAMETER, unit, command.pc, chunks)
        whole = (1 + interleave) * (c.array if transpose else 1)
        runs = -(-runs // whole) * whole
    addresses = _addresses(state, unit, command)
    rows = _permuted_rows(state, command, runs // whole) if permuted else _local(state, unit, command, runs, chunks)
    data = np.zeros((slabs, runs, chunks * target.shape[1]), np.uint8)
    refused: _Refused | None = None
    for (slab, run), address in np.ndenumerate(addresses):
        try:
            data[slab, run, :run_bytes] = state.memory.read(int(address), run_bytes)
        except AccessError as error:
            refused = (slab, run), error
            break
    _check_load(state, command, addresses, rows, whole if permuted else 0, refused)
    if permuted:
        data = _permuted(state, command, data.reshape(slabs, runs, chunks, -1))
    for row, value in zip(rows.reshape(-1), data.reshape(-1, target.shape[1]), strict=True):
        target[row] = value


_Refused = tuple[tuple[int, ...], AccessError]
"""A run that memory or the page tables refuse, and why."""


def _check_load(
    state: LocalState,
    command: Command,
    addresses: NDArray[np.int64],
    rows: NDArray[np.int64],
    unit_runs: int,
    refused: _Refused | None,
) -> None:
    """Run after run: its address, then row after row, a row's number before its data. Of a LOAD that permutes, unit
    after unit of ``unit_runs`` runs: all its runs, then all its rows."""
    length = state.params[Unit.LOAD][Param.RUN_BYTES]
    target = state.space(command.flag("space"))
    faults = []
    place: tuple[int, ...]
    for slab, run in _beyond(addresses, length, state.memory.limit):
        place = (slab, run // unit_runs, 0, run) if unit_runs else (slab, run, -1)
        faults.append(_Fault((*place, 0), FaultCode.BAD_ADDRESS, int(addresses[slab, run])))
    if refused is not None:
        (slab, run), error = refused
        address = int(addresses[slab, run])
        row = (error.address - address) // target.shape[1]
        place = (slab, run // unit_runs, 0, run) if unit_runs else (slab, run, row)
        faults.append(_Fault((*place, 1), error.code, address))
    for index in _outside(rows, target.shape[0]):
        place = (*index[:2], 1, 0) if unit_runs else index
        faults.append(_Fault((*place, 0), FaultCode.LOCAL_ADDRESS, int(rows[index])))
    _raise_first(Unit.LOAD, command.pc, faults)


def _permuted_rows(state: LocalState, command: Command, units: int) -> NDArray[np.int64]:
    """Local rows of a LOAD that permutes, of shape [slabs, units, rows of a block, halves, chunks]."""
    p = state.params[Unit.LOAD]
    block, halves = state.config.array if command.flag("transpose") else 1, 1 + command.flag("interleave")
    slab, unit, j, h, c = np.indices((p[Param.COUNT2], units, block, halves, p[Param.CHUNKS]), np.int64)
    rows: NDArray[np.int64] = command.b + slab * p[Param.LOCAL_STRIDE2] + unit * p[Param.LOCAL_STRIDE] + j
    return rows + (c * halves + h) * p[Param.CHUNK_STRIDE]


def _permuted(state: LocalState, command: Command, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Contents of the local rows of a LOAD that permutes, of shape [slabs, units, rows of a block, halves, chunks,
    bytes], from what its runs hold, of shape [slabs, runs, chunks, bytes]."""
    n, transpose = state.config.array, command.flag("transpose")
    slabs, runs, chunks, width = data.shape
    halves, block = 1 + command.flag("interleave"), n if transpose else 1
    units = runs // (halves * block)
    # Bytes of the runs of a pair side by side; then the two halves of such a double row are rows.
    pairs = data.reshape(slabs, units, block, halves, chunks, width).transpose(0, 1, 2, 4, 5, 3)
    rows = pairs.reshape(slabs, units, block, chunks, halves, width).transpose(0, 1, 2, 4, 3, 5)
    if transpose:
        lanes = rows.reshape(slabs, units, n, halves, chunks, n, width // n)
        rows = lanes.transpose(0, 1, 5, 3, 4, 2, 6).reshape(slabs, units, n, halves, chunks, width)
    return np.ascontiguousarray(rows)


def _store(state: LocalState, unit: Unit, command: Command) -> None:
    p = state.params[unit]
    source = state.space(command.flag("space"))
    length = p[Param.RUN_BYTES]
    if not p[Param.COUNT2] or not command.c or not length:
        return
    rows = _local(state, unit, command, command.c, -(-length // source.shape[1]))
    addresses = _addresses(state, unit, command)
    # A bad run is not written, so it cannot be refused; one that is counts, whatever comes behind it.
    faults = [
        _Fault((*run, 0), FaultCode.BAD_ADDRESS, int(addresses[run]))
        for run in _beyond(addresses, length, state.memory.limit)
    ]
    faults += [
        _Fault((*row[:2], 1), FaultCode.LOCAL_ADDRESS, int(rows[row])) for row in _outside(rows, source.shape[0])
    ]
    for run, address in np.ndenumerate(addresses):
        try:
            state.memory.check(int(address), length, Permission.WRITE)
        except AccessError as error:
            faults.append(_Fault((*run, 2), error.code, command.a))
            break
    stop = min(faults).place[:2] if faults else addresses.shape
    for run, address in np.ndenumerate(addresses):
        if run >= stop:
            break
        state.memory.write(int(address), source[rows[run]].reshape(-1)[:length])
    _raise_first(unit, command.pc, faults)


def _half(state: LocalState, rows: NDArray[np.int64], half: int) -> NDArray[np.int8]:
    n = state.config.array
    return state.scratchpad[rows, half * n : (half + 1) * n].view(np.int8)


def _weights(state: LocalState, unit: Unit, command: Command) -> None:
    if not 1 <= command.c <= state.config.array:
        raise FaultError(FaultCode.BAD_PARAMETER, unit, command.pc, command.c)
    _check_type(state, unit, command)
    rows = command.a + np.arange(command.c, dtype=np.int64) * state.params[unit][Param.WEIGHT_STRIDE]
    _check_rows(rows, state.config.scratchpad_rows, unit, command.pc)
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


def _matmul(state: LocalState, unit: Unit, command: Command) -> None:
    _check_type(state, unit, command)
    if command.c == 0:
        return
    out_rows = command.b + np.arange(command.c, dtype=np.int64)
    _check_rows(out_rows, state.config.accumulator_rows, unit, command.pc)
    act_rows = _activation_rows(state, command)
    _check_rows(act_rows, state.config.scratchpad_rows, unit, command.pc)
    target = state.accumulator.view(np.uint32)
    old = target[out_rows] if command.flag("accumulate") else None
    sums = bf16_sums if command.flag("dtype") == ElementType.BF16 else int8_sums
    target[out_rows] = sums(state.lanes[act_rows], state.weights, old)


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


def _vector(state: LocalState, unit: Unit, command: Command) -> None:
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


def _vrow(state: LocalState, unit: Unit, command: Command) -> None:
    if command.flag("splat"):
        value = np.full(state.config.array, command.a, np.uint32)
    else:
        _check_rows(np.array([command.a], np.int64), state.config.accumulator_rows, unit, command.pc)
        value = state.accumulator.view(np.uint32)[command.a].copy()
    state.rows[VectorRow(command.flag("row"))] = value


_EXECUTE: dict[Op, Callable[[LocalState, Unit, Command], None]] = {
    Op.LOAD: _load,
    Op.STORE: _store,
    Op.WEIGHTS: _weights,
    Op.MATMUL: _matmul,
    Op.VECTOR: _vector,
    Op.VROW: _vrow,
}
