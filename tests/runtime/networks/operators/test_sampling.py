"""Images at places that are computed: GridSample against float64."""

from collections.abc import Iterator

import numpy as np
import pytest
from small_network import no_fold

from sley.runtime import Device
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.registry import UnsupportedOperator

FLOAT = np.dtype(np.float32)


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=32M") as device:
        yield device


def moved(place: float, size: int, padding: str, aligned: bool) -> float:
    """A place inside of an axis."""
    if padding == "reflection":
        first, last = (0, size - 1) if aligned else (-0.5, size - 0.5)
        while last > first and not first <= place <= last:
            place = 2 * first - place if place < first else 2 * last - place
    return place if padding == "zeros" else min(max(place, 0), size - 1)


def taps(g: float, size: int, mode: str, padding: str, aligned: bool) -> list[tuple[int, float]]:
    """Elements along an axis, and their weights."""
    place = (g + 1) / 2 * (size - 1) if aligned else ((g + 1) * size - 1) / 2
    if mode != "cubic":
        place = moved(place, size, padding, aligned)
    if mode == "nearest":
        found = [(round(place), 1.0)]
    elif mode == "linear":
        low = int(np.floor(place))
        found = [(low, 1 - place + low), (low + 1, place - low)]
    else:
        low, found = int(np.floor(place)), []
        for spot in range(low - 1, low + 3):
            d = abs(place - spot)
            near, far = (1.25 * d - 2.25) * d * d + 1, ((d - 5) * d + 8) * d * -0.75 + 3
            found.append((int(moved(spot, size, padding, aligned)), near if d <= 1 else far))
    return [(spot, weight) for spot, weight in found if 0 <= spot < size]


def expected(x: np.ndarray, grid: np.ndarray, mode: str, padding: str, aligned: bool) -> np.ndarray:
    sides, spots = x.shape[2:], grid.shape[1:-1]
    y = np.zeros((*x.shape[:2], *spots))
    for image in range(len(x)):
        for spot in np.ndindex(spots):
            every = [
                taps(float(g), size, mode, padding, aligned)
                for g, size in zip(grid[(image, *spot)][::-1], sides, strict=True)
            ]
            for number in np.ndindex(*map(len, every)):
                chosen = [tap[n] for tap, n in zip(every, number, strict=True)]
                weight = np.prod([w for _, w in chosen])
                y[(image, slice(None), *spot)] += weight * x[(image, slice(None), *(place for place, _ in chosen))]
    return y


def sampled(base: Device, x: np.ndarray, grid: np.ndarray, **attributes: object) -> np.ndarray:
    inputs = {"x": TensorType(FLOAT, x.shape), "grid": TensorType(FLOAT, grid.shape)}
    outputs = {"y": TensorType(FLOAT, (*x.shape[:2], *grid.shape[1:-1]))}
    network = Network("grid", inputs, outputs, [Node("GridSample", ("x", "grid"), ("y",), attributes)], {})
    found: np.ndarray = compile_network(network, base, no_fold)(x, grid)["y"]
    return found


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_images(base: Device, mode: str, padding: str) -> None:
    """Two images whose sides are odd; places inside, outside, and further away than a reflection."""
    random = np.random.default_rng(1)
    x = random.standard_normal((2, 3, 5, 7)).astype(np.float32)
    grid = random.uniform(-2.5, 2.5, (2, 4, 3, 2)).astype(np.float32)
    for aligned in (False, True):
        found = sampled(base, x, grid, mode=mode, padding_mode=padding, align_corners=int(aligned))
        np.testing.assert_allclose(found, expected(x, grid, mode, padding, aligned), rtol=1e-5, atol=1e-5)


def test_volumes_and_names_of_older_opsets(base: Device) -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((1, 2, 3, 4, 5)).astype(np.float32)
    grid = random.uniform(-1.2, 1.2, (1, 2, 3, 2, 3)).astype(np.float32)
    found = sampled(base, x, grid, mode="bilinear")
    np.testing.assert_allclose(found, expected(x, grid, "linear", "zeros", False), rtol=1e-5, atol=1e-5)


def test_places_that_are_no_number(base: Device) -> None:
    """They are outside, as those infinitely far away."""
    grid = np.array([[[[np.nan, 0], [0, np.inf], [0, 0]]]], np.float32)
    found = sampled(base, np.ones((1, 1, 4, 4), np.float32), grid)
    np.testing.assert_array_equal(found, [[[[0, 0, 1]]]])


def test_cubic_volumes_are_refused(base: Device) -> None:
    with pytest.raises(UnsupportedOperator, match="cubic of float32 of 3 axes"):
        sampled(base, np.ones((1, 1, 2, 2, 2), np.float32), np.zeros((1, 1, 1, 1, 3), np.float32), mode="cubic")
