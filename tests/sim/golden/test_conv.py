"""The golden convolution against its definition, one product after the other."""

import numpy as np
import pytest

from sley.abi.config import PRESETS
from sley.sim.golden import float32
from sley.sim.golden.conv import conv2d
from sley.sim.testing.convolution import Convolution, random_convolution


def products(case: Convolution, image: int, y: int, x: int, output: int, block: int) -> list[tuple[float, float]]:
    """Activations and weights of one sum, in its order."""
    outputs, channels = case.w.shape[3] // case.groups, case.w.shape[2]
    first = output // outputs * channels
    found = []
    for begin in range(0, channels, block):
        for i, j in np.ndindex(*case.w.shape[:2]):
            row = y * case.stride[0] - case.padding[0][0] + i * case.dilation[0]
            column = x * case.stride[1] - case.padding[1][0] + j * case.dilation[1]
            inside = 0 <= row < case.x.shape[1] and 0 <= column < case.x.shape[2]
            for c in range(begin, min(begin + block, channels)):
                value = case.x[image, row, column, first + c] if inside else case.padding_value
                found.append((value, case.w[i, j, c, output]))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_int8_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_convolution(PRESETS["nano"], rng, bf16=False, result="int32", largest=7)
    found = case.expected(PRESETS["nano"])
    for place in rng.integers(0, found.shape, (20, 4)):
        image, y, x, output = (int(i) for i in place)
        total = sum(int(a) * int(w) for a, w in products(case, image, y, x, output, 4))
        assert found[image, y, x, output] == total


@pytest.mark.parametrize("seed", range(20))
def test_bf16_is_rounded_in_its_order(seed: int) -> None:
    rng, config = np.random.default_rng(seed), PRESETS["edge"]
    case = random_convolution(config, rng, bf16=True, result="float32", largest=7)
    sums = conv2d(
        case.x,
        case.w,
        "float32",
        stride=case.stride,
        padding=case.padding,
        dilation=case.dilation,
        groups=case.groups,
        block=config.array,
    )
    for place in rng.integers(0, sums.shape, (5, 4)):
        image, y, x, output = (int(i) for i in place)
        total = np.zeros(1, np.uint32)
        for a, w in products(case, image, y, x, output, config.array):
            one, other = (float32.from_bf16(np.array([value], np.uint16)) for value in (a, w))
            total = float32.add(total, float32.multiply(one, other))
        assert sums[image, y, x, output] == total[0]


def test_the_epilogue() -> None:
    x, w = np.array([[[[10], [-20]]]], np.int8), np.array([[[[3, -1]]]], np.int8)
    bias, scale = np.array([1, 5], np.int32), np.array([0.5, 2.0], np.float32)
    found = conv2d(x, w, "int8", bias=bias, scale=scale, relu=True)
    assert found.tolist() == [[[[16, 0], [0, 50]]]]  # 31 / 2 is rounded to even
    with pytest.raises(ValueError, match="which is no element type"):
        conv2d(x, w, "complex64")
