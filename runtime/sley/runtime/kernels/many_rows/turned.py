"""Heads that are turned by the positions of their tokens: of a pair (a, b) and its angle come a · cos - b · sin and
b · cos + a · sin. A group is a block of a head's first half, and the one of the second half with the other elements of
its pairs.
"""

from __future__ import annotations

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.runtime.assembler.operands import Register
from sley.runtime.kernels.many_rows import cached, chains
from sley.runtime.kernels.many_rows.endings import scale
from sley.runtime.kernels.many_rows.placement import tables_of
from sley.runtime.kernels.many_rows.problem import Ending
from sley.runtime.kernels.many_rows.writer import Writer


def load_tables(w: Writer, half: int) -> None:
    """Cosines, then sines, of the blocks of heads in this half of the accumulators, for the tokens of the next band."""
    k, at, p = w.k, w.at, w.problem
    blocks = tables_of(w.config, p, half)
    k.set(Unit.LOAD, run_bytes=4 * w.n, chunks=1, mem_stride=2 * p.head, local_stride=1, count2=1)
    with k.scratch("address row") as (address, row):
        k.mov(row, half * at.half + at.tables)
        for block in blocks:
            for number, table in enumerate(w.tables):
                k.add(address, table, 4 * w.n * block)
                first, last = not half + block + number, half and (block, number) == (blocks[-1], 1)
                k.load(
                    address,
                    row,
                    at.tokens,
                    space=Space.ACCUMULATOR,
                    wait=w.tables_free if first else (),
                    signal=w.tables_full if last else (),
                )
                k.add(row, row, at.tokens)
    if half:
        for table in w.tables:
            k.add(table, table, at.tokens * 2 * p.head)
        k.sub(w.table_bands, w.table_bands, 1)


def next_tables(w: Writer, left: Register, count: int) -> None:
    """Those of the next band: in the first two of ``count`` groups that need none, of which so many are ``left``. Each
    is written when the array has left its half."""
    k = w.k
    with k.if_(w.table_bands, "!=", 0):
        for half in (0, 1):
            with k.scratch("when") as (when,):
                k.mov(when, max(count - half, 1))
                with k.if_(left, "==", when):
                    load_tables(w, half)
        w.set_weights()
    k.sub(left, left, 1)


def turned(w: Writer) -> None:
    """Both blocks, turned."""
    k, at = w.k, w.at
    with k.scratch("a b cos sin spare") as (a, b, cos, sin, spare):
        _scaled(w, a, b)
        k.add(cos, w.half, w.turn)
        k.add(sin, cos, at.tokens)
        k.add(spare, w.half, at.spare)
        w.vector(chains.TIMES, b, spare, sin)
        k.add(spare, spare, at.tokens)
        w.vector(chains.TIMES, a, spare, sin)
        w.vector(chains.TIMES, a, a, cos)
        w.vector(chains.TIMES, b, b, cos)
        _staged(w, cos)
        k.sub(sin, spare, at.tokens)
        w.vector(chains.MINUS, a, cos, sin, bf16=True, wait=w.staged_free)
        k.add(cos, cos, at.tokens)
        w.vector(chains.PLUS, b, cos, spare, bf16=True, signal=(w.done, w.sum_free))
        _store(w)


def rounded(w: Writer) -> None:
    """Both blocks as they are."""
    with w.k.scratch("a b to") as (a, b, to):
        _scaled(w, a, b)
        _staged(w, to)
        w.vector(chains.AS_IT_IS, a, to, bf16=True, wait=w.staged_free)
        w.k.add(to, to, w.at.tokens)
        w.vector(chains.AS_IT_IS, b, to, bf16=True, signal=(w.done, w.sum_free))
        _store(w)


def _scaled(w: Writer, a: Register, b: Register) -> None:
    w.k.add(a, w.half, w.at.sums)
    w.k.add(b, w.half, w.at.sums + w.at.rows)
    scale(w, [a, b], (w.summed, *w.operands_here), w.operands_free)


def _staged(w: Writer, row: Register) -> None:
    """The first row of the half's results in the scratchpad."""
    k, at = w.k, w.at
    k.mov(row, at.staged)
    with k.if_(w.half, "!=", 0):
        k.add(row, row, 2 * at.tokens)


def _store(w: Writer) -> None:
    k, at = w.k, w.at
    by_list = w.problem.ending is Ending.CACHED
    if by_list:
        cached.take_list(w)
    with k.scratch("row address") as (row, address):
        _staged(w, row)
        k.store(w.out, row, at.tokens, by_list=by_list, wait=w.done)
        k.add(row, row, at.tokens)
        k.add(address, w.out, w.problem.head)
        k.store(address, row, at.tokens, by_list=by_list, signal=w.staged_free)


def next_pair(w: Writer) -> None:
    """The next block of a head; its tables."""
    k, pairs = w.k, w.problem.pairs(w.config)
    k.add(w.column, w.column, 4 * w.n)
    k.add(w.out, w.out, 2 * w.n)
    if pairs % 2 and pairs > 1:
        k.add(w.turn, w.turn, 2 * w.at.tokens)
    elif pairs > 2:
        with k.if_(w.half, "==", 0):
            k.add(w.turn, w.turn, 2 * w.at.tokens)


def next_head(w: Writer) -> None:
    """Behind the second half."""
    k, p, pairs = w.k, w.problem, w.problem.pairs(w.config)
    k.add(w.column, w.column, 4 * w.n * pairs)
    k.mov(w.turn, w.at.tables)
    if p.ending is Ending.CACHED:
        k.sub(w.out, w.out, 2 * w.n * pairs)
        cached.next_head(w)
    else:
        k.add(w.out, w.out, 2 * (p.rows_apart * p.head - w.n * pairs))


def next_band(w: Writer) -> None:
    """The first head of the next tokens."""
    p = w.problem
    heads = p.groups // p.pairs(w.config)
    w.k.add(w.out, w.out, 2 * p.head * (w.at.tokens - heads * p.rows_apart))
