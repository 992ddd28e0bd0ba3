"""What a product of many rows of int8 with packed weights computes, and what becomes of its sums."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sley.abi.config import ChipConfig

HIGH = 128.0
"""What a unit of the high part of a row is worth, in units of the low part."""


class Ending(Enum):
    """What becomes of products, which are in fp32.

    SCALED: they are the result. ADDED: they are added to the result, and each row of that gets the scale of its RMS
    norm. GATED: there are two for each output, and silu(first) · second is the result, whose rows get a scale. TURNED:
    they are heads, the first ones of which are turned by the position of their token; the result is bfloat16. CACHED:
    they are heads of queries, keys and values of single tokens, of which queries and keys are turned; keys and values
    go to a slot of the cache.
    """

    SCALED = "scaled"
    TURNED = "turned"
    CACHED = "cached"
    ADDED = "added"
    GATED = "gated"


class Source(Enum):
    """What rows of a product are made of.

    INT8: they are int8 in memory. FLOATS: a token is fp32, and becomes int8 when it is multiplied by its inverse scale.
    NORMED: besides, it is multiplied by the weights of a norm before. HEADS: a token is what attention of single tokens
    leaves, heads in lanes, of which the program finds the scale.
    """

    INT8 = "int8"
    FLOATS = "floats"
    NORMED = "normed"
    HEADS = "heads"


@dataclass(frozen=True)
class ManyRows:
    """A problem.

    Attributes
    ----------
    tokens, parts: rows of the result; parts of int8 of each. The low parts are behind all high ones, and a row is
        128 · high + low.
    blocks, inputs: outputs of the product in blocks of N; inputs.
    ending, epsilon: what becomes of products; what a norm adds to the mean of squares.
    cores: blocks of the grid, which take as many tokens each.
    apart: rows from the high part of a token to its low part, and of TURNED from a head of the result to the next one;
        by default ``tokens``.
    head, turned: elements of a head, of TURNED, CACHED and HEADS; heads that are turned.
    group: of CACHED the heads of queries for each head of keys.
    lanes: of HEADS the heads of each launch of attention, which are as many lanes of its results.
    width: elements from a row of the result to the next one, if it has more than these outputs; not of TURNED.
    source: what the rows are made of; those that are not INT8 are a single band of one core.
    """

    tokens: int
    parts: int
    blocks: int
    inputs: int
    ending: Ending = Ending.SCALED
    epsilon: float = 0.0
    cores: int = 1
    apart: int | None = None
    head: int = 0
    turned: int = 0
    group: int = 0
    lanes: tuple[int, ...] = ()
    width: int | None = None
    source: Source = Source.INT8

    @property
    def together(self) -> int:
        """Blocks that an ending takes at a time."""
        return 2 if self.ending is Ending.GATED or self.of_heads else 1

    @property
    def of_heads(self) -> bool:
        """Whether products are heads."""
        return self.ending in (Ending.TURNED, Ending.CACHED)

    @property
    def groups(self) -> int:
        """Groups of blocks."""
        return self.blocks // self.together

    @property
    def rows_apart(self) -> int:
        """``apart``, or what it is by default."""
        return self.apart or self.tokens

    @property
    def key_heads(self) -> int:
        """Of CACHED."""
        return self.turned // (self.group + 1)

    def pairs(self, config: ChipConfig) -> int:
        """Groups behind each other: from the first block of a group to its second one, and in a head."""
        return self.head // (2 * config.array) if self.of_heads else self.groups

    @property
    def gives_scales(self) -> bool:
        """Whether the ending gives the scales of a row of the result."""
        return self.ending in (Ending.ADDED, Ending.GATED)

    @property
    def name(self) -> str:
        """Of its program."""
        size = f"{self.tokens}x{self.parts}_{self.blocks}x{self.inputs}"
        return f"many_rows_{self.source.value}_{self.ending.value}_{size}"

    def tiles(self, config: ChipConfig) -> int:
        """Scratchpad rows of a row of activations."""
        return -(-self.inputs // config.fold_depth())
