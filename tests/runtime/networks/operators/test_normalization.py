"""Batch norm of known moments, alone, and local response normalization, on images with channels last in memory."""

from collections.abc import Iterator

import numpy as np
import pytest

from sley.runtime import Device
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.graph import Network, Node, TensorType

FLOAT = np.dtype(np.float32)
SHAPE = 2, 5, 4, 7


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=32M") as device:
        yield device


def run(base: Device, nodes: list[Node], constants: dict[str, np.ndarray], x: np.ndarray, precision: str) -> np.ndarray:
    """Behind a 1 x 1 convolution by the identity at precision "highest", so that channels are last in memory."""
    type = TensorType(FLOAT, x.shape)
    own = {**constants, "eye": np.eye(x.shape[1], dtype=np.float32)[:, :, None, None]}
    every = [Node("Conv", ("x", "eye"), ("h",)), Node("Abs", ("h",), ("a",)), *nodes]
    types = {name: type for node in every for name in node.outputs}
    network = Network("norm", {"x": type}, {"y": type}, every, own, types)
    found: np.ndarray = compile_network(network, base, _no_fold, precision=precision)(x)["y"]
    return found


@pytest.mark.parametrize("relu", [False, True])
def test_batch_norm_alone(base: Device, relu: bool) -> None:
    random = np.random.default_rng(1)
    x = random.standard_normal(SHAPE).astype(np.float32)
    rows = {name: random.standard_normal(5).astype(np.float32) for name in ("scale", "shift", "mean")}
    rows["var"] = random.uniform(0.5, 2, 5).astype(np.float32)
    nodes = [Node("BatchNormalization", ("a", *rows), ("b" if relu else "y",), {"epsilon": 1e-3})]
    nodes += [Node("Relu", ("b",), ("y",))] if relu else []
    scale, shift, mean, var = (row.astype(np.float64).reshape(-1, 1, 1) for row in rows.values())
    wanted = (np.abs(x) - mean) / np.sqrt(var + 1e-3) * scale + shift
    wanted = np.maximum(wanted, 0) if relu else wanted
    np.testing.assert_allclose(run(base, nodes, rows, x, "highest"), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_local_response(base: Device, size: int) -> None:
    x = np.random.default_rng(2).standard_normal(SHAPE).astype(np.float32)
    attributes = {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5}
    a = np.abs(x).astype(np.float64)
    squares = np.pad(a**2, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
    total = sum(squares[:, shift : shift + SHAPE[1]] for shift in range(size))
    wanted = a / (1.5 + 0.3 / size * total) ** 0.6
    found = run(base, [Node("LRN", ("a",), ("y",), attributes)], {}, x, "highest")
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("before", "behind"), [(3, 2), (6, 6), (0, 4)])
@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_pads_that_go_on(base: Device, mode: str, before: int, behind: int) -> None:
    x = np.random.default_rng(3).standard_normal((2, 7)).astype(np.float32)
    wanted = np.pad(x, [(0, 0), (before, behind)], mode=mode)  # type: ignore[call-overload]
    pads = np.array([0, before, 0, behind])
    types = TensorType(FLOAT, x.shape), TensorType(FLOAT, wanted.shape)
    node = Node("Pad", ("x", "pads"), ("y",), {"mode": mode})
    network = Network("pad", {"x": types[0]}, {"y": types[1]}, [node], {"pads": pads})
    np.testing.assert_array_equal(compile_network(network, base, _no_fold)(x)["y"], wanted)


def _no_fold(node: Node, inputs: object) -> list[np.ndarray]:
    raise AssertionError(node)
