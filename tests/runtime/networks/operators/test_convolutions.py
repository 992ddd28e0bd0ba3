"""Convolutions that the array would be idle in: few channels, small groups, shuffled channels, against float64."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from sley.runtime import Device
from sley.runtime.networks.compilation import CompiledNetwork, compile_network
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.operators.groups import merged, together

FLOAT = np.dtype(np.float32)
ERRORS = {"highest": 2e-6, "high": 3e-5, "medium": 1e-2}


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=32M") as device:
        yield device


def conv(x: np.ndarray, w: np.ndarray, steps: tuple[int, int], pads: tuple[int, ...], groups: int = 1) -> np.ndarray:
    """[images, channels, y, x] in float64."""
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    rows, across = w.shape[2:]
    sides = [(size - taps) // step + 1 for size, taps, step in zip(x.shape[2:], (rows, across), steps, strict=True)]
    total: Any = 0
    for i in range(rows):
        for j in range(across):
            ends = [start + (side - 1) * step + 1 for start, side, step in zip((i, j), sides, steps, strict=True)]
            seen = x[:, :, i : ends[0] : steps[0], j : ends[1] : steps[1]]
            parts = zip(np.split(seen, groups, 1), np.split(w[:, :, i, j], groups), strict=True)
            total = total + np.concatenate([np.einsum("nchw,oc->nohw", a, b) for a, b in parts], 1)
    return total


def compiled_conv(base: Device, x: np.ndarray, y: np.ndarray, w: np.ndarray, precision: str, **more: Any) -> Any:
    inputs, outputs = {"x": TensorType(FLOAT, x.shape)}, {"y": TensorType(FLOAT, y.shape)}
    network = Network("conv", inputs, outputs, [Node("Conv", ("x", "w"), ("y",), more)], {"w": w})
    return compile_network(network, base, _no_fold, precision=precision)


@pytest.mark.parametrize("precision", ERRORS)
@pytest.mark.parametrize(
    ("sides", "taps", "steps", "pads"),
    [
        ((3, 11, 13), (7, 7), (2, 2), (3, 3, 3, 3)),
        ((3, 9, 10), (3, 3), (1, 1), (1, 1, 1, 1)),
        ((5, 8, 9), (3, 2), (2, 3), (0, 1, 1, 0)),
        ((1, 19, 23), (11, 11), (4, 4), (0, 0, 0, 0)),
    ],
)
def test_few_channels(base: Device, sides: Any, taps: Any, steps: Any, pads: Any, precision: str) -> None:
    random = np.random.default_rng(1)
    x = random.standard_normal((2, *sides)).astype(np.float32)
    w = random.standard_normal((6, sides[0], *taps)).astype(np.float32)
    y = conv(x, w, steps, pads)
    compiled = compiled_conv(base, x, y, w, precision, strides=list(steps), pads=list(pads))
    assert "x1x" in compiled.graph.launches[-1].program.name  # taps [y, 1]
    np.testing.assert_allclose(compiled(x)["y"], y, atol=ERRORS[precision] * np.abs(y).max())


@pytest.mark.parametrize("precision", ERRORS)
@pytest.mark.parametrize(("groups", "channels", "outputs"), [(24, 1, 1), (6, 2, 3), (34, 1, 2), (2, 20, 5)])
def test_groups(base: Device, groups: int, channels: int, outputs: int, precision: str) -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((1, groups * channels, 5, 6)).astype(np.float32)
    w = random.standard_normal((groups * outputs, channels, 3, 3)).astype(np.float32)
    y = conv(x, w, (1, 1), (1, 1, 1, 1), groups)
    compiled = compiled_conv(base, x, y, w, precision, group=groups, pads=[1] * 4)
    np.testing.assert_allclose(compiled(x)["y"], y, atol=ERRORS[precision] * np.abs(y).max())


def test_how_many_groups_are_one() -> None:
    assert together(112, 1, 1, 16) == 16
    assert together(136, 1, 1, 16) == 8
    assert together(4, 28, 28, 16) == 1
    assert together(1, 3, 64, 16) == 1
    taps = np.arange(1, 13).reshape(1, 1, 1, 12)
    found = merged(taps, 12, 4)
    assert found.shape == (1, 1, 4, 12)
    np.testing.assert_array_equal(found[0, 0, :, 4:8], np.diag([5, 6, 7, 8]))


def shuffled(base: Device, precision: str, seen: bool = False) -> CompiledNetwork:
    """Channels in 4 groups of 6, shuffled; ``seen``: the values between are outputs, too."""
    types = {name: TensorType(FLOAT, (1, 24, 5, 6)) for name in ("x", "y", "z")}
    types |= {"a": TensorType(FLOAT, (1, 4, 6, 5, 6)), "b": TensorType(FLOAT, (1, 6, 4, 5, 6))}
    nodes = [
        Node("Reshape", ("x", "split"), ("a",)),
        Node("Transpose", ("a",), ("b",), {"perm": [0, 2, 1, 3, 4]}),
        Node("Reshape", ("b", "join"), ("y",)),
        Node("Relu", ("y",), ("z",)),
    ]
    constants = {"split": np.array([1, 4, 6, 5, 6]), "join": np.array([1, 24, 5, 6])}
    outputs = {name: types[name] for name in (("z", "b") if seen else ("z",))}
    network = Network("shuffle", {"x": types["x"]}, outputs, nodes, constants, types)
    return compile_network(network, base, _no_fold, precision=precision)


@pytest.mark.parametrize("precision", ERRORS)
def test_shuffles_are_exact(base: Device, precision: str) -> None:
    x = np.random.default_rng(3).standard_normal((1, 24, 5, 6)).astype(np.float32)
    wanted = np.maximum(x.reshape(1, 4, 6, 5, 6).transpose(0, 2, 1, 3, 4).reshape(x.shape), 0)
    compiled = shuffled(base, precision)
    assert any(launch.program.name.startswith("conv") for launch in compiled.graph.launches)
    np.testing.assert_array_equal(compiled(x)["z"], wanted)


def test_a_shuffle_that_others_see_stays(base: Device) -> None:
    x = np.random.default_rng(4).standard_normal((1, 24, 5, 6)).astype(np.float32)
    compiled = shuffled(base, "medium", seen=True)
    assert not any(launch.program.name.startswith("conv") for launch in compiled.graph.launches)
    np.testing.assert_array_equal(compiled(x)["b"], x.reshape(1, 4, 6, 5, 6).transpose(0, 2, 1, 3, 4))


def _no_fold(node: Node, inputs: object) -> list[np.ndarray]:
    raise AssertionError(node)
