"""What is known of each token at the end of a band: its scales.

A row of a token has partial results in its lanes, in each half those of every other group.
"""

from __future__ import annotations

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.vector.chains import Chain
from sley.runtime.assembler.operands import Register
from sley.runtime.kernels.many_rows import chains
from sley.runtime.kernels.many_rows.problem import HIGH, Ending
from sley.runtime.kernels.many_rows.writer import Writer, bits

SMALLEST = 2.0**-100
"""The least scale: that of zeros."""


def _partial(w: Writer) -> list[int]:
    """Rows of partial results in both halves."""
    at = w.at
    places = (at.peaks, at.squares) if w.problem.ending is Ending.ADDED else (at.peaks,)
    return [half + place for half in (0, at.half) for place in places]


def begin(w: Writer) -> None:
    """Partial results of the first band: zeros, by Load."""
    w.k.set(Unit.LOAD, run_bytes=0, chunks=w.at.tokens)
    with w.k.scratch("row") as (row,):
        for place in _partial(w):
            w.k.mov(row, place)
            w.k.load(w.x, row, 1, space=Space.ACCUMULATOR)


def _clear(w: Writer) -> None:
    """Partial results of the next band: zeros."""
    with w.k.scratch("row") as (row,):
        for place in _partial(w):
            w.k.mov(row, place)
            w.vector(chains.ZERO, row, row, row)


def finish(w: Writer) -> None:
    """Scales of the tokens of a band, and what makes int8 of them, to memory."""
    k, at, p = w.k, w.at, w.problem
    with k.scratch("one other scale inverse") as (one, other, scale, inverse):
        k.mov(scale, at.half + at.results)
        k.mov(inverse, at.half + at.results + at.tokens)
        _joined(w, at.peaks, one, other)
        folded(w, chains.FOLD_LARGER, one)
        set_scale(w)
        k.empty(Unit.VECTOR, wait=w.results_free)
        w.vector(chains.SCALE, one, scale)
        if p.ending is Ending.ADDED:
            w.vector(chains.INVERSE, scale, inverse)
            _joined(w, at.squares, one, other)
            folded(w, chains.FOLD_SUM, one)
            k.set(Unit.VECTOR, splat2=bits(1 / (p.blocks * w.n)), splat3=bits(p.epsilon))
            w.vector(chains.MEAN, one, one)
            w.vector(chains.ROOT_TIMES, one, scale, scale, signal=w.results)
        else:
            w.vector(chains.INVERSE, scale, inverse, signal=w.results)
        k.set(Unit.STORE, run_bytes=4, mem_stride=4)
        assert w.next_scales is not None
        assert w.inverses is not None
        k.store(w.next_scales, scale, at.tokens, space=Space.ACCUMULATOR, wait=w.results)
        k.store(w.inverses, inverse, at.tokens, space=Space.ACCUMULATOR, signal=w.results_free)
        w.set_store()
        for register in (w.next_scales, w.inverses):
            k.add(register, register, 4 * at.tokens)
    if at.bands > 1:
        _clear(w)


def _joined(w: Writer, place: int, one: Register, other: Register) -> None:
    """Partial results of both halves, in the second one."""
    w.k.mov(one, w.at.half + place)
    w.k.mov(other, place)
    w.vector(chains.LARGER if place == w.at.peaks else chains.JOINED, other, one, one)


def set_scale(w: Writer) -> None:
    """The numbers of the chain that makes scales of largest magnitudes."""
    steps = 127 if w.problem.parts == 1 else 127 * HIGH
    w.k.set(Unit.VECTOR, splat2=bits(1 / steps), splat3=bits(SMALLEST))


def folded(w: Writer, chain: Chain, rows: Register) -> None:
    """Those of all lanes, in each of them."""
    lanes = 1
    while lanes < w.n:
        w.k.set(Unit.VECTOR, exchange=lanes)
        w.vector(chain, rows, rows)
        lanes *= 2
