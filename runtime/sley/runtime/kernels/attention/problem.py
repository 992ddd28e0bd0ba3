"""What an attention program computes, and how it is cut."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType

TILE_GROUPS = 3
"""Most groups of N queries in a tile: the vector unit keeps a factor of each in a row register of its own."""
SHORT_TILE = TILE_GROUPS + 1
"""Groups of which two tiles are made, as one of a single group would be too short for the array."""
FEW_ELEMENTS = 64
"""The largest head dimension with the larger blocks of keys."""


def key_block(config: ChipConfig, dim: int) -> int:
    """Keys that are taken together; it decides how results are rounded."""
    return config.array * (8 if dim <= FEW_ELEMENTS else 4)


def tile_sizes(n: int, queries: int) -> list[int]:
    """Queries of the tiles, one after the other: three groups of ``n``, but two of the last four."""
    sizes, left = [], queries
    while left:
        groups = -(-left // n)
        sizes.append(min(left, n * (TILE_GROUPS if groups != SHORT_TILE else SHORT_TILE // 2)))
        left -= sizes[-1]
    return sizes


@dataclass(frozen=True)
class Matrices:
    """Matrices of all heads in memory: bytes from row to row, and from head to head."""

    row: int
    head: int


@dataclass(frozen=True)
class Problem:
    """Sizes, and where operands lie.

    Attributes
    ----------
    heads: of all batches. blocks: of the grid. kind: of q, k and v: BF16 or INT8. result: BF16; of INT8 also INT8 or
        UINT8.
    """

    heads: int
    queries: int
    keys: int
    dim: int
    causal: bool
    q: Matrices
    k: Matrices
    v: Matrices
    out: Matrices
    blocks: int
    kind: ElementType = ElementType.BF16
    result: ElementType = ElementType.BF16

    @property
    def integers(self) -> bool:
        """Whether scores are int32."""
        return self.kind is ElementType.INT8


def temporary_bytes(config: ChipConfig, problem: Problem) -> int:
    """Of the temporary array, for each block of the grid: the results of a tile."""
    return TILE_GROUPS * problem.dim * config.row_bytes
