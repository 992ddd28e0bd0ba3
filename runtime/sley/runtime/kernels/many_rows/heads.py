"""Tokens that are what attention leaves: rows of int8 in the scratchpad, and their scales.

For each token and each launch of attention come the elements of a head in bfloat16, a row each, of which lanes are
heads, and a row of the largest magnitudes. Load transposes a chunk of N elements of all heads at a time, so heads are
rows behind each other.
"""

from __future__ import annotations

from typing import Any

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain
from sley.runtime.kernels.many_rows import chains
from sley.runtime.kernels.many_rows.problem import HIGH
from sley.runtime.kernels.many_rows.statistics import folded, set_scale
from sley.runtime.kernels.many_rows.writer import Writer, bits

_A: dict[str, Any] = {"a_space": Space.SCRATCHPAD, "a_type": ElementType.BF16}
_B: dict[str, Any] = {"b_space": Space.SCRATCHPAD, "b_type": ElementType.BF16}
_FLOAT: dict[str, Any] = {"dtype": ElementType.FP32, "out": ElementType.FP32}


def load_heads(w: Writer) -> None:
    """Largest magnitudes, then all chunks."""
    k, at, p = w.k, w.at, w.problem
    row_bytes, results = 2 * w.n, at.tokens * len(p.lanes)
    k.set(Unit.LOAD, run_bytes=row_bytes, chunks=1, mem_stride=row_bytes * (p.head + 1), local_stride=1)
    with k.scratch("address row") as (address, row):
        k.add(address, w.x, row_bytes * p.head)
        k.mov(row, _magnitudes(w))
        k.load(address, row, results, signal=w.given)
        k.mov(row, at.staged)
        k.set(Unit.LOAD, mem_stride=row_bytes, local_stride=w.n)
        k.set(Unit.LOAD, count2=results, mem_stride2=row_bytes * (p.head + 1), local_stride2=p.head)
        k.load(w.x, row, p.head, transpose=True, signal=w.given)
    k.set(Unit.LOAD, count2=1, chunk_stride=1)


def scales(w: Writer) -> None:
    """The scale of each token, in all lanes of a row, for the endings; its inverse."""
    k, at, p = w.k, w.at, w.problem
    pieces = len(p.lanes)
    with k.scratch("magnitudes most scale") as (magnitudes, most, scale):
        k.mov(most, _inverses(w))
        k.mov(magnitudes, _magnitudes(w) + pieces - 1)
        k.set(Unit.VECTOR, b_row=magnitudes, b_stride=pieces, a_stride=pieces)
        k.mov(magnitudes, _magnitudes(w))
        k.empty(Unit.VECTOR, wait=w.given)
        larger = k.chain(chains.LARGER)
        k.vector(magnitudes, most, at.tokens, chain=larger, **_FLOAT, **_A, **_B)
        k.set(Unit.VECTOR, b_row=most, b_stride=1)
        for piece in range(1, pieces - 1):
            k.mov(magnitudes, _magnitudes(w) + piece)
            k.vector(magnitudes, most, at.tokens, chain=larger, **_FLOAT, **_A)
        k.set(Unit.VECTOR, a_stride=1)
        folded(w, chains.FOLD_LARGER, most)
        set_scale(w)
        for half in (0, at.half):
            k.mov(scale, half + at.scales)
            w.vector(chains.SCALE, most, scale)
        w.vector(chains.INVERSE, scale, most)


def convert(w: Writer) -> None:
    """All chunks, some at a time. Those of an even number are the first halves of rows."""
    k, at, p = w.k, w.at, w.problem
    k.empty(Unit.VECTOR, wait=w.given)
    for first in range(0, p.head // w.n, at.piece):
        chunks = range(first, first + at.piece)
        k.set(Unit.VECTOR, b_stride=0)
        for chunk in chunks:
            _to_units(w, chunk)
        k.set(Unit.VECTOR, b_stride=1)
        if p.parts == 1:
            _to_parts(w, chains.AS_IT_IS, chunks)
        else:
            k.set(Unit.VECTOR, splat0=bits(1 / HIGH))
            _to_parts(w, chains.HIGH, chunks)
            k.set(Unit.VECTOR, splat0=bits(-HIGH))
            _to_parts(w, chains.LOW, chunks)
            k.set(Unit.VECTOR, splat0=bits(HIGH))


def _to_units(w: Writer, chunk: int) -> None:
    """A chunk of all heads times the inverse scales, heads behind heads and tokens behind tokens."""
    k, at, p = w.k, w.at, w.problem
    number = k.chain(chains.UNITS)
    with k.scratch("source out inverse") as (source, out, inverse):
        k.mov(source, at.staged + chunk * w.n)
        k.mov(out, _units(w, chunk))
        k.mov(inverse, _inverses(w))
        with k.loop(at.tokens):
            k.set(Unit.VECTOR, b_row=inverse)
            for lanes in p.lanes:
                k.vector(source, out, lanes, chain=number, **_FLOAT, **_A)
                k.add(source, source, p.head)
                k.add(out, out, lanes)
            k.add(inverse, inverse, 1)


def _to_parts(w: Writer, chain: Chain, chunks: range) -> None:
    """One part of all tokens; of LOW, A are the high parts and B what both come from."""
    k, at, p = w.k, w.at, w.problem
    number, stride = k.chain(chain), p.head // (2 * w.n)
    flags: dict[str, Any] = {"dtype": ElementType.FP32, "out": ElementType.INT8, "chain": number}
    k.set(Unit.VECTOR, out_stride=stride)
    if chain is chains.LOW:
        k.set(Unit.VECTOR, a_stride=stride)
    with k.scratch("units high low") as (units, high, low):
        for chunk in chunks:
            half, rows = chunk % 2, at.tokens * sum(p.lanes)
            k.mov(units, _units(w, chunk))
            k.mov(high, chunk // 2)
            if chain is chains.LOW:
                k.set(Unit.VECTOR, b_row=units)
                k.mov(low, chunk // 2 + at.tokens * p.tiles(w.config))
                k.vector(high, low, rows, a_space=Space.SCRATCHPAD, a_half=half, out_half=half, **flags)
            else:
                k.vector(units, high, rows, out_half=half, **flags)
    k.set(Unit.VECTOR, out_stride=1, a_stride=1)


def _magnitudes(w: Writer) -> int:
    """Scratchpad rows behind those of chunks."""
    return w.at.staged + w.at.tokens * len(w.problem.lanes) * w.problem.head


def _inverses(w: Writer) -> int:
    """In the second half, a row for each token."""
    return w.at.half + w.at.floats


def _units(w: Writer, chunk: int) -> int:
    """Of a chunk, in the half of its parity."""
    at, rows = w.at, w.at.tokens * sum(w.problem.lanes)
    return (chunk % 2) * at.half + at.floats + at.tokens + chunk % at.piece // 2 * rows
