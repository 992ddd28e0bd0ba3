"""Where the pieces of a product of many rows lie in a core.

Sums of groups are in the two halves of the accumulators by turns, and so is all that their ending takes: the array
works in one half and the vector unit in the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from sley.abi.config import ChipConfig
from sley.abi.instructions import SEMAPHORE_MAX
from sley.runtime.errors import KernelError
from sley.runtime.kernels.many_rows.problem import Ending, ManyRows, Source

_BANDS = (4, 2, 1)
"""Rows of a band that are tried, in units of N."""
_FEW = 8
"""Rows that may be a single band, in these units."""

_STREAMED = 3
"""Groups of weights ahead, if those of operands wait for the array in front of them."""


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
    block of a head, and spare, two rows for each token; lists, of CACHED three, see there.
    staged: scratchpad rows of results of bfloat16, two blocks for each half; of HEADS, of what is loaded.
    resident, group_operands: whether operands are those of all groups; rows of each.
    floats, piece: accumulator rows, in both halves, of what becomes int8; rows of each token, or of each head, that do
    at a time.
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
    lists: int
    staged: int
    resident: bool
    group_operands: int
    floats: int
    piece: int


def place(config: ChipConfig, problem: ManyRows) -> Placement:
    """The largest bands that leave room for the weights of the next group, or fit at all.

    Raises ``KernelError`` if none does, or a side is no multiple of what it must be.
    """
    n, p = config.array, problem
    if p.ending is Ending.ADDED and p.blocks % 2:
        raise KernelError(
            f"{p.name}: a norm over {p.blocks * n} outputs; on the chip {config.name} they are a multiple of {2 * n}"
        )
    if p.source is Source.HEADS and (p.head % (2 * n) or max(p.lanes) > n or sum(p.lanes) * p.head != p.inputs):
        raise KernelError(
            f"{p.name}: launches of {p.lanes} heads of {p.head} elements; on the chip {config.name} heads have a "
            f"multiple of {2 * n} elements, a launch at most {n} heads, and all together are the inputs"
        )
    if p.source is not Source.INT8 and (p.inputs % n or p.cores > 1):
        raise KernelError(
            f"{p.name}: rows of {p.inputs} in fp32 for {p.cores} cores; on the chip {config.name} inputs are a "
            f"multiple of {n}, and there is one core: give them as int8"
        )
    if p.of_heads and (p.head % (2 * n) or p.blocks * n % p.head):
        raise KernelError(
            f"{p.name}: heads of {p.head} elements; on the chip {config.name} they are a multiple of {2 * n}"
        )
    if p.ending is Ending.CACHED and (p.source is Source.INT8 or p.turned % (p.group + 1)):
        raise KernelError(
            f"{p.name}: {p.turned} heads that are turned, {p.group} of queries for each of keys, of tokens in "
            f"{p.source.value}; tokens are floats, and heads of keys divide those of queries"
        )
    bands = [units * n for units in _BANDS if p.tokens % n == 0 and units * n % (n * p.parts) == 0]
    bands += [p.tokens * p.parts] if p.tokens * p.parts <= _FEW * n else []
    for slots, rows, x_slots in product((2, 1), bands, (2, 1)):
        if p.tokens * p.parts % (rows * p.cores) == 0:
            for resident in (True, False):
                found = _placed(config, p, rows, x_slots, resident=resident)
                if found is not None and found.slots >= slots:
                    return found
    raise KernelError(
        f"{p.name}: {p.tokens} tokens of {p.parts} parts with {p.inputs} inputs have no room on the chip "
        f"{config.name}, or are more than {_FEW * n // p.parts} and no multiple of {2 * n} for each core: take fewer "
        "inputs, or pad tokens"
    )


def tables_of(config: ChipConfig, problem: ManyRows, half: int) -> list[int]:
    """Blocks of a head, from 0 on, whose groups are in this half."""
    pairs = problem.pairs(config)
    return list(range(pairs)) if pairs % 2 else list(range(half, pairs, 2))


def _placed(config: ChipConfig, p: ManyRows, rows: int, x_slots: int, *, resident: bool) -> Placement | None:
    n, tiles = config.array, p.tiles(config)
    tokens, block_rows = rows // p.parts, tiles * n
    turned, cached = p.of_heads, p.ending is Ending.CACHED
    heads = p.source is Source.HEADS
    staged = tokens * len(p.lanes) * (p.head + 1) if heads else 4 * tokens if turned else 0
    x_rows, group_rows = tiles * rows, p.together * block_rows
    bands = p.tokens // p.cores // tokens
    if bands > 1 and (resident or p.source is not Source.INT8):
        return None
    if turned and resident is not cached:
        return None
    # Store would wait for the array in the bank of activations, of which the array reads a row in each cycle.
    staged_at = _next_bank(config, x_rows) if cached else x_slots * x_rows
    slots = _slots(config, staged_at + staged, group_rows, SEMAPHORE_MAX if resident else _STREAMED)
    added = p.ending is Ending.ADDED
    operands = p.together + (1 + tokens if added else 0)
    sizes = {
        "sums": p.together * rows,
        "scales": tokens if heads else -(-p.tokens // p.cores // n),
        "operands": operands * (-(-p.groups // 2) if resident else 1),
        "products": tokens if p.ending is Ending.SCALED else 0,
        "squares": tokens if added else 0,
        "peaks": tokens if p.gives_scales else 0,
        "results": 2 * tokens if p.gives_scales else 0,
        "tables": 2 * tokens * len(tables_of(config, p, 0)) if turned else 0,
        "spare": 2 * tokens if turned else 0,
        "lists": 3 * -(-tokens // n) if cached else 0,
    }
    starts, end = {}, 0
    for name, size in sizes.items():
        starts[name], end = end, end + size
    half = config.accumulator_rows // 2
    piece = _piece(config, p, half - end)
    if slots < 1 or end > half or piece is None:
        return None
    return Placement(
        rows=rows,
        tokens=tokens,
        bands=bands,
        x_slots=x_slots,
        x_rows=x_rows,
        first_slot=config.scratchpad_rows - slots * group_rows,
        slots=slots,
        block_rows=block_rows,
        half=half,
        staged=staged_at,
        resident=resident,
        group_operands=operands,
        floats=end,
        piece=piece,
        **starts,
    )


def _slots(config: ChipConfig, before: int, rows: int, most: int) -> int:
    """Places for groups of weights, up to so many: in banks of their own, if two have room there, as the array reads
    weights and activations at the same time."""
    apart, close = ((config.scratchpad_rows - used) // rows for used in (_next_bank(config, before), before))
    return min(apart if apart > 1 else close, most)


def _next_bank(config: ChipConfig, before: int) -> int:
    """The first row of a bank of the scratchpad behind so many rows."""
    bank = config.scratchpad_rows // config.scratchpad_banks
    return -(-before // bank) * bank


def _piece(config: ChipConfig, p: ManyRows, room: int) -> int | None:
    """Rows of each token that become int8 at a time: all, or an even number. They are in one half, and in the other
    what they become, weights of a norm, and the inverse scales, a row of all and one of each. Of HEADS: of each head,
    in both halves by turns, behind the inverse scales."""
    if p.source is Source.INT8:
        return 0
    if p.source is Source.HEADS:
        most = 2 * ((room - p.tokens) // (p.inputs // p.head * p.tokens))
        chunks = p.head // config.array
        return next((count for count in range(chunks, 1, -2) if chunks % count == 0 and count <= most), None)
    rows = p.inputs // config.array
    each = p.tokens + (p.source is Source.NORMED)
    most = (room - p.tokens - -(-p.tokens // config.array)) // each
    pieces = [rows] + [piece for piece in range(rows - 1, 1, -1) if piece % 2 == 0 and rows % piece == 0]
    return next((piece for piece in pieces if piece <= most), None)
