"""What a case of an operator is given: random arrays on the device; and judges of what it gives."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from random_arrays import shape_of, values, view

from sley.runtime import Buffer, Device
from sley.runtime.nn.mapping import BF16, BOOL, FP32, INT8, INT32

Floats = NDArray[np.float64]
FLOATS = (FP32, BF16)
EVERY = (BOOL, INT8, INT32, BF16, FP32)


class Given:
    """``special``: how many elements of floats are extremes, NaN and infinities; then only bits are judged."""

    def __init__(self, device: Device, seed: int, special: float = 0.0) -> None:
        self.device, self.random, self.special = device, np.random.default_rng(seed), special

    def one(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(0, len(choices)))]

    def shape(self, axes: int, most: int = 3000) -> tuple[int, ...]:
        return shape_of(self.random, axes, most)

    def values(self, shape: Sequence[int], dtype: np.dtype[Any] = FP32, scale: float = 1.0) -> NDArray[Any]:
        if dtype in FLOATS and not self.special:
            return np.asarray(self.random.standard_normal(shape) * scale).astype(dtype)
        return values(self.random, tuple(shape), dtype, self.special)

    def array(
        self, shape: Sequence[int], dtype: np.dtype[Any] = FP32, scale: float = 1.0, dense: bool = False
    ) -> tuple[Buffer, Floats]:
        """On the device, as a view of any strides if it is not ``dense``; and in float64."""
        return self.on(self.values(shape, dtype, scale), dense)

    def on(self, array: NDArray[Any], dense: bool = False) -> tuple[Buffer, Floats]:
        made = self.device.array(array) if dense else view(self.random, self.device, array)
        return made, np.asarray(array).astype(np.float64)

    def out(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Buffer | None:
        """None, or an array for a result, perhaps a view."""
        return self.one(None, view(self.random, self.device, values(self.random, tuple(shape), dtype)))

    def near(self, result: Buffer, right: Any, error: float = 2e-6, dtype: np.dtype[Any] | None = None) -> None:
        """Off by so much of the largest element, and what rounding to bfloat16 adds."""
        right = np.asarray(right, np.float64)
        assert result.shape == right.shape, (result.shape, right.shape)
        assert dtype is None or result.dtype == dtype, (result.dtype, dtype)
        if self.special:
            return
        largest = max(float(np.abs(right).max(initial=0)), 1e-30)
        off = np.abs(result.numpy().astype(np.float64) - right)
        allowed = error * largest + (np.abs(right) * 2.0**-8 if result.dtype == BF16 else 0)
        worst = np.unravel_index(int(np.argmax(off - allowed)), right.shape) if right.shape else ()
        assert (off <= allowed).all(), f"off by {off[worst]} at {worst}, where {right[worst]} is right"

    def same(self, result: Buffer, right: NDArray[Any]) -> None:
        """Equal elements; subnormal ones count as zero."""
        assert (result.shape, result.dtype) == (right.shape, right.dtype), (result, right.shape, right.dtype)
        found = result.numpy()
        if right.dtype in FLOATS:
            found, right = (np.asarray(x).astype(np.float64) for x in (found, right))
            found, right = (np.where(np.abs(x) < 2.0**-126, 0, x) for x in (found, right))
        np.testing.assert_array_equal(found, right)

    def slopes(
        self,
        function: Callable[..., Any],
        arrays: Sequence[Floats],
        grad: Floats,
        gradients: Sequence[Buffer | None],
        error: float = 1e-5,
    ) -> None:
        """Gradients against differences of ``function`` of float64 along random directions."""
        if self.special:
            return
        for number, gradient in enumerate(gradients):
            if gradient is None:
                continue
            found = gradient.numpy().astype(np.float64)
            assert found.shape == arrays[number].shape
            for _ in range(6):
                step = self.random.standard_normal(found.shape) * (self.random.random(found.shape) < self.one(0.1, 1))
                ends = []
                for sign in (1, -1):
                    moved = list(arrays)
                    moved[number] = arrays[number] + sign * 1e-5 * step
                    ends.append(np.sum(np.asarray(function(*moved)) * grad))
                size = np.sqrt(np.sum(found**2) * np.sum(step**2)) + 1e-3 * np.sum(np.abs(grad))
                off = abs(np.sum(found * step) - (ends[0] - ends[1]) / 2e-5)
                allowed = error + (2.0**-8 if gradient.dtype == BF16 else 0)
                assert off <= allowed * size, f"gradient {number}: off by {off} of {size}"
