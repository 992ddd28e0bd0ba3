"""Programs of the library under all sanitizers, which report nothing; docs/verification has the whole library."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import DTypeLike

from sley.runtime import Buffer, Device, blas, nn
from sley.runtime.device.buffer import BF16

CHIPS = ("base", "quad")


@pytest.fixture(params=CHIPS)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    with Device.open(f"model:{request.param}?memory=4M&sanitize=init,race,memory,sync") as opened:
        yield opened


def numbers(device: Device, *shape: int, dtype: DTypeLike = BF16) -> Buffer:
    return device.array((np.random.default_rng(7).normal(size=shape) * 20).astype(dtype))


def product(device: Device) -> None:
    for m, k, n in ((50, 90, 70), (1, 7, 3), (200, 300, 100)):
        blas.gemm(numbers(device, m, k, dtype=np.int8), numbers(device, k, n, dtype=np.int8)).numpy()
        blas.gemm(numbers(device, k, m), numbers(device, n, k), trans_a=True, trans_b=True).numpy()


def rows(device: Device) -> None:
    for shape in ((3, 17), (17, 1365)):
        x, weight = numbers(device, *shape), numbers(device, shape[1])
        for result in (
            nn.softmax(x),
            nn.layer_norm(x, weight, weight, 1e-5),
            nn.rms_norm(x, weight, 1e-5),
            nn.gelu(x),
            nn.gelu(x, "tanh"),
            nn.silu(x),
            nn.argmax(x),
        ):
            result.numpy()


def lists(device: Device) -> None:
    table, places = numbers(device, 40, 24), np.random.default_rng(3).integers(0, 40, (5, 7), np.int32)
    nn.embedding(places, table).numpy()
    nn.embedding(device.array(places), table).numpy()


def attention(device: Device) -> None:
    q, k, v = (numbers(device, 1, 2, length, 64) for length in (40, 56, 56))
    nn.attention(q, k, v).numpy()


def attention_of_int8(device: Device) -> None:
    """Queries, keys and a last block that fill neither groups nor pairs of folds."""
    for queries, keys, dim, causal in ((40, 56, 64, False), (70, 150, 32, True), (20, 130, 128, False)):
        q, k, v = (numbers(device, 1, 2, length, dim, dtype=np.int8) for length in (queries, keys, keys))
        nn.quantized_attention(q, k, v, 0.1, 0.1, 0.1, 0.1, causal=causal, out_zero_point=3.0).numpy()


def images(device: Device) -> None:
    x = numbers(device, 2, 9, 11, 5, dtype=np.int8)
    nn.conv2d(x, numbers(device, 3, 3, 5, 7, dtype=np.int8), padding=1).numpy()
    nn.max_pool2d(x, 3, stride=2, padding=1).numpy()
    nn.avg_pool2d(numbers(device, 2, 9, 11, 5), 3).numpy()
    nn.global_avg_pool2d(x).numpy()


@pytest.mark.parametrize("work", [product, rows, lists, attention, attention_of_int8, images])
def test_reports_nothing(device: Device, work: Callable[[Device], None]) -> None:
    work(device)
