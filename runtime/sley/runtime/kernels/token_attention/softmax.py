"""The vector unit's part of token attention: powers of scores, and what becomes of results.

Results of a request are divided while the array computes scores of the next one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain
from sley.abi.vector.operations import Reduction
from sley.runtime.assembler.operands import Register, Semaphores
from sley.runtime.kernels.token_attention import chains
from sley.runtime.kernels.token_attention.writer import Writer

_STAGED_A: dict[str, Any] = {"a_space": Space.SCRATCHPAD, "a_type": ElementType.BF16}
_STAGED_B: dict[str, Any] = {"b_space": Space.SCRATCHPAD, "b_type": ElementType.BF16}
"""Flags of operands that are results of bfloat16."""


def start(w: Writer) -> None:
    """Chains and numbers."""
    k, p = w.k, w.problem
    for chain in chains.ALL:
        k.chain(chain)
    k.set(Unit.VECTOR, a_stride=1, b_stride=1, out_stride=1)
    k.set(Unit.VECTOR, splat0=_bits(-np.inf), splat1=_bits(p.factor), splat2=0x7FFFFFFF, iota_lane=1)
    k.set(Unit.STORE, run_bytes=2 * w.n * p.result_rows)


def weigh(w: Writer) -> None:
    """Powers of a step's scores; results so far are multiplied by what its largest score makes of them, or, with a new
    request, those of the one before are written while the array computes scores."""
    k, p, at = w.k, w.problem, w.at
    with k.scratch("rows one other powers") as (rows, one, other, powers):
        with k.if_(w.done, "==", 0), k.if_(w.ended, "!=", 0):
            _results(w)
        k.mov(rows, at.scores)
        k.set(Unit.VECTOR, b_row=w.read_mask)
        waits = (w.s_done, w.mask_full)
        _vector(w, chains.MASKED, rows, rows, p.block, wait=waits, signal=w.mask_free)
        w.next_list(w.read_mask, at.masks)
        k.vfold(chains.FOUND, Reduction.MAX)
        k.mov(one, at.most)
        k.mov(other, at.higher)
        with k.if_(w.done, "==", 0):
            _vector(w, chains.FIRST, one, other, 1)
        with k.if_(w.done, "!=", 0):
            _vector(w, chains.LARGER, one, other, 1)
            _vector(w, chains.POWER, one, one, 1)
            k.mov(powers, at.results)
            _vector(w, chains.FADE, powers, powers, p.width, wait=w.o_done)
        k.mov(powers, at.powers)
        with k.loop(p.block // w.n):
            _vector(w, chains.POWERS, rows, powers, w.n, bf16=True, signal=w.ready)
            k.add(rows, rows, w.n)
            k.add(powers, powers, w.n)
        k.empty(Unit.VECTOR, signal=w.s_free)
        _vector(w, chains.LARGER, other, one, 1)
        k.vfold(chains.FOUND, Reduction.SUM)
        k.mov(one, at.total)
        with k.if_(w.done, "==", 0):
            _vector(w, chains.THE_FOUND, one, one, 1)
        with k.if_(w.done, "!=", 0):
            _vector(w, chains.TOTAL, one, one, 1)
        _invert(w, one, other)


def _invert(w: Writer, total: Register, row: Register) -> None:
    """Behind a request's last block."""
    k = w.k
    with k.scratch("last") as (last,):
        k.mov(last, w.problem.blocks - 1)
        with k.if_(w.done, "==", last):
            _vector(w, chains.INVERTED, total, row, 1)
            k.mov(w.ended, 1)


def finish(w: Writer) -> None:
    """The results of the last request."""
    _results(w)


def _results(w: Writer) -> None:
    """Results, divided by the sum of their powers, to memory, and the largest magnitude of each head. The heads of each
    head of keys have their results in rows of their own, and lie in one row behind each other here."""
    k, p, at = w.k, w.problem, w.at
    with k.scratch("rows staged magnitudes") as (rows, staged, magnitudes):
        k.mov(staged, at.staged)
        k.set(Unit.VECTOR, b_row=staged)
        k.empty(Unit.VECTOR, wait=(w.staged_free, w.o_done))
        for own in reversed(range(p.key_heads)):
            k.mov(rows, at.results + own * p.head)
            k.set(Unit.VECTOR, iota_base=-(own + 1) * p.group)
            if own == p.key_heads - 1:
                _vector(w, chains.LAST_HEADS, rows, staged, p.head, bf16=True)
            else:
                _vector(w, chains.HEADS, rows, staged, p.head, bf16=True, **_STAGED_B)
        _vector(w, chains.MAGNITUDES, staged, staged, p.head, bf16=True, **_STAGED_A)
        k.vfold(chains.FOUND, Reduction.MAX)
        k.mov(magnitudes, at.staged + p.head)
        _vector(w, chains.THE_FOUND, staged, magnitudes, 1, bf16=True, signal=w.staged, **_STAGED_A)
        k.store(w.out, staged, 1, wait=w.staged, signal=w.staged_free)
        k.add(w.out, w.out, 2 * w.n * p.result_step)


def _vector(
    w: Writer,
    chain: Chain,
    source: Register,
    out: Register,
    rows: int,
    *,
    bf16: bool = False,
    wait: Semaphores = (),
    signal: Semaphores = (),
    **flags: Any,
) -> None:
    to, number = ElementType.BF16 if bf16 else ElementType.FP32, w.k.chain(chain)
    w.k.vector(source, out, rows, dtype=ElementType.FP32, out=to, chain=number, wait=wait, signal=signal, **flags)


def _bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))
