"""Random numbers in networks: others at each run, the same for the same seeds, and what they are distributed like."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from small_network import no_fold

from sley.runtime import Device
from sley.runtime.networks.compilation import CompiledNetwork, compile_network
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.registry import UnsupportedOperator

FLOAT = np.dtype(np.float32)


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=32M") as device:
        yield device


def compiled(
    base: Device, nodes: list[Node], shapes: dict[str, Any], x: Any = (), kind: Any = FLOAT, **constants: Any
) -> CompiledNetwork:
    """Its outputs have these shapes, and this type. ``x``: the shape of an input; none if it is ()."""
    outputs = {name: TensorType(np.dtype(kind), shape) for name, shape in shapes.items()}
    inputs = {"x": TensorType(FLOAT, x)} if x else {}
    return compile_network(Network("noisy", inputs, outputs, nodes, constants), base, no_fold)


def test_numbers_of_runs(base: Device) -> None:
    """Two operators alike differ, runs differ, and a network made again repeats them."""
    nodes = [Node("RandomNormal", (), (name,), {"shape": [7, 9], "mean": 2.0, "scale": 0.5}) for name in "ab"]
    network = compiled(base, nodes, {"a": (7, 9), "b": (7, 9)})
    runs = [network() for _ in range(2)]
    drawn = [run[name] for run in runs for name in "ab"]
    assert len({values.tobytes() for values in drawn}) == 4
    assert abs(np.mean(drawn) - 2) < 0.2
    assert abs(np.std(drawn) - 0.5) < 0.1
    again = compiled(base, nodes, {"a": (7, 9), "b": (7, 9)})
    for run in runs:
        found = again()
        np.testing.assert_array_equal([found["a"], found["b"]], [run["a"], run["b"]])


def test_a_seed_of_an_operator(base: Device) -> None:
    """The same at each run; a uniform distribution between bounds, of the shape of an input; an empty result."""
    nodes = [
        Node("RandomUniformLike", ("x",), ("y",), {"low": -3.0, "high": -1.0, "seed": 5.0}),
        Node("RandomUniform", (), ("none",), {"shape": [3, 0]}),
    ]
    network = compiled(base, nodes, {"y": (11, 13), "none": (3, 0)}, (11, 13))
    x = np.zeros((11, 13), np.float32)
    first, second = network(x), network(x)
    np.testing.assert_array_equal(first["y"], second["y"])
    assert first["none"].shape == (3, 0)
    assert -3 <= first["y"].min() < -2.8
    assert -1.2 < first["y"].max() < -1


def test_dropout_in_training(base: Device) -> None:
    """Elements are 0 or scaled, as the mask says; a ratio of 1 leaves none; other runs keep others. Of constants it is
    no constant."""
    more = {"ratio": np.float32(0.25), "all": np.float32(1), "yes": np.array(True), "k": np.ones((9, 31), np.float32)}
    nodes = [
        Node("Dropout", ("x", "ratio", "yes"), ("y", "mask")),
        Node("Cast", ("mask",), ("m",), {"to": 1}),
        Node("Dropout", ("x", "all", "yes"), ("none",)),
        Node("Dropout", ("k", "ratio", "yes"), ("of_k",)),
    ]
    x = np.random.default_rng(1).uniform(1, 2, (9, 31)).astype(np.float32)
    network = compiled(base, nodes, dict.fromkeys(("y", "m", "none", "of_k"), (9, 31)), (9, 31), **more)
    first, second = network(x), network(x)
    np.testing.assert_allclose(first["y"], x * first["m"] / 0.75, rtol=1e-6)
    assert abs(first["m"].mean() - 0.75) < 0.1
    assert not first["none"].any()
    assert (first["m"] != second["m"]).any()
    assert (first["of_k"] != second["of_k"]).any()


def test_dropout_in_inference_is_nothing(base: Device) -> None:
    """Without a mask that somebody asks for it has no launch."""
    constants = {"ratio": np.float32(0.25), "no": np.array(False)}
    nodes = [Node("Relu", ("x",), ("a",)), Node("Dropout", ("a", "ratio", "no"), ("y",))]
    network = compiled(base, nodes, {"y": (9, 31)}, (9, 31), **constants)
    assert len(network.graph) == 1
    nodes[1] = Node("Dropout", ("a", "ratio", "no"), ("b", "mask"))
    nodes.append(Node("Cast", ("mask",), ("y",), {"to": 1}))
    x = np.zeros((9, 31), np.float32)
    assert compiled(base, nodes, {"y": (9, 31)}, (9, 31), **constants)(x)["y"].all()


def test_choices(base: Device) -> None:
    """A class of no chance is never drawn, others as often as they should; chances of 0 and 1 are sure."""
    chances = np.array([[0.5, 0, 0.25, 0.25], [0, 0, 1, 0]], np.float32)
    with np.errstate(divide="ignore"):
        logarithms = np.log(chances) + 3
    node = Node("Multinomial", ("x",), ("y",), {"sample_size": 2000})
    drawn = compiled(base, [node], {"y": (2, 2000)}, (2, 4), np.int32)(logarithms)["y"]
    shares = np.stack([np.bincount(row, minlength=4) for row in drawn]) / 2000
    np.testing.assert_allclose(shares, chances, atol=0.04)
    assert not shares[chances == 0].any()
    sure = np.tile(np.array([0, 1, 0.5], np.float32), (400, 1))
    found = compiled(base, [Node("Bernoulli", ("x",), ("y",))], {"y": (400, 3)}, (400, 3))(sure)["y"]
    np.testing.assert_allclose(found.mean(0), [0, 1, 0.5], atol=0.1)
    assert found[:, 0].sum() == 0
    assert found[:, 1].sum() == 400


def test_types_that_no_number_has(base: Device) -> None:
    node = Node("RandomNormal", (), ("y",), {"shape": [2, 3], "dtype": 11}, "noise")
    with pytest.raises(UnsupportedOperator, match="'noise': random numbers of float64; the device has float32"):
        compiled(base, [node], {"y": (2, 3)}, kind=np.float64)
