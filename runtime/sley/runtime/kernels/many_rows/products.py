"""What the array does for a group: a tile of inputs after the other, of each of its blocks of outputs."""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.runtime.assembler.operands import Register
from sley.runtime.kernels.many_rows.writer import Writer


def multiply(w: Writer) -> None:
    """Sums of a group, to the half that ``w.half`` names."""
    k, at, p = w.k, w.at, w.problem
    tiles = p.tiles(w.config)
    with k.scratch("row chunk sums") as (row, chunk, sums):
        k.mov(row, w.read_slot)
        for block in range(p.together):
            k.mov(chunk, w.read_x)
            k.add(sums, w.half, at.sums + block * at.rows)
            first, last = block == 0, block == p.together - 1
            _tile(w, (row, chunk, sums), first, last and tiles == 1, accumulate=False)
            if tiles > 2:
                with k.loop(tiles - 2):
                    _tile(w, (row, chunk, sums), False, False, accumulate=True)
            if tiles > 1:
                _tile(w, (row, chunk, sums), False, last, accumulate=True)
    w.next(w.read_slot, at.first_slot, p.together * at.block_rows, at.slots)


def _tile(w: Writer, places: tuple[Register, Register, Register], first: bool, last: bool, *, accumulate: bool) -> None:
    """N outputs of one tile of inputs; the first one of a group waits, the last one signals."""
    k, (row, chunk, sums) = w.k, places
    k.weights(row, w.n, step=w.n_register, wait=w.w_full if first else (), signal=w.w_free if last else ())
    k.matmul(
        chunk,
        sums,
        w.at.rows,
        accumulate=accumulate,
        dtype=ElementType.INT8,
        step=w.one,
        wait=w.sum_free if first else (),
        signal=w.summed if last else (),
    )
