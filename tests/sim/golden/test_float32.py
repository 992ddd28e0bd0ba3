"""The golden fp32 functions against exact rational arithmetic, which shares nothing with numpy's."""

from fractions import Fraction

import numpy as np
import pytest

from sley.sim.golden import float32

SPECIAL = [
    *(0x00000000, 0x00000001, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000),
    *(0x3EFFFFFF, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000, 0x40000000, 0x4B000000),
    *(0x4AFFFFFF, 0x4EFFFFFF, 0x4F000000, 0x4F000001, 0x7EFFFFFF, 0x7F7FFFFF, 0x7F800000, 0x7F800001),
    *(0x7FC00000, 0x7FFFFFFF, 0x1FFFFFFF, 0x20000000, 0x5F7FFFFF, 0x00C00000, 0x3F400000, 0x42FE0000),
]
SPECIAL += [s | 0x80000000 for s in SPECIAL]


def is_nan(x: int) -> bool:
    return x & 0x7FFFFFFF > 0x7F800000


def is_inf(x: int) -> bool:
    return x & 0x7FFFFFFF == 0x7F800000


def sign(x: int) -> int:
    return x >> 31


def value(x: int) -> Fraction:
    """The finite number that an operation sees: subnormals are zero."""
    exponent, fraction = x >> 23 & 0xFF, x & 0x7FFFFF
    if exponent == 0:
        return Fraction(0)
    return (-1 if sign(x) else 1) * Fraction(fraction | 1 << 23) * Fraction(2) ** (exponent - 150)


def nearest(number: Fraction, zero_sign: int, fraction_bits: int = 23) -> int:
    """Bits of the correctly rounded result, gradual underflow included, subnormals then flushed.

    With fewer ``fraction_bits`` the number is rounded to these; the lower bits are zero.
    """
    if number == 0:
        return zero_sign << 31
    negative, number = number < 0, abs(number)
    exponent = max(-126, number.numerator.bit_length() - number.denominator.bit_length())
    exponent -= exponent > -126 and number < Fraction(2) ** exponent
    step = 1 << (23 - fraction_bits)
    units = step * round(number / (Fraction(2) ** (exponent - 23) * step))  # Python rounds halves to even
    rounded = ((exponent + 126) << 23) + units
    magnitude = 0 if units < 1 << 23 else min(rounded, 0x7F800000)
    return magnitude | negative << 31


def exact_add(a: int, b: int) -> int:
    if is_nan(a) or is_nan(b) or (is_inf(a) and is_inf(b) and a != b):
        return 0x7FC00000
    if is_inf(a) or is_inf(b):
        return a if is_inf(a) else b
    return nearest(value(a) + value(b), sign(a) & sign(b))


def exact_multiply(a: int, b: int) -> int:
    zero = value(a if not is_inf(a) and not is_nan(a) else 0x3F800000) == 0 or (
        value(b if not is_inf(b) and not is_nan(b) else 0x3F800000) == 0
    )
    infinite = is_inf(a) or is_inf(b)
    if is_nan(a) or is_nan(b) or (infinite and zero):
        return 0x7FC00000
    if infinite:
        return 0x7F800000 | (sign(a) ^ sign(b)) << 31
    return nearest(value(a) * value(b), sign(a) ^ sign(b))


def exact_to_int32(x: int) -> int:
    if is_nan(x):
        return 0
    if is_inf(x):
        return -(2**31) if sign(x) else 2**31 - 1
    return max(-(2**31), min(2**31 - 1, round(value(x))))


def exact_maximum(a: int, b: int) -> int:
    if is_nan(a) or is_nan(b):
        return 0x7FC00000

    def key(x: int) -> tuple[Fraction, int]:
        return (Fraction(2) ** 200 * (-1 if sign(x) else 1) if is_inf(x) else value(x), -sign(x))

    larger = max(a, b, key=key)
    return larger if is_inf(larger) or value(larger) != 0 else sign(larger) << 31


def patterns(seed: int, count: int) -> np.ndarray:
    """All bit patterns, then pairs of nearby exponents, which addition finds hard."""
    rng = np.random.default_rng(seed)
    anywhere = rng.integers(0, 1 << 32, (count, 2))
    exponent = rng.integers(90, 130, (count, 1)) + rng.integers(0, 30, (count, 2))
    near = rng.integers(0, 1 << 23, (count, 2)) | exponent << 23 | rng.integers(0, 2, (count, 2)) << 31
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL]
    return np.concatenate([anywhere, near, np.array(pairs)]).astype(np.uint32)


@pytest.mark.parametrize(
    ("golden", "exact"),
    [
        (float32.add, exact_add),
        (float32.multiply, exact_multiply),
        (float32.maximum, exact_maximum),
    ],
)
def test_binary_operations_are_exact(golden, exact):
    pairs = patterns(1, 3000)
    results = golden(pairs[:, 0], pairs[:, 1])
    assert results.dtype == np.uint32
    for (a, b), got in zip(pairs.tolist(), results.tolist(), strict=True):
        assert got == exact(a, b), f"{a:#010x} {b:#010x}: {got:#010x}, not {exact(a, b):#010x}"


def test_multiply_at_the_smallest_normal():
    """Products that lie around 2^-126: rounded with gradual underflow first, flushed afterwards."""
    rng = np.random.default_rng(2)
    a = (rng.integers(0, 1 << 23, 4000) | 0x20000000).astype(np.uint32)  # [2^-63, 2^-62)
    quotient = np.array([nearest(Fraction(2) ** -126 / value(x), 0) for x in a.tolist()], np.uint32)
    seen = set()
    for step in range(-3, 4):
        b = quotient + np.uint32(step & 0xFFFFFFFF)
        results = float32.multiply(a, b)
        for x, y, got in zip(a.tolist(), b.tolist(), results.tolist(), strict=True):
            assert got == exact_multiply(x, y)
            exact = value(x) * value(y)
            seen.add((got, exact < Fraction(2) ** -126))
    assert (0, True) in seen
    assert (0x00800000, True) in seen  # rounded up to the smallest normal
    assert (0x00800000, False) in seen


def test_conversions_are_exact():
    rng = np.random.default_rng(3)
    integers = rng.integers(-(1 << 31), 1 << 31, 4000) >> rng.integers(0, 31, 4000)
    edges = [s * ((1 << k) + d) for s in (1, -1) for k in range(31) for d in (-1, 0, 1)]
    ties = [(i << 7) + d for i in ((1 << 24) - 1, (1 << 24) - 2, 1 << 23, (1 << 23) + 1) for d in (63, 64, 65)]
    integers = np.concatenate([integers, np.array([*edges, *ties, 2**31 - 1, -(2**31)])]).astype(np.int32)
    for i, got in zip(integers.tolist(), float32.from_int32(integers).tolist(), strict=True):
        assert got == nearest(Fraction(i), 0)
    exponents = rng.integers(120, 162, 6000) << 23
    floats = (rng.integers(0, 1 << 23, 6000) & (-1 << rng.integers(0, 24, 6000)) | exponents).astype(np.uint32)
    floats |= (rng.integers(0, 2, 6000) << 31).astype(np.uint32)
    halves = float32.to_bits(np.arange(-9, 10) / 2)
    floats = np.concatenate([floats, halves, np.array(SPECIAL, np.uint32)])
    for x, got in zip(floats.tolist(), float32.to_int32(floats).tolist(), strict=True):
        assert got == exact_to_int32(x), f"{x:#010x}"
    assert float32.to_int8(float32.to_bits([127.5, -128.5, 2.5, -300, 300])).tolist() == [127, -128, 2, -128, 127]


def test_bf16_is_exact():
    every = np.arange(1 << 16, dtype=np.uint32)
    wide = float32.from_bf16(every.astype(np.uint16))
    subnormal = (every & 0x7F80) == 0
    assert np.array_equal(wide, np.where(subnormal, every & 0x8000, every) << 16)
    nans = (every & 0x7FFF) > 0x7F80
    assert np.array_equal(float32.to_bf16(wide), np.where(nans, 0x7FC0, wide >> 16))

    rng = np.random.default_rng(4)
    anywhere = rng.integers(0, 1 << 32, 6000)
    ties = (rng.integers(0, 1 << 16, 3000) << 16 | 0x8000) + rng.integers(-1, 2, 3000)
    tops = np.concatenate([np.arange(0x7F7F7FFE, 0x7F7F8003), np.arange(0x7F7EFFFE, 0x7F7F0003)])
    numbers = np.concatenate([anywhere, ties, tops, tops | 1 << 31, SPECIAL]).astype(np.uint32)
    results = float32.to_bf16(numbers)
    assert results.dtype == np.uint16
    for x, got in zip(numbers.tolist(), results.tolist(), strict=True):
        special = 0x7FC0 if is_nan(x) else x >> 16
        expected = special if is_nan(x) or is_inf(x) else nearest(value(x), sign(x), 7) >> 16
        assert got == expected, f"{x:#010x}: {got:#06x}, not {expected:#06x}"
    with pytest.raises(TypeError, match="uint32"):
        float32.from_bf16(numbers)


def test_fp16_is_exact():
    every = np.arange(1 << 16, dtype=np.uint32)
    wide = float32.from_fp16(every.astype(np.uint16))
    for x, got in zip(every.tolist(), wide.tolist(), strict=True):
        exponent, fraction = x >> 10 & 31, x & 1023
        if exponent == 31:
            assert got == (x >> 15) << 31 | 0x7F800000 | fraction << 13
        else:
            exact = Fraction(fraction | (1024 if exponent else 0)) * Fraction(2) ** (max(exponent, 1) - 25)
            assert (got >> 31, abs(value(got))) == (x >> 15, exact), f"{x:#06x}: {got:#010x}"
    with np.errstate(all="ignore"):
        numpy = every.astype(np.uint16).view(np.float16).astype(np.float32)
    nans = np.isnan(numpy)
    assert np.array_equal(wide[~nans], numpy.view(np.uint32)[~nans])
    assert np.array_equal(float32.to_fp16(wide), np.where(nans, 0x7E00, every))

    rng = np.random.default_rng(5)
    exponents = np.arange(98, 146).repeat(120)
    lost = np.clip(126 - exponents, 13, 24)  # places below those that stay
    kept = np.where(rng.integers(0, 3, len(exponents)) == 0, 0x7FFFFF, rng.integers(0, 1 << 23, len(exponents)))
    ties = (kept >> lost << lost | 1 << lost - 1) + rng.integers(-1, 2, len(exponents)) & 0x7FFFFF
    ties |= exponents << 23 | rng.integers(0, 2, len(exponents)) << 31
    numbers = np.concatenate([ties, rng.integers(0, 1 << 32, 6000), SPECIAL]).astype(np.uint32)
    results = float32.to_fp16(numbers)
    assert results.dtype == np.uint16
    for x, got in zip(numbers.tolist(), results.tolist(), strict=True):
        assert got == exact_to_fp16(x), f"{x:#010x}: {got:#06x}"
    with pytest.raises(TypeError, match="uint32"):
        float32.from_fp16(numbers)


def exact_to_fp16(x: int) -> int:
    if is_nan(x):
        return 0x7E00
    number = abs(value(x)) if not is_inf(x) else Fraction(2) ** 200
    if number == 0:
        return sign(x) << 15
    exponent = max(-14, number.numerator.bit_length() - number.denominator.bit_length())
    exponent -= exponent > -14 and number < Fraction(2) ** exponent
    units = round(number / Fraction(2) ** (exponent - 10))  # Python rounds halves to even
    return sign(x) << 15 | min((exponent + 14 << 10) + units, 0x7C00)


def test_uint8_saturates():
    integers = np.array([-(2**31), -1, 0, 1, 254, 255, 256, 2**31 - 1], np.int32)
    assert float32.saturate_uint8(integers).tolist() == [0, 0, 0, 1, 254, 255, 255, 255]


def test_small_functions():
    def bits(*values: int) -> np.ndarray:
        return np.array(values, np.uint32)

    assert float32.relu(bits(0x80000000, 0x80000001, 1, 0xFFC00001, 0xBF800000, 0x3F800000)).tolist() == [
        *(0, 0, 0, 0x7FC00000, 0, 0x3F800000)
    ]
    assert float32.flush(bits(1, 0x807FFFFF, 0x00800000, 0x7F800001)).tolist() == [
        *(0, 0x80000000, 0x00800000, 0x7F800001)
    ]
    assert float32.canonical(bits(0x7F800001, 0xFFFFFFFF, 0xFF800000)).tolist() == [
        *(0x7FC00000, 0x7FC00000, 0xFF800000)
    ]
    assert float32.to_float(float32.to_bits([1.5, -2])).tolist() == [1.5, -2]
    with pytest.raises(TypeError, match="float64"):
        float32.add(np.array([1.0]), np.array([1.0]))
