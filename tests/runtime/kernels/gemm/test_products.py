"""Products of ``blas.gemm`` on many chips, bit by bit against the golden functions."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from gemm_chips import chips, on_chips

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.driver import Driver
from sley.runtime import Device, blas
from sley.runtime.device.buffer import BF16
from sley.sim.engines.model import ModelTransport
from sley.sim.golden import float32
from sley.sim.testing.product import SPECIAL, Product, random_bf16, random_product

Check = Callable[[Device, Product], None]

TRANSPOSITIONS = list(product((False, True), repeat=2))
RESULTS = [
    *((False, result) for result in ("int32", "int8", "float32", "bfloat16")),
    *((True, result) for result in ("int8", "float32", "bfloat16")),
]
TYPES = on_chips(["bf16"], [(False,), (True,)], lambda bf16: bf16)
BF16_CHIPS = pytest.mark.parametrize("config", chips(needs_bf16=True))


def has_bf16(bf16: bool, result: str) -> bool:
    return bf16 or result == "bfloat16"


@pytest.fixture
def device(config: ChipConfig) -> Iterator[Device]:
    with Device(Driver(ModelTransport(config, 1 << 21), hang_cycles=5_000)) as opened:
        yield opened


@pytest.mark.some(12)
@on_chips(["bf16", "result"], RESULTS, has_bf16)
def test_types_and_transpositions(device: Device, check: Check, bf16: bool, result: str) -> None:
    rng = np.random.default_rng(11)
    for trans in TRANSPOSITIONS:
        sizes = tuple(int(x) for x in rng.integers(1, 40, 3))
        check(device, random_product(device.config, rng, sizes, bf16=bf16, result=result, trans=trans))


@pytest.mark.some(12)
@TYPES
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (1, 37, 41), (37, 1, 41), (37, 41, 1), (1, 1, 67), (1, 67, 1), (67, 1, 1)]
)
def test_sizes_of_one(device: Device, check: Check, bf16: bool, sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(sum(sizes))
    for trans in TRANSPOSITIONS:
        check(device, random_product(device.config, rng, sizes, bf16=bf16, trans=trans))


@pytest.mark.some(8)
@TYPES
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_sizes_close_to_a_tile(device: Device, check: Check, bf16: bool, more: int) -> None:
    rng, config = np.random.default_rng(more + 1), device.config
    deep = config.fold_depth(ElementType.BF16 if bf16 else ElementType.INT8)
    for times, trans in zip((1, 2, 3, 2), TRANSPOSITIONS, strict=True):
        sizes = config.array * times + more, config.array * (4 - times) + more, deep * times + more
        check(device, random_product(config, rng, sizes, bf16=bf16, trans=trans))


@pytest.mark.some(12)
@TYPES
@pytest.mark.parametrize("batch", [(1, 1), (3, 3), (5, 0), (0, 5)], ids=str)
def test_batches(device: Device, check: Check, bf16: bool, batch: tuple[int, int]) -> None:
    rng = np.random.default_rng(21)
    for trans in TRANSPOSITIONS:
        sizes = tuple(int(x) for x in rng.integers(1, 25, 3))
        check(device, random_product(device.config, rng, sizes, bf16=bf16, trans=trans, batch=batch))


@pytest.mark.some(6)
@on_chips(["bf16", "result"], [r for r in RESULTS if r[1] in ("float32", "bfloat16")], has_bf16)
def test_beta(device: Device, check: Check, bf16: bool, result: str) -> None:
    """The former contents of the result, times a factor, are added before relu."""
    rng = np.random.default_rng(41)
    for trans, relu in zip(TRANSPOSITIONS, (False, True, True, False), strict=True):
        sizes = tuple(int(x) for x in rng.integers(1, 25, 3))
        case = random_product(device.config, rng, sizes, bf16=bf16, result=result, trans=trans)
        c = random_bf16(rng, case.shape, 2)
        if result == "float32":
            c = float32.from_bf16(c) | np.uint32(0x1234)
        check(
            device, replace(case, relu=relu and (bf16 or case.scale is not None), beta=float(rng.uniform(-2, 2)), c=c)
        )


@pytest.mark.some(12)
@pytest.mark.parametrize("seed", range(6))
def test_random(device: Device, check: Check, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = tuple(int(x) for x in rng.integers(1, 31 if device.config.array == 4 else 71, 3))
    check(device, random_product(device.config, rng, sizes))


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((131, 127, 257), id="primes"),
        pytest.param((3, 5, 2003), id="deep"),
        pytest.param((400, 9, 30), id="tall"),
    ],
)
@pytest.mark.parametrize("bf16", [False, True])
def test_many_tiles(bf16: bool, sizes: tuple[int, int, int], check: Check) -> None:
    with Device.open("model:edge?memory=4M", hang_cycles=20_000) as device:
        rng = np.random.default_rng(sizes[0])
        for trans in ((False, True), (True, False)):
            check(device, random_product(device.config, rng, sizes, bf16=bf16, trans=trans))


def test_extreme_values_do_not_wrap(device: Device) -> None:
    a, b = np.full((3, 300), -128, np.int8), np.full((300, 5), -128, np.int8)
    c = blas.gemm(device.array(a), device.array(b)).numpy()
    assert (c == 300 * 128 * 128).all()
    low = blas.gemm(device.array(a), device.array(b), scale=-1e9).numpy()
    assert (low == -128).all()


def test_rounding_is_half_to_even(device: Device) -> None:
    a = np.arange(-20, 20, dtype=np.int8).reshape(-1, 1)
    c = blas.gemm(device.array(a), device.array(np.ones((1, 1), np.int8)), scale=0.5).numpy()
    assert np.array_equal(c, np.rint(a / 2).astype(np.int8))


def test_queued_products_feed_each_other(device: Device) -> None:
    rng = np.random.default_rng(5)
    x, w, v = (rng.integers(-128, 128, shape, np.int8) for shape in ((9, 20), (20, 30), (30, 11)))
    hidden = blas.gemm(device.array(x), device.array(w), scale=1 / 300, relu=True)
    result = blas.gemm(hidden, device.array(v))
    h = Product(x, w, "int8", scale=1 / 300, relu=True).expected
    assert np.array_equal(result.numpy(), Product(h, v, "int32").expected)


@BF16_CHIPS
@pytest.mark.parametrize("result", ["float32", "bfloat16", "int8"])
def test_special_bf16_values(device: Device, check: Check, result: str) -> None:
    """Every pair of special values as the product of one k, then sums of them."""
    column, row = SPECIAL.reshape(-1, 1), SPECIAL.reshape(1, -1)
    rng = np.random.default_rng(3)
    for relu in (False, True):
        check(device, Product(column, row, result, relu=relu))
        a, b = rng.choice(SPECIAL, (9, 11)), rng.choice(SPECIAL, (11, 13))
        check(device, Product(a, b, result, relu=relu))
        check(device, Product(a, b, result, bias=float32.to_bits(rng.normal(size=13)), scale=2.0**-130, relu=relu))


@BF16_CHIPS
def test_padding_of_k_adds_nothing_to_bf16_sums(device: Device, check: Check) -> None:
    """What fills up the array's rows leaves the sum alone, a -0 too; what lay in the scratchpad before does not
    matter, not even NaNs."""
    n = device.config.array
    nans = np.full((4 * n, 4 * n), 0x7FC0, np.uint16)
    minus_zero = [0x80C0, 0x0080]  # their sum is subnormal
    for k in (2, n - 1, n, n + 1, 2 * n - 1, 2 * n + 1):
        b = np.full((k, 3), 0x3F80, np.uint16)
        for values in (minus_zero, [0xFF80], [0x7F81], [0x3F80]):
            a = np.full((2, k), 0x8000, np.uint16)
            a[:, -len(values) :] = values
            for trans in (False, True):
                check(device, Product(nans, nans, "float32", trans_b=trans))
                check(device, Product(a, (b.T if trans else b).copy(), "float32", trans_b=trans))


@BF16_CHIPS
def test_bf16_sums_are_rounded_in_the_order_of_k(device: Device) -> None:
    """2^24 swallows each single 1 that comes after it, but not those before it."""
    for k in (7, 50, 97):
        for where in (0, k // 2, k - 1):
            a = np.full((1, k), 1, np.float32)
            a[0, where] = 2.0**24
            out = blas.gemm(device.array(a.astype(BF16)), device.array(np.ones((k, 1), BF16))).numpy()
            expected = np.float32(0)
            for x in a[0]:
                expected += x
            assert out[0, 0] == expected, (k, where)
