"""Loads of token attention: lists and masks a step ahead, queries with the first keys of their request."""

from __future__ import annotations

from itertools import pairwise

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.runtime.kernels.token_attention.writer import Writer

_CHUNKS = 8
"""Chunks of a run that Load transposes."""


def lists(w: Writer) -> None:
    """Where the keys of the next step are, and which of them there are. Keys and values have lists of their own, each
    in the half in which the array does not work then; that of values comes last, when the array leaves its half."""
    k, p, at = w.k, w.problem, w.at
    rows = p.block // w.n
    with k.if_(w.lists_left, "!=", 0):
        k.set(Unit.LOAD, run_bytes=4 * p.block, chunks=rows, chunk_stride=1)
        with k.scratch("row") as (row,):
            k.add(row, w.load_list, at.key_lists)
            k.load(w.lists, row, 1, space=Space.ACCUMULATOR, wait=w.list_free)
            k.add(row, w.load_list, at.masks)
            k.load(w.mask, row, 1, space=Space.ACCUMULATOR, wait=w.mask_free, signal=w.mask_full)
            k.add(row, w.load_list, at.value_lists)
            k.load(w.lists, row, 1, space=Space.ACCUMULATOR, signal=w.list_full)
        for register in (w.lists, w.mask):
            k.add(register, register, 4 * p.block)
        w.next_list(w.load_list, 0)
        k.sub(w.lists_left, w.lists_left, 1)


def queries(w: Writer) -> None:
    """Of a request, transposed: rows for the elements of a head, a lane for each head."""
    k, p = w.k, w.problem
    k.set(Unit.LOAD, mem_stride=2 * p.head_step, local_stride=0, chunk_stride=w.n)
    with k.scratch("address row") as (address, row):
        pieces = _pieces(p.width // w.n)
        for first, count in pieces:
            k.set(Unit.LOAD, run_bytes=2 * w.n * count, chunks=count)
            k.add(address, w.q, 2 * w.n * first)
            k.add(row, w.load_queries, w.n * first)
            k.load(
                address,
                row,
                p.heads,
                transpose=True,
                wait=() if first else w.q_free,
                signal=w.q_full if first + count == p.width // w.n else (),
            )
    k.add(w.q, w.q, 2 * p.request_step)
    w.other(w.load_queries, w.at.queries, p.width)


def keys(w: Writer) -> None:
    """Of a step: chunk c of key r at c · block + r."""
    k, p, at = w.k, w.problem, w.at
    k.set(Unit.LOAD, run_bytes=2 * p.width, chunks=p.width // w.n, chunk_stride=p.block, local_stride=1)
    with k.scratch("row") as (row,):
        k.add(row, w.key_list, at.key_lists)
        k.set(Unit.LOAD, list_row=row)
        k.mov(row, at.keys)
        k.load(w.keys, row, p.block, by_list=True, wait=(w.k_free, w.list_full), signal=w.k_full)
    w.next_list(w.key_list, 0)


def values(w: Writer) -> None:
    """Of the same step, transposed: element e of the keys of a fold in row fold · width + e."""
    k, p, at = w.k, w.problem, w.at
    k.set(Unit.LOAD, chunk_stride=w.n, local_stride=p.width)
    keys = p.block // w.value_parts
    with k.scratch("address row") as (address, row):
        for part in range(w.value_parts):
            k.add(row, w.value_list, at.value_lists + part * keys // w.n)
            k.set(Unit.LOAD, list_row=row)
            for first, count in _pieces(p.width // w.n):
                k.set(Unit.LOAD, run_bytes=2 * w.n * count, chunks=count)
                k.add(address, w.values, 2 * w.n * first)
                k.mov(row, at.values + part * keys // w.n * p.width + w.n * first)
                last = first + count == p.width // w.n
                k.load(
                    address,
                    row,
                    keys,
                    transpose=True,
                    by_list=True,
                    wait=() if first else w.v_free,
                    signal=w.v_full if last else (),
                )
        k.empty(Unit.LOAD, signal=w.list_free)
    w.next_list(w.value_list, 0)


def _pieces(chunks: int) -> list[tuple[int, int]]:
    """Chunks that are transposed together: the first one and how many, as even as they come."""
    count = -(-chunks // _CHUNKS)
    ends = [chunks * i // count for i in range(count + 1)]
    return [(a, b - a) for a, b in pairwise(ends)]
