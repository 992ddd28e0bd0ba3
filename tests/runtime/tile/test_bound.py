"""What choices take at least: no more than their price, and those that others beat are not priced."""

from types import SimpleNamespace
from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest

from sley.bench.tile.products import extent, product
from sley.runtime import Device, tile
from sley.runtime.tile import build
from sley.runtime.tile.bound import least
from sley.runtime.tile.build import Problem
from sley.runtime.tile.compiler import prepare
from sley.runtime.tile.schedule import AUTOMATIC

BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(scope="module", params=["base", "edge", "quad"])
def device(request: Any) -> Any:
    with Device.open(f"model:{request.param}?memory=16M") as opened:
        yield opened


def products(device: Device, m: int, k: int, n: int, dtype: Any) -> Problem:
    lanes = device.config.array
    a, b = device.zeros((m, k), dtype), device.zeros((k, n), dtype)
    call = product.bind((a, b, device.zeros((m, n), np.int32 if dtype == np.int8 else np.float32)), {"lanes": lanes})
    return Problem(
        product,
        call.types,
        call.constants,
        lambda rows, columns: (tile.cdiv(n, extent(n, columns, lanes)), tile.cdiv(m, rows)),
        device.config,
        AUTOMATIC,
    )


def elements(device: Device) -> Problem:
    x, out = device.zeros((100, 260), BF16), device.zeros((100, 260), BF16)
    call = kernels.add.bind((x, x, out), {"rows": tile.choice(4, 16, 32), "columns": tile.choice(64, 128)})

    def grid(rows: int, columns: int) -> tuple[int, int]:
        return tile.cdiv(260, columns), tile.cdiv(100, rows)

    return Problem(kernels.add, call.types, call.constants, grid, device.config, AUTOMATIC)


def above_prices(problem: Problem) -> list[tuple[int, int]]:
    """Bounds and prices of candidates whose bound is above their price."""
    found = []
    for candidate in problem.ranked():
        function = problem.kernel.function(problem.arrays, candidate.constants, candidate.grid)
        found.append((least(function, problem.config), candidate.cycles))
    return [pair for pair in found if pair[0] > pair[1]]


@pytest.mark.parametrize("sizes", [(100, 200, 64), (16, 384, 128), (256, 16, 33), (200, 384, 33)], ids=str)
@pytest.mark.parametrize("dtype", [np.int8, BF16], ids=str)
def test_prices_are_above_it(device: Device, sizes: tuple[int, int, int], dtype: Any) -> None:
    assert above_prices(products(device, *sizes, dtype)) == []


def test_prices_of_elements_are_above_it(device: Device) -> None:
    if device.config.vector_chains:
        assert above_prices(elements(device)) == []


def test_it_is_near_the_price_of_a_large_product(device: Device) -> None:
    problem = products(device, 256, 256, 256, BF16)
    best = next(problem.ranked())
    function = problem.kernel.function(problem.arrays, best.constants, best.grid)
    assert least(function, problem.config) > (0.7 if device.config.cores > 1 else 0.98) * best.cycles


def test_the_order_is_that_of_all_prices(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = products(device, 200, 384, 33, np.int8)
    bounded = [*problem.ranked()]
    monkeypatch.setattr(build, "least", lambda function, config: 0)
    assert bounded == [*problem.ranked()]
    assert [each.cycles for each in bounded] == sorted(each.cycles for each in bounded)


def test_of_equal_ones_the_first(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = products(device, 200, 384, 33, np.int8)
    monkeypatch.setattr(build, "least", lambda function, config: 7)
    monkeypatch.setattr(build, "prepare", lambda *args, **kwargs: SimpleNamespace(price=SimpleNamespace(cycles=7)))
    tried = problem.candidates()
    numbers = [build.numbered(tried, candidate) for candidate in problem.ranked()]
    assert numbers == sorted(numbers)


def test_what_others_beat_is_not_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    priced = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        priced.append(args)
        return prepare(*args, **kwargs)

    monkeypatch.setattr(build, "prepare", counted)
    with Device.open("model:edge?memory=16M") as device:
        problem = products(device, 256, 256, 256, np.int8)
        next(problem.ranked())
        first = len(priced)
        priced.clear()
        assert len([*problem.ranked()]) > 4 * first


@pytest.mark.parametrize(
    ("size", "most", "multiple", "expected"),
    [
        (500, 64, 8, 56),
        (500, 64, 16, 64),
        (256, 128, 16, 128),
        (33, 64, 16, 48),
        (16, 256, 32, 32),
        (100, 32, 8, 16),
        (100, 16, 32, 32),
    ],
)
def test_blocks_of_the_page_have_the_fewest_elements(size: int, most: int, multiple: int, expected: int) -> None:
    assert extent(size, most, multiple) == expected
