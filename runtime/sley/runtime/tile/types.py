"""Types of the tile IR: indices, arrays in memory, tiles on the chip."""

from dataclasses import dataclass

from sley.abi.types import ElementType

COMPUTED = (ElementType.FP32, ElementType.INT32)
"""Types that elements are computed in; a tile of another one is what memory holds."""


@dataclass(frozen=True)
class IndexType:
    """A number of 32 bits that the sequencer computes: block numbers, loop variables, places in arrays."""

    def __str__(self) -> str:
        return "index"


@dataclass(frozen=True)
class ArrayType:
    """An array in memory. ``strides`` are in elements, and any."""

    dtype: ElementType
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __str__(self) -> str:
        shape, strides = (", ".join(map(str, numbers)) for numbers in (self.shape, self.strides))
        return f"{self.dtype.info.name}[{shape}; {strides}]"


@dataclass(frozen=True)
class TileType:
    """Rows and columns of a tile; either may be 1, which counts for any number in element-wise operations."""

    dtype: ElementType
    shape: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.dtype.info.name}[{self.shape[0]}, {self.shape[1]}]"


Type = IndexType | ArrayType | TileType
INDEX = IndexType()


def wide(dtype: ElementType) -> ElementType:
    """The type that elements of a type are computed in, if nothing else is said: int32 of int8, fp32 of bf16."""
    if dtype in COMPUTED:
        return dtype
    return ElementType.INT32 if dtype is ElementType.INT8 else ElementType.FP32


def broadcast(*shapes: tuple[int, int]) -> tuple[int, int] | None:
    """The shape that these have together, or None if there is none."""
    axes = []
    for sizes in zip(*shapes, strict=True):
        others = {size for size in sizes if size != 1}
        if len(others) > 1:
            return None
        axes.append(others.pop() if others else 1)
    return axes[0], axes[1]
