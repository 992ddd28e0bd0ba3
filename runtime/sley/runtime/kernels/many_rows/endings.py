"""What becomes of the sums of a group, in the half of the accumulators in which they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sley.abi.instructions import Space, VectorRow
from sley.runtime.assembler.operands import Register, Semaphores
from sley.runtime.kernels.many_rows import chains
from sley.runtime.kernels.many_rows.problem import Ending
from sley.runtime.kernels.many_rows.writer import Writer


def scale(
    w: Writer,
    blocks: Sequence[Register],
    wait: Semaphores = (),
    signal: Semaphores = (),
    out: Register | None = None,
    free: Semaphores = (),
) -> None:
    """Sums of the blocks of the group's half to products in fp32, in place or, when that is ``free``, in ``out``. What
    is done to all of them comes behind each other, as the vector unit does not drain between steps that are alike."""
    k, at, parts = w.k, w.at, w.problem.parts
    with k.scratch("row") as (row,):
        w.operand(row, 0)
        k.vrow(VectorRow.SCALE, row, wait=wait)
        if parts == 2:
            for sums in blocks:
                w.vector(chains.HIGH, sums, sums, integer=True)
            for sums in blocks:
                k.add(row, sums, at.tokens)
                w.vector(chains.JOINED, row, sums, sums, integer=True)
        for number, sums in enumerate(blocks):
            if number:
                w.operand(row, number)
                k.vrow(VectorRow.SCALE, row)
            k.add(row, w.half, w.token_row)
            last = signal if number == len(blocks) - 1 else ()
            chain = chains.scaled(w.problem)
            w.vector(chain, sums, out or sums, row, integer=parts == 1, wait=free, signal=last)


def _store(w: Writer, rows: Register, free: Semaphores) -> None:
    with w.k.scratch("address") as (address,):
        w.k.add(address, w.out, w.column)
        w.k.store(address, rows, w.at.tokens, space=Space.ACCUMULATOR, wait=w.done, signal=free)


def scaled(w: Writer) -> None:
    """Products are the result."""
    k, at = w.k, w.at
    with k.scratch("sums out") as (sums, out):
        k.add(sums, w.half, at.sums)
        k.add(out, w.half, at.products)
        signals = (w.done, *w.operands_free, w.sum_free)
        scale(w, [sums], (w.summed, *w.operands_here), signals, out, w.products_free)
        _store(w, out, w.products_free)


def gated(w: Writer) -> None:
    """silu(first) · second, and its largest magnitudes."""
    k, at = w.k, w.at
    with k.scratch("gate up peaks") as (gate, up, peaks):
        k.add(gate, w.half, at.sums)
        k.add(up, w.half, at.sums + at.rows)
        k.add(peaks, w.half, at.peaks)
        scale(w, [gate, up], (w.summed, *w.operands_here), w.operands_free)
        w.vector(chains.SILU, gate, gate)
        w.vector(chains.TIMES, gate, gate, up)
        w.vector(chains.PEAK, gate, peaks, peaks, signal=w.done)
        _store(w, gate, w.sum_free)


def added(w: Writer) -> None:
    """The result and products; sums of its squares, and largest magnitudes of it times the norm's weights."""
    k, at = w.k, w.at
    with k.scratch("x other") as (x, other):
        w.operand(x, 2)
        k.add(other, w.half, at.sums)
        scale(w, [other], (w.summed, *w.operands_here))
        w.vector(chains.JOINED, other, x, x)
        k.add(other, w.half, at.squares)
        w.vector(chains.SQUARES, x, other, other)
        w.operand(other, 1)
        k.vrow(VectorRow.ROW2, other)
        k.add(other, w.half, at.peaks)
        w.vector(chains.NORM_PEAK, x, other, other, signal=(w.done, w.sum_free))
        _store(w, x, w.operands_free)


ENDINGS: dict[Ending, Callable[[Writer], None]] = {
    Ending.SCALED: scaled,
    Ending.ADDED: added,
    Ending.GATED: gated,
}
