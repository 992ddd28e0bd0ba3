"""What values of TTIR are while they are converted: forms, conditions, pointers, constants, and tiles on the chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sley.runtime.frameworks.from_triton.forms import Form
from sley.runtime.frameworks.from_triton.ttir import TritonType
from sley.runtime.tile.trace import Tile


@dataclass(frozen=True, eq=False)
class Data:
    """Elements that the chip computes. A scalar is a tile of one element; a tensor of one axis is a row, or a column;
    an axis of one element stands for any size. Of several programs at a time each is a row.

    Attributes: ``type``: in TTIR. ``column``: whether the only axis is along rows of the tile. ``valid``: as of
    ``Form``."""

    tile: Tile
    type: TritonType
    column: bool = False
    valid: tuple[Form, ...] = ()

    def shaped(self, shape: Sequence[int], axes: Sequence[int | None]) -> Data:
        """On another shape, whose axis i is the axis ``axes[i]`` of this one, or a new one, or one that was of one
        element."""
        valid = tuple(test.shaped(shape, axes) for test in self.valid)
        type = TritonType(self.type.element, tuple(shape))
        tile, old = self.tile, len(self.type.shape)
        column = self.column
        if old == 1 and len(shape) == 2:
            wanted = axes[0] == 0
            tile = tile.T if wanted != column and tile.shape != (1, 1) else tile
            column = False
        elif old == 2 and tuple(axes) == (1, 0):
            tile = tile.T
        elif old == 2 and len(shape) == 1:
            column = axes[0] == 0
        return Data(tile, type, column, valid)

    def turned(self, column: bool) -> Data:
        """A tensor of one axis as a row or a column."""
        if len(self.type.shape) != 1 or self.column == column:
            return self
        tile = self.tile if self.tile.shape == (1, 1) else self.tile.T
        return replace(self, tile=tile, column=column)


@dataclass(frozen=True, eq=False)
class Constant:
    """A number of floating point, in all elements."""

    value: float
    type: TritonType


@dataclass(frozen=True, eq=False)
class Condition:
    """Holds where all tests are negative."""

    tests: tuple[Form, ...]
    shape: tuple[int, ...] = ()

    def shaped(self, shape: Sequence[int], axes: Sequence[int | None]) -> Condition:
        """As of ``Form``."""
        return Condition(tuple(test.shaped(shape, axes) for test in self.tests), tuple(shape))


@dataclass(frozen=True, eq=False)
class Pointer:
    """Addresses: elements from an argument on, as many as the form says."""

    argument: str
    form: Form
    element: str


@dataclass(frozen=True, eq=False)
class Descriptor:
    """A tensor descriptor: an array in memory, and the block that is read of it."""

    pointer: Pointer
    sizes: tuple[Form, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]


Known = Form | Data | Constant | Condition | Pointer | Descriptor
"""Any of them."""
