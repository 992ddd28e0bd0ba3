"""fp32 arithmetic as the hardware does it, on arrays of bit patterns.

Every function takes and returns ``np.uint32`` arrays (any shape, broadcasting), ``np.uint16`` for bf16 and fp16, so
that no conversion can touch a NaN's payload or a subnormal on the way. The rules are those of the numerics law:

* round to nearest, ties to even;
* subnormal inputs are read as zero of the same sign; a result is rounded as IEEE-754 does it, gradual underflow
  included, and if it is then subnormal it becomes zero of the same sign;
* every NaN result is ``NAN``;
* conversions to integers round half to even and saturate; NaN becomes 0;
* bf16 is the upper half of fp32: converting to it rounds half to even, converting from it is exact;
* fp16 is IEEE-754 binary16 with its subnormal numbers, which are normal in fp32: converting to it rounds half to even
  with gradual underflow, converting from it is exact.

numpy's own float32 operations are correctly rounded, so this file only adds the flushes and the NaN.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bits = NDArray[np.uint32]
BF16Bits = NDArray[np.uint16]
FP16Bits = NDArray[np.uint16]
Int32 = NDArray[np.int32]

NAN = np.uint32(0x7FC00000)
INFINITY = np.uint32(0x7F800000)
SIGN = np.uint32(0x80000000)
SMALLEST_NORMAL = np.uint32(0x00800000)
FP16_NAN = np.uint16(0x7E00)
_MAGNITUDE = np.uint32(0x7FFFFFFF)


def to_bits(values: ArrayLike) -> Bits:
    """Bit patterns of numbers, rounded to fp32 if they are not."""
    return np.asarray(values, np.float32).view(np.uint32)


def to_float(bits: ArrayLike) -> NDArray[np.float32]:
    """The fp32 numbers with these bit patterns."""
    return _bits(bits).view(np.float32)


def is_nan(x: ArrayLike) -> NDArray[np.bool_]:
    return (_bits(x) & _MAGNITUDE) > INFINITY


def flush(x: ArrayLike) -> Bits:
    """Subnormal numbers replaced by zero of their sign; everything else as it is."""
    x = _bits(x)
    return np.where((x & INFINITY) == 0, x & SIGN, x)


def canonical(x: ArrayLike) -> Bits:
    """``flush`` and every NaN replaced by ``NAN``: what every operation does to its result."""
    x = flush(x)
    return np.where(is_nan(x), NAN, x)


def add(a: ArrayLike, b: ArrayLike) -> Bits:
    with np.errstate(all="ignore"):
        return canonical((to_float(flush(a)) + to_float(flush(b))).view(np.uint32))


def multiply(a: ArrayLike, b: ArrayLike) -> Bits:
    with np.errstate(all="ignore"):
        return canonical((to_float(flush(a)) * to_float(flush(b))).view(np.uint32))


def maximum(a: ArrayLike, b: ArrayLike) -> Bits:
    """The larger one; +0 is larger than -0; ``NAN`` if either is a NaN."""
    a, b = flush(a), flush(b)
    larger = np.where(_order(a) >= _order(b), a, b)
    return np.where(is_nan(a) | is_nan(b), NAN, larger)


def relu(x: ArrayLike) -> Bits:
    """``maximum(x, +0)``: +0 for every negative number and -0, NaN stays NaN."""
    return maximum(x, np.uint32(0))


def from_int32(x: ArrayLike) -> Bits:
    return np.asarray(x, np.int32).astype(np.float32).view(np.uint32)


def to_int32(x: ArrayLike) -> Int32:
    """Rounded half to even, saturated; NaN becomes 0."""
    values = to_float(np.where(is_nan(x), np.uint32(0), flush(x))).astype(np.float64)
    return np.clip(np.rint(values), -(2.0**31), 2.0**31 - 1).astype(np.int32)


def saturate_int8(x: ArrayLike) -> NDArray[np.int8]:
    """int32 to the nearest int8."""
    return np.clip(np.asarray(x, np.int32), -128, 127).astype(np.int8)


def saturate_uint8(x: ArrayLike) -> NDArray[np.uint8]:
    """int32 to the nearest uint8."""
    return np.clip(np.asarray(x, np.int32), 0, 255).astype(np.uint8)


def to_int8(x: ArrayLike) -> NDArray[np.int8]:
    """Rounded half to even, saturated; NaN becomes 0."""
    return saturate_int8(to_int32(x))


def from_bf16(x: ArrayLike) -> Bits:
    """Exact; subnormal numbers become zero of their sign, NaNs keep their payload."""
    return flush(_halves(x).astype(np.uint32) << np.uint32(16))


def to_bf16(x: ArrayLike) -> BF16Bits:
    """Rounded half to even; what is beyond the largest bf16 becomes infinity, a NaN the upper half of ``NAN``."""
    x = canonical(x)
    below_half = np.uint32(0x7FFF)
    return ((x + below_half + (x >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def from_fp16(x: ArrayLike) -> Bits:
    """Exact, subnormal numbers too; NaNs keep their payload."""
    x = _halves(x)
    payload = x.astype(np.uint32) << np.uint32(13) & np.uint32(0x007FE000)
    nan = (x.astype(np.uint32) & np.uint32(0x8000)) << np.uint32(16) | INFINITY | payload
    with np.errstate(all="ignore"):
        wide = x.view(np.float16).astype(np.float32).view(np.uint32)
    return np.where((x & np.uint16(0x7FFF)) > np.uint16(0x7C00), nan, wide)


def to_fp16(x: ArrayLike) -> FP16Bits:
    """Rounded half to even with gradual underflow; beyond the largest fp16: infinity; a NaN: ``FP16_NAN``."""
    x = flush(x)
    with np.errstate(all="ignore"):
        return np.where(is_nan(x), FP16_NAN, to_float(x).astype(np.float16).view(np.uint16))


def _halves(x: ArrayLike) -> NDArray[np.uint16]:
    x = np.asarray(x)
    if x.dtype != np.uint16:
        raise TypeError(f"expected bit patterns as uint16, not {x.dtype}")
    return x


def _bits(x: ArrayLike) -> Bits:
    x = np.asarray(x)
    if x.dtype == np.int32:
        return x.view(np.uint32)
    if x.dtype != np.uint32:
        raise TypeError(f"expected bit patterns as uint32 or int32, not {x.dtype}; see to_bits()")
    return x


def _order(x: Bits) -> Bits:
    """Unsigned keys in the order of the numbers, with -0 below +0."""
    return np.where(x & SIGN, ~x, x | SIGN)
