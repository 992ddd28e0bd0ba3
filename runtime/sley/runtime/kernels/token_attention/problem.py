"""Attention of single tokens to keys and values that lie anywhere in memory, and where its pieces lie in a core.

Scores are in one half of the accumulators and results in the other, so the vector unit works on one while the array
adds to the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.runtime.errors import KernelError

LISTS = 3
"""Places for lists, and for masks."""
_BLOCKS = (8, 4, 2, 1)
"""Keys of a block that are tried, in units of N."""


@dataclass(frozen=True)
class TokenAttention:
    """A problem.

    Attributes
    ----------
    requests, keys: tokens, and keys that each may see, a multiple of ``block``.
    width, key_heads: elements of the keys, or values, of a slot; heads of keys in them.
    heads: of queries, each a lane, as many for each head of keys. head_step, request_step: elements from a head's query
        to that of the next head, and to that of the next request. result_step: rows of the results from a request to
        the next one. factor: what scores are multiplied by, in units of log2.
    block: keys whose softmax is joined with those before, see ``key_block``; bits depend on it.
    cores: blocks of the grid, which take as many requests each.
    """

    requests: int
    keys: int
    width: int
    key_heads: int
    heads: int
    head_step: int
    request_step: int
    result_step: int
    factor: float
    block: int
    cores: int = 1

    @property
    def head(self) -> int:
        """Elements of a head."""
        return self.width // self.key_heads

    @property
    def group(self) -> int:
        """Heads of queries for each head of keys."""
        return self.heads // self.key_heads

    @property
    def result_rows(self) -> int:
        """Of a request: the elements of a head, and the largest magnitude of each head."""
        return self.head + 1

    @property
    def blocks(self) -> int:
        """Of a request."""
        return self.keys // self.block

    @property
    def steps(self) -> int:
        """Blocks of all requests of a core."""
        return self.requests // self.cores * self.blocks


@dataclass(frozen=True)
class Placement:
    """Rows of the scratchpad: keys, chunk after chunk; values, transposed; queries, two places; powers; results and the
    largest magnitudes. Of the accumulators: results, lists of values and masks, ``LISTS`` places each; scores, lists of
    keys; rows of one number for each head."""

    keys: int
    values: int
    queries: int
    powers: int
    staged: int
    results: int
    value_lists: int
    masks: int
    scores: int
    key_lists: int
    most: int
    higher: int
    total: int
    faded: int


def place(config: ChipConfig, problem: TokenAttention) -> Placement:
    """Where the pieces lie. Raises ``KernelError`` if there are more heads than lanes, or blocks have no room."""
    n, p = config.array, problem
    if p.heads > n:
        raise KernelError(
            f"attention of {p.heads} heads to the keys of one token; on the chip {config.name} there are at most {n}"
        )
    if p.width % p.key_heads or p.heads % p.key_heads:
        raise KernelError(
            f"attention of {p.heads} heads to {p.key_heads} of keys in {p.width} elements: heads of keys divide both"
        )
    found = _placed(config, p.width, p.block)
    if found is None or p.width % n or p.keys % p.block:
        raise KernelError(
            f"attention to {p.keys} keys of {p.width} elements, {p.block} at a time: on the chip {config.name} "
            f"elements are a multiple of {n}, and keys one of what has room at a time"
        )
    return found


def key_block(config: ChipConfig, width: int) -> int:
    """Keys of a block for such a width: as many as have room. Raises ``KernelError`` if none has."""
    for units in _BLOCKS:
        if _placed(config, width, units * config.array) is not None:
            return units * config.array
    raise KernelError(f"keys of {width} elements have no room on the chip {config.name}")


def _placed(config: ChipConfig, width: int, block: int) -> Placement | None:
    n = config.array
    side = width // n * block
    starts, end = dict[str, int](), 0
    sizes = {"keys": side, "values": side, "queries": 2 * width, "powers": block, "staged": width + 1}
    for name, size in sizes.items():
        starts[name], end = end, end + size
    half, lists = config.accumulator_rows // 2, LISTS * (block // n)
    rows = block + lists + 4
    if end > config.scratchpad_rows or width + 2 * lists > half or rows > half:
        return None
    numbers = {name: half + block + lists + i for i, name in enumerate(("most", "higher", "total", "faded"))}
    lists_at = {"value_lists": width, "masks": width + lists, "key_lists": half + block}
    return Placement(**starts, results=0, scores=half, **lists_at, **numbers)
