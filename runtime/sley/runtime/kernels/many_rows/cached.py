"""Heads of single tokens on their way to attention: queries to rows of their own, keys and values to the cache.

Tables of a token are at its position, its keys and values in its slot: lists say where, which are in both halves of the
accumulators, as Store takes them from that in which the array is not.
"""

from __future__ import annotations

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.runtime.kernels.many_rows.placement import tables_of
from sley.runtime.kernels.many_rows.writer import Writer

_ACCUMULATORS = Space.ACCUMULATOR
QUERIES, SLOTS = 1, 2
"""Lists, in the order in which they are given; the first one are rows of tables."""


def load_lists(w: Writer) -> None:
    """All lists, to both halves."""
    k, at, rows = w.k, w.at, w.list_rows
    assert w.places is not None
    k.set(Unit.LOAD, run_bytes=4 * at.tokens, chunks=rows, chunk_stride=1, count2=1)
    k.set(Unit.LOAD, mem_stride=4 * at.tokens, local_stride=rows)
    with k.scratch("row") as (row,):
        for half in (0, at.half):
            k.mov(row, half + at.lists)
            k.load(w.places, row, 3, space=_ACCUMULATORS, signal=w.listed if half else ())
    k.free(w.places)


def load_tables(w: Writer) -> None:
    """Cosines, then sines, of each block of a head, in the half of its groups."""
    k, at, p = w.k, w.at, w.problem
    k.set(Unit.LOAD, run_bytes=4 * w.n, chunks=1, local_stride=1, count2=1, list_row=at.lists)
    k.empty(Unit.LOAD, wait=w.listed)
    with k.scratch("address row") as (address, row):
        for half in (0, 1):
            k.mov(row, half * at.half + at.tables)
            for block in tables_of(w.config, p, half):
                for table in w.tables:
                    k.add(address, table, 4 * w.n * block)
                    k.load(address, row, at.tokens, space=_ACCUMULATORS, by_list=True)
                    k.add(row, row, at.tokens)
    k.empty(Unit.LOAD, signal=w.tables_full)


def load_operands(w: Writer) -> None:
    """Scales of the outputs of all groups, each half's behind each other."""
    k, at, p = w.k, w.at, w.problem
    pairs = p.pairs(w.config)
    heads = 1 if pairs % 2 == 0 else 2  # until groups have the same halves again
    period, row_bytes = heads * pairs, 4 * w.n
    k.set(Unit.LOAD, run_bytes=row_bytes, chunks=1, count2=2, mem_stride2=row_bytes * pairs, local_stride2=1)
    k.set(Unit.LOAD, mem_stride=2 * row_bytes * period, local_stride=at.group_operands * (period // 2))
    with k.scratch("address row") as (address, row):
        for group in range(min(period, p.groups)):
            head, pair = divmod(group, pairs)
            k.add(address, w.factors, row_bytes * (2 * pairs * head + pair))
            k.mov(row, group % 2 * at.half + at.operands + group // 2 * at.group_operands)
            k.load(address, row, -(-(p.groups - group) // period), space=_ACCUMULATORS)
    k.empty(Unit.LOAD, signal=w.operands_full)


def take_list(w: Writer) -> None:
    """Store takes the list of what it stores now, from the half of its group."""
    k = w.k
    with k.scratch("row") as (row,):
        k.add(row, w.half, w.list_row)
        k.set(Unit.STORE, list_row=row)


def begin(w: Writer) -> None:
    """The first head of queries; registers for what is loaded by now."""
    k, at, p = w.k, w.at, w.problem
    assert w.scales is not None
    k.free(w.scales, *w.tables)
    w.turn, w.list_row = k.reg("turn", at.tables), k.reg("list", at.lists + QUERIES * w.list_rows)
    w.group_left, w.groups_left = k.reg("group", p.group), k.reg("groups", p.key_heads)


def next_head(w: Writer) -> None:
    """The next head of queries, in the columns of its head of keys, then those of keys, and of values."""
    k, at, p = w.k, w.at, w.problem
    assert w.keys is not None
    with k.if_(w.groups_left, "==", 0):
        k.add(w.out, w.out, 2 * p.head)
    with k.if_(w.groups_left, "!=", 0):
        k.add(w.out, w.out, 2 * p.head * p.key_heads)
        k.sub(w.group_left, w.group_left, 1)
        with k.if_(w.group_left, "==", 0):
            k.add(w.out, w.out, 2 * p.head)
            k.mov(w.group_left, p.group)
            k.sub(w.groups_left, w.groups_left, 1)
            with k.if_(w.groups_left, "==", 0):
                k.mov(w.out, w.keys)
                k.mov(w.list_row, at.lists + SLOTS * w.list_rows)


def begin_values(w: Writer) -> None:
    """The first head of values."""
    assert w.values is not None
    w.k.mov(w.out, w.values)
