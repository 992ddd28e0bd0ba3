"""From values that were seen to a scale and a zero point."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sley.driver import BadRequest
from sley.runtime.networks.graph import Array

METHODS = ("max", "percentile", "mse")
SAMPLE = 1 << 16
"""Elements of a value that are kept of each batch."""
PERCENTILE = 99.99
SHARES = np.linspace(0.2, 1.0, 33)
"""Parts of the largest range among which ``mse`` chooses."""


@dataclass(frozen=True)
class Scale:
    """real = scale · (int8 - zero)."""

    scale: float
    zero: int = 0

    def integers(self, values: Array) -> Array:
        """As int8, rounded half to even and saturated."""
        found: Array = np.clip(np.rint(values / np.float32(self.scale)) + self.zero, -128, 127).astype(np.int8)
        return found

    def rounded(self, values: Array) -> Array:
        """What is left of values in int8, as float32."""
        found: Array = (self.integers(values).astype(np.float32) - np.float32(self.zero)) * np.float32(self.scale)
        return found


@dataclass
class Range:
    """What was seen of a value: its ends, and a sample of its elements."""

    low: float = 0.0
    high: float = 0.0
    sample: list[Array] = field(default_factory=list)

    def see(self, values: Array, rng: np.random.Generator) -> None:
        """Raises ``BadRequest`` for values that are not finite."""
        flat = values.ravel()
        if not np.isfinite(flat).all():
            raise BadRequest("values that are not finite; calibrate with data that the network can compute")
        self.low, self.high = min(self.low, float(flat.min())), max(self.high, float(flat.max()))
        self.sample.append(flat if flat.size <= SAMPLE else rng.choice(flat, SAMPLE, replace=False))

    def join(self, other: Range) -> None:
        """Both together."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.sample = [*self.sample, *other.sample]

    def scale(self, method: str, symmetric: bool) -> Scale:
        """Of the whole range; of that of all but 0.01 % of the elements; or the one of the least squared error."""
        if method == "max":
            return _of_ends(self.low, self.high, symmetric)
        values = np.concatenate(self.sample) if self.sample else np.zeros(1, np.float32)
        if method == "percentile":
            low, high = np.percentile(values, [100 - PERCENTILE, PERCENTILE])
            return _of_ends(min(float(low), 0.0), max(float(high), 0.0), symmetric)
        choices = [_of_ends(self.low * share, self.high * share, symmetric) for share in SHARES]
        return min(
            choices, key=lambda choice: float(np.square(choice.rounded(values) - values, dtype=np.float64).sum())
        )


def _of_ends(low: float, high: float, symmetric: bool) -> Scale:
    if symmetric:
        return Scale(float(np.float32(max(high, -low, 1e-30) / 127)))
    scale = float(np.float32(max(high - low, 1e-30) / 255))
    return Scale(scale, int(np.clip(np.rint(-128 - low / scale), -128, 127)))


def weight_scales(weights: Array, axis: int) -> Array:
    """Scales of weights, one for each element of an axis, float32: the largest by 127."""
    largest = abs(weights).max(axis=tuple(n for n in range(weights.ndim) if n != axis % weights.ndim))
    found: Array = np.maximum(largest / 127, 1e-30).astype(np.float32)
    return found


def weight_integers(weights: Array, scales: Array, axis: int) -> Array:
    """Weights as int8, from -127 to 127."""
    shape = [-1 if n == axis % weights.ndim else 1 for n in range(weights.ndim)]
    found: Array = np.clip(np.rint(weights / scales.reshape(shape)), -127, 127).astype(np.int8)
    return found


def weights_rounded(weights: Array, axis: int) -> Array:
    """What is left of weights in int8, as float32."""
    scales = weight_scales(weights, axis)
    shape = [-1 if n == axis % weights.ndim else 1 for n in range(weights.ndim)]
    found: Array = weight_integers(weights, scales, axis).astype(np.float32) * scales.reshape(shape)
    return found
