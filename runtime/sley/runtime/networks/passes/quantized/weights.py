"""Weights of convolutions and products as int8, whatever their zero points.

Weights less their zero points may leave int8: those of uint8 with a zero point other than 128, of int8 with one other
than 0. Then a number is added to all weights of an output, which is taken off again times the sum of x:

    sum(x · w) = sum(x · (w + shift)) - shift · sum(x)

The array makes sum(x), too: an output of ones besides the others, in each group of a convolution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sley.runtime.networks.graph import Array
from sley.runtime.networks.passes.quantized.parameters import Integers

LOW, HIGH = -128, 127


@dataclass(frozen=True)
class IntegerWeights:
    """Weights of int8.

    Attributes
    ----------
    values: of a convolution [outputs, channels / groups, ...], else [inputs, outputs]. shifts: what was added to those
        of each output. sums: of the weights of each output as they are meant. depth: products of a sum.
    """

    values: Array
    shifts: Array
    sums: Array
    depth: int

    @property
    def outputs(self) -> int:
        return len(self.sums)

    def with_ones(self, groups: int) -> Array:
        """With an output of ones behind those of each group."""
        if self.values.ndim == 2:
            return np.concatenate([self.values, np.ones((len(self.values), 1), np.int8)], 1)
        parts = np.split(self.values, groups)
        ones = np.ones((1, *self.values.shape[1:]), np.int8)
        return np.concatenate([part for group in parts for part in (group, ones)])


def integer_weights(known: Array, w: Integers, convolution: bool, turned: bool) -> IntegerWeights | None:
    """Weights of a DequantizeLinear; ``None`` if scales or zero points are along an axis other than that of outputs.
    ``turned``: those of a product are [outputs, inputs]."""
    own = 0 if convolution or turned else 1
    axis = None if w.axis is None else w.axis % known.ndim
    if known.ndim not in ((3, 4) if convolution else (2,)) or axis not in (None, own):
        return None
    zero = w.zero if axis is None else w.zero.reshape([-1 if n == axis else 1 for n in range(known.ndim)])
    found = shifted_weights(np.moveaxis(known.astype(np.int64) - zero, own, 0))
    if convolution:
        return found
    return IntegerWeights(np.ascontiguousarray(found.values.T), found.shifts, found.sums, found.depth)


def shifted_weights(values: Array) -> IntegerWeights:
    """Weights [outputs, ...] of int64, less their zero points, at most 255 apart: as those of a convolution."""
    rows = values.reshape(len(values), -1)
    shifts = np.minimum(HIGH - rows.max(1), 0) + np.maximum(LOW - rows.min(1), 0)
    shifted = (values + shifts.reshape(-1, *[1] * (values.ndim - 1))).astype(np.int8)
    return IntegerWeights(shifted, shifts, rows.sum(1), rows.shape[1])
