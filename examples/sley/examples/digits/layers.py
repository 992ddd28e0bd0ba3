"""Layers as matrix products: a convolution is lowered to one by gathering its patches on the host."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Dense:
    """A fully connected layer from ``inputs`` (whatever their shape) to ``outputs``."""

    inputs: int
    outputs: int
    relu: bool = True

    @property
    def depth(self) -> int:
        return self.inputs

    def lower(self, x: Array) -> Array:
        """Activations as the left matrix of the product."""
        return x.reshape(len(x), -1)

    def raise_(self, rows: Array, shape: tuple[int, ...]) -> Array:
        """Adjoint of ``lower`` for activations of ``shape``: gradients of the rows to gradients of activations."""
        return rows.reshape(shape)

    def shape(self, y: Array, batch: int) -> Array:
        """Rows of the product as activations."""
        return y.reshape(batch, self.outputs)


@dataclass(frozen=True)
class Convolution:
    """A 3 x 3 convolution over ``size`` x ``size`` pixels with one pixel of zero padding, channels last."""

    size: int
    inputs: int
    outputs: int
    stride: int = 1
    relu: bool = True

    @property
    def depth(self) -> int:
        return 9 * self.inputs

    @property
    def side(self) -> int:
        """Height and width of the result."""
        return (self.size - 1) // self.stride + 1

    def _taps(self) -> list[tuple[slice, slice]]:
        reach = self.stride * (self.side - 1) + 1
        spans = [slice(offset, offset + reach, self.stride) for offset in range(3)]
        return [(y, x) for y in spans for x in spans]

    def lower(self, x: Array) -> Array:
        padded = np.pad(x.reshape(-1, self.size, self.size, self.inputs), ((0, 0), (1, 1), (1, 1), (0, 0)))
        patches = np.stack([padded[:, rows, columns] for rows, columns in self._taps()], axis=3)
        return patches.reshape(-1, self.depth)

    def raise_(self, rows: Array, shape: tuple[int, ...]) -> Array:
        batch = shape[0]
        patches = rows.reshape(batch, self.side, self.side, 9, self.inputs)
        padded = np.zeros((batch, self.size + 2, self.size + 2, self.inputs), rows.dtype)
        for index, (y, x) in enumerate(self._taps()):
            padded[:, y, x] += patches[:, :, :, index]
        return padded[:, 1:-1, 1:-1].reshape(shape)

    def shape(self, y: Array, batch: int) -> Array:
        return y.reshape(batch, self.side, self.side, self.outputs)


Layer = Dense | Convolution
