"""What LOAD and STORE do: runs between device memory and local rows, and which of their faults comes first."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import INTERLEAVE_CHUNKS, TRANSPOSE_CHUNKS
from sley.abi.pages import Permission
from sley.abi.parameters import Param
from sley.sim.model.memory import AccessError, FaultError
from sley.sim.model.state import Command, LocalState


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


def addresses_of(state: LocalState, unit: Unit, command: Command) -> NDArray[np.int64]:
    """Memory address of every run with data, shape [slabs, runs]."""
    p = state.params[unit]
    runs = command.c if p[Param.RUN_BYTES] else 0
    slab = np.arange(p[Param.COUNT2], dtype=np.int64)[:, None] * p[Param.MEM_STRIDE2]
    run = np.arange(runs, dtype=np.int64) * p[Param.MEM_STRIDE]
    if command.flag("by_list"):
        run = state.accumulator[p[Param.LIST_ROW] :].view("<u4").reshape(-1)[:runs].astype(np.int64)
    addresses: NDArray[np.int64] = (command.a + slab + run) & 0xFFFFFFFF
    return addresses


def _check_list(state: LocalState, unit: Unit, command: Command) -> None:
    """The rows of the list exist. Of runs without bytes there is none."""
    p, rows = state.params[unit], -(-command.c // state.config.array)
    if command.flag("by_list") and p[Param.RUN_BYTES] and p[Param.LIST_ROW] + rows > state.config.accumulator_rows:
        raise FaultError(FaultCode.BAD_PARAMETER, unit, command.pc, p[Param.LIST_ROW])


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


def load(state: LocalState, unit: Unit, command: Command) -> None:
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
    _check_list(state, unit, command)
    addresses = addresses_of(state, unit, command)
    rows = _permuted_rows(state, command, runs // whole) if permuted else _local(state, unit, command, runs, chunks)
    fill = np.frombuffer(p[Param.FILL].to_bytes(4, "little"), np.uint8)
    data = np.tile(fill, (slabs, runs, chunks * target.shape[1] // 4))
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


def store(state: LocalState, unit: Unit, command: Command) -> None:
    p = state.params[unit]
    source = state.space(command.flag("space"))
    length = p[Param.RUN_BYTES]
    if not p[Param.COUNT2] or not command.c or not length:
        return
    _check_list(state, unit, command)
    rows = _local(state, unit, command, command.c, -(-length // source.shape[1]))
    addresses = addresses_of(state, unit, command)
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
