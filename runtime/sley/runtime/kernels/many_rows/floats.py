"""Tokens of fp32 that become rows of int8 in the scratchpad, while Load brings the first weights.

Of each token a piece at a time: times its inverse scale, and rounded to its parts. Rows of the scratchpad hold two rows
of lanes, each in a half of their bytes.
"""

from __future__ import annotations

from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain
from sley.runtime.assembler.operands import Register
from sley.runtime.kernels.many_rows import chains
from sley.runtime.kernels.many_rows.problem import HIGH, Source
from sley.runtime.kernels.many_rows.writer import Writer, bits

_ONE_BY_ONE = 8
"""Tokens up to which each begins when it is here; a semaphore counts them."""


def load_inverses(w: Writer) -> None:
    """The inverse scales of all tokens, in lanes."""
    k = w.k
    assert w.x_inverses is not None
    k.set(Unit.LOAD, run_bytes=4 * w.at.tokens, chunks=-(-w.at.tokens // w.n))
    with k.scratch("row") as (row,):
        k.mov(row, _inverses(w))
        k.load(w.x_inverses, row, 1, space=Space.ACCUMULATOR, signal=w.given)
    k.free(w.x_inverses)


def spread_inverses(w: Writer) -> None:
    """A row for each token."""
    k = w.k
    with k.scratch("row") as (row,):
        k.set(Unit.VECTOR, b_row=_inverses(w), b_stride=1, a_stride=0)
        k.mov(row, _spread(w))
        w.vector(chains.SPREAD, row, row, wait=w.given)
    k.set(Unit.VECTOR, a_stride=1)


def load_piece(w: Writer) -> None:
    """The next piece of all tokens."""
    k, at, p = w.k, w.at, w.problem
    k.set(Unit.LOAD, run_bytes=4 * w.n * at.piece, chunks=at.piece, chunk_stride=1, count2=1)
    with k.scratch("address row pitch") as (address, row, pitch):
        if w.x_norm is not None:
            k.mov(row, _norm(w))
            k.load(w.x_norm, row, 1, space=Space.ACCUMULATOR, wait=w.taken)
            k.add(w.x_norm, w.x_norm, 4 * w.n * at.piece)
        else:
            k.empty(Unit.LOAD, wait=w.taken)
        k.mov(address, w.x)
        k.mov(row, at.floats)
        k.mov(pitch, 4 * p.inputs)
        if at.tokens > _ONE_BY_ONE:
            k.set(Unit.LOAD, mem_stride=pitch, local_stride=at.piece)
            k.load(address, row, at.tokens, space=Space.ACCUMULATOR, signal=w.given)
        else:
            with k.loop(at.tokens):
                k.load(address, row, 1, space=Space.ACCUMULATOR, step=pitch, signal=w.given)
                k.add(row, row, at.piece)
        k.add(w.x, w.x, 4 * w.n * at.piece)


def to_units(w: Writer) -> None:
    """A piece times the inverse scales, and weights of a norm."""
    k, at, p = w.k, w.at, w.problem
    with k.scratch("source out inverse") as (source, out, inverse):
        k.mov(source, at.floats)
        k.mov(out, at.half + at.floats)
        k.mov(inverse, _spread(w))
        if w.x_norm is not None:
            k.set(Unit.VECTOR, b_row=_norm(w))
        normed, fp32 = p.source is Source.NORMED, ElementType.FP32
        chain = k.chain(chains.NORMED_UNITS if normed else chains.UNITS)
        if at.tokens > _ONE_BY_ONE:
            k.empty(Unit.VECTOR, wait=w.given)
        waits = () if at.tokens > _ONE_BY_ONE else w.given
        with k.loop(at.tokens):
            if normed:
                k.vrow(VectorRow.SCALE, inverse)
            else:
                k.set(Unit.VECTOR, b_row=inverse, b_stride=0)
            k.vector(source, out, at.piece, dtype=fp32, out=fp32, chain=chain, wait=waits)
            k.add(source, source, at.piece)
            k.add(out, out, at.piece)
            k.add(inverse, inverse, 1)
        k.empty(Unit.VECTOR, signal=w.taken)


def to_parts(w: Writer, chunk: Register) -> None:
    """A piece in units to int8, from this chunk of the rows on."""
    k, at, p = w.k, w.at, w.problem
    units = at.half + at.floats
    if p.parts == 1:
        _parts(w, chains.AS_IT_IS, units, chunk, low=False)
        return
    k.set(Unit.VECTOR, splat0=bits(1 / HIGH))
    _parts(w, chains.HIGH, units, chunk, low=False)
    k.set(Unit.VECTOR, splat0=bits(-HIGH))
    _parts(w, chains.LOW, units, chunk, low=True)
    k.set(Unit.VECTOR, splat0=bits(HIGH))


def _parts(w: Writer, chain: Chain, units: int, chunk: Register, *, low: bool) -> None:
    """One part of all tokens: of ``low`` A are the high parts, and B what both come from."""
    k, at = w.k, w.at
    tiles = w.problem.tiles(w.config)
    number = k.chain(chain)
    k.set(Unit.VECTOR, **({"b_stride": 2, "a_stride": 1} if low else {"a_stride": 2}))
    with k.scratch("source row out") as (source, row, out):
        for half in (0, 1):
            count = (at.piece + 1 - half) // 2
            if not count:
                continue
            k.mov(source, units + half)
            k.mov(row, chunk)
            k.add(out, chunk, at.tokens * tiles)
            with k.loop(at.tokens):
                if low:
                    k.set(Unit.VECTOR, b_row=source)
                    k.vector(
                        row,
                        out,
                        count,
                        a_space=Space.SCRATCHPAD,
                        a_half=half,
                        dtype=ElementType.FP32,
                        out=ElementType.INT8,
                        out_half=half,
                        chain=number,
                    )
                    k.add(out, out, tiles)
                else:
                    k.vector(
                        source, row, count, dtype=ElementType.FP32, out=ElementType.INT8, out_half=half, chain=number
                    )
                k.add(source, source, at.piece)
                k.add(row, row, tiles)
    k.set(Unit.VECTOR, b_stride=1, a_stride=1)


def _inverses(w: Writer) -> int:
    return w.at.half + w.at.floats + w.at.tokens * w.at.piece


def _spread(w: Writer) -> int:
    return _inverses(w) + -(-w.at.tokens // w.n)


def _norm(w: Writer) -> int:
    return _spread(w) + w.at.tokens
