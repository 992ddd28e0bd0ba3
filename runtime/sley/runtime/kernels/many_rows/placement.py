"""Where the pieces of a product of many rows lie in a core.

Sums of groups are in the two halves of the accumulators by turns, and so is all that their ending takes: the array
works in one half and the vector unit in the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from sley.abi.config import ChipConfig
from sley.runtime.errors import KernelError
from sley.runtime.kernels.many_rows.problem import Ending, ManyRows

_BANDS = (4, 2, 1)
"""Rows of a band that are tried, in units of N."""
_FEW = 8
"""Rows that may be a single band, in these units."""


@dataclass(frozen=True)
class Placement:
    """Rows of the local memories.

    Attributes
    ----------
    rows, tokens: rows of activations, and tokens, of a band. bands: of a core.
    x_slots, x_rows: places for a band in the scratchpad, from row 0 on; rows of each.
    first_slot, slots, block_rows: places for the weights of a group; rows of a block of N outputs.
    half: accumulator rows of a half. In each half: sums; scales, rows with the scales of all tokens of the core;
    operands, what is loaded for a group; products, if they are the result; squares and peaks, partial sums and largest
    values of each token; results, two rows for each token, in the second half alone; tables, cosines and sines of a
    block of a head, and spare, two rows for each token.
    staged: scratchpad rows of results of bfloat16, two blocks for each half.
    """

    rows: int
    tokens: int
    bands: int
    x_slots: int
    x_rows: int
    first_slot: int
    slots: int
    block_rows: int
    half: int
    sums: int
    scales: int
    operands: int
    products: int
    squares: int
    peaks: int
    results: int
    tables: int
    spare: int
    staged: int


def place(config: ChipConfig, problem: ManyRows) -> Placement:
    """The largest bands that leave room for the weights of the next group, or fit at all.

    Raises ``KernelError`` if none does, or a side is no multiple of what it must be.
    """
    n, p = config.array, problem
    if p.ending is Ending.ADDED and p.blocks % 2:
        raise KernelError(
            f"{p.name}: a norm over {p.blocks * n} outputs; on the chip {config.name} they are a multiple of {2 * n}"
        )
    if p.ending is Ending.TURNED and (p.head % (2 * n) or p.blocks * n % p.head):
        raise KernelError(
            f"{p.name}: heads of {p.head} elements; on the chip {config.name} they are a multiple of {2 * n}"
        )
    bands = [units * n for units in _BANDS if p.tokens % n == 0 and units * n % (n * p.parts) == 0]
    bands += [p.tokens * p.parts] if p.tokens * p.parts <= _FEW * n else []
    for slots, rows, x_slots in product((2, 1), bands, (2, 1)):
        if p.tokens * p.parts % (rows * p.cores) == 0:
            found = _placed(config, p, rows, x_slots)
            if found is not None and found.slots >= slots:
                return found
    raise KernelError(
        f"{p.name}: {p.tokens} tokens of {p.parts} parts with {p.inputs} inputs have no room on the chip "
        f"{config.name}, or are more than {_FEW * n // p.parts} and no multiple of {2 * n} for each core: take fewer "
        "inputs, or pad tokens"
    )


def tables_of(config: ChipConfig, problem: ManyRows, half: int) -> list[int]:
    """Blocks of a head of TURNED, from 0 on, whose groups are in this half."""
    pairs = problem.pairs(config)
    return list(range(pairs)) if pairs % 2 else list(range(half, pairs, 2))


def _placed(config: ChipConfig, p: ManyRows, rows: int, x_slots: int) -> Placement | None:
    n, tiles = config.array, p.tiles(config)
    tokens, block_rows = rows // p.parts, tiles * n
    turned = p.ending is Ending.TURNED
    staged = 4 * tokens if turned else 0
    x_rows, group_rows = tiles * rows, p.together * block_rows
    slots = min((config.scratchpad_rows - x_slots * x_rows - staged) // group_rows, 3)
    added = p.ending is Ending.ADDED
    sizes = {
        "sums": p.together * rows,
        "scales": -(-p.tokens // p.cores // n),
        "operands": p.together + (1 + tokens if added else 0),
        "products": tokens if p.ending is Ending.SCALED else 0,
        "squares": tokens if added else 0,
        "peaks": tokens if p.gives_scales else 0,
        "results": 2 * tokens if p.gives_scales else 0,
        "tables": 2 * tokens * len(tables_of(config, p, 0)) if turned else 0,
        "spare": 2 * tokens if turned else 0,
    }
    starts, end = {}, 0
    for name, size in sizes.items():
        starts[name], end = end, end + size
    half = config.accumulator_rows // 2
    if slots < 1 or end > half:
        return None
    return Placement(
        rows=rows,
        tokens=tokens,
        bands=p.tokens // p.cores // tokens,
        x_slots=x_slots,
        x_rows=x_rows,
        first_slot=config.scratchpad_rows - slots * group_rows,
        slots=slots,
        block_rows=block_rows,
        half=half,
        staged=x_slots * x_rows,
        **starts,
    )
