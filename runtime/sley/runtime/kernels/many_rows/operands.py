"""What an ending takes of a group besides sums: the scales of its outputs; of ADDED also the norm's weights, and the
result so far, which is in fp32 too.

If they have room, those of all groups are loaded before the array begins, and weights are loaded as far ahead as they
have room. Else those of a group are loaded when the array has left its half, and weights wait behind them.
"""

from __future__ import annotations

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.runtime.assembler.operands import Register
from sley.runtime.kernels.many_rows.writer import Writer

_ACCUMULATORS = Space.ACCUMULATOR


def load_group(w: Writer) -> None:
    """Those of the next group, in front of the weights that wait for the group."""
    k, at, p = w.k, w.at, w.problem
    k.set(Unit.LOAD, run_bytes=4 * w.n, chunks=1, local_stride2=1)
    k.set(Unit.LOAD, mem_stride2=4 * w.n * p.pairs(w.config))
    with k.scratch("address row") as (address, row):
        k.add(row, w.half, at.operands)
        k.add(address, w.factors, w.column)
        if w.norm is None:
            k.load(address, row, 1, space=_ACCUMULATORS, wait=w.operands_free, signal=w.operands_full)
        else:
            k.load(address, row, 1, space=_ACCUMULATORS, wait=w.operands_free)
            k.add(address, w.norm, w.column)
            k.add(row, row, 1)
            k.load(address, row, 1, space=_ACCUMULATORS)
            k.add(address, w.out, w.column)
            k.add(row, row, 1)
            k.set(Unit.LOAD, mem_stride=w.pitch, local_stride=1)
            k.load(address, row, at.tokens, space=_ACCUMULATORS, signal=w.operands_full)
    w.set_weights()


def load_all(w: Writer) -> None:
    """Those of all groups: a run brings those of two, each to its half, and runs behind each other are one to the
    bus."""
    k, at, p = w.k, w.at, w.problem
    row_bytes = 4 * w.n
    k.set(Unit.LOAD, run_bytes=2 * row_bytes, chunks=2, chunk_stride=at.half)
    k.set(Unit.LOAD, mem_stride=2 * row_bytes, local_stride=at.group_operands)
    k.set(Unit.LOAD, count2=p.together, mem_stride2=row_bytes * p.groups, local_stride2=1)
    _pairs(w, w.factors, 0)
    if p.groups % 2:
        k.set(Unit.LOAD, run_bytes=row_bytes, chunks=1)
        with k.scratch("address row") as (address, row):
            k.add(address, w.factors, row_bytes * (p.groups - 1))
            k.mov(row, at.operands + p.groups // 2 * at.group_operands)
            k.load(address, row, 1, space=_ACCUMULATORS)
    if w.norm is not None:
        k.set(Unit.LOAD, count2=1)
        _pairs(w, w.norm, 1)
        k.set(Unit.LOAD, count2=at.tokens, mem_stride2=w.pitch)
        _pairs(w, w.out, 2)
    k.empty(Unit.LOAD, signal=w.operands_full)


def _pairs(w: Writer, source: Register, operand: int) -> None:
    with w.k.scratch("row") as (row,):
        w.k.mov(row, w.at.operands + operand)
        w.k.load(source, row, w.problem.groups // 2, space=_ACCUMULATORS)
