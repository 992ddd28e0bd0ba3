"""A network compiled and run: equal to numpy with and without passes, inputs by name, and what is refused."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from small_network import FLOAT, expected, no_fold, random, small_network

from sley.driver import BadRequest
from sley.runtime import Buffer, Device, ShapeMismatch, UnsupportedType
from sley.runtime.networks import compilation
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.passes.unused import leave_out_unused
from sley.runtime.networks.registry import UnsupportedOperator


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=32M") as device:
        yield device


def test_equal_to_numpy(base: Device) -> None:
    network = leave_out_unused(small_network())
    compiled = compile_network(network, base, no_fold)
    for seed in (11, 12):
        x = random(seed, 2, 3, 5, 7)
        np.testing.assert_allclose(compiled(x)["y"], expected(x, network), rtol=2e-5, atol=2e-5)
        np.testing.assert_array_equal(compiled(x=x)["y"], compiled(x)["y"])


def test_passes_leave_fewer_launches(base: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    network = leave_out_unused(small_network())
    fused = compile_network(network, base, no_fold)
    monkeypatch.setattr(compilation, "optimised", lambda network, fold, own: network)
    plain = compile_network(network, base, no_fold)
    x = random(13, 2, 3, 5, 7)
    np.testing.assert_allclose(fused(x)["y"], plain(x)["y"], rtol=1e-5, atol=1e-5)
    assert len(fused.graph) < len(plain.graph)


def test_shapes_that_are_open(base: Device) -> None:
    network = replace(small_network(), inputs={"x": TensorType(FLOAT, ("batch", 3, 5, 7))})
    network = leave_out_unused(network)
    with pytest.raises(ShapeMismatch, match=r"x has sides that are not known, \('batch', 3, 5, 7\); give its shape"):
        compile_network(network, base, no_fold)
    with pytest.raises(ShapeMismatch, match=r"x has shape \(1, 4, 5, 7\); the network takes"):
        compile_network(network, base, no_fold, {"x": (1, 4, 5, 7)})
    x = random(14, 3, 3, 5, 7)
    found = compile_network(network, base, no_fold, {"x": x.shape})(x)["y"]
    np.testing.assert_allclose(found, expected(x, network), rtol=2e-5, atol=2e-5)


def test_everything_that_is_missing_is_told_at_once(base: Device) -> None:
    types = {"x": TensorType(FLOAT, (2, 3))}
    nodes = [
        Node("Frobnicate", ("x",), ("a",), {}, "layer 1"),
        Node("Relu", ("a",), ("b",)),
        Node("Quux", ("b",), ("y",), {}, "layer 2"),
    ]
    network = Network("odd", types, {"y": types["x"]}, nodes, {})
    with pytest.raises(UnsupportedOperator, match=r"(?s)'odd'.*Frobnicate 'layer 1'.*Quux 'layer 2'"):
        compile_network(network, base, no_fold)


def test_outputs_have_the_types_that_the_network_says(base: Device) -> None:
    types = TensorType(FLOAT, (2, 3)), TensorType(np.dtype(np.int64), (2, 3))
    network = Network("typed", {"x": types[0]}, {"y": types[1]}, [Node("Relu", ("x",), ("y",))], {})
    with pytest.raises(UnsupportedOperator, match="'typed' gives y as int64, and the device computes float32"):
        compile_network(network, base, no_fold)


def test_inputs_that_do_not_fit(base: Device) -> None:
    compiled = compile_network(leave_out_unused(small_network()), base, no_fold)
    with pytest.raises(BadRequest, match="'small' takes x; given were z"):
        compiled(z=random(1, 2, 3, 5, 7))
    with pytest.raises(ShapeMismatch):
        compiled(random(1, 2, 3, 5, 8))
    with pytest.raises(UnsupportedType, match="x is float64; the device has no such type"):
        compiled(random(1, 2, 3, 5, 7).astype(np.float64))
    compiled(random(1, 2, 3, 5, 7))


def test_integers_of_64_bits(base: Device) -> None:
    kind = TensorType(np.dtype(np.int64), (3,))
    network = Network("long", {"x": kind}, {"y": kind}, [Node("Add", ("x", "x"), ("y",))], {})
    compiled = compile_network(network, base, no_fold)
    found = compiled(np.array([1, -2, 3]))["y"]
    assert found.dtype == np.int64
    assert found.tolist() == [2, -4, 6]
    with pytest.raises(BadRequest, match="x holds integers beyond int32"):
        compiled(np.array([1 << 40, 0, 0]))


def test_elements_lie_as_images_do(base: Device) -> None:
    """Images are channels last in memory, and so are results of operators on them, with what is broadcast to them."""
    network = small_network()
    type = TensorType(FLOAT, (2, 6, 5, 7))
    nodes = [
        Node("Conv", ("x", "w"), ("conv",), {"pads": [1, 1, 1, 1]}),
        Node("Sub", ("row", "conv"), ("less",)),
        Node("Mul", ("less", "planes"), ("scaled",)),
        Node("Abs", ("scaled",), ("y",)),
    ]
    constants = {"w": network.constants["w"], "row": random(31, 6, 1, 1), "planes": random(32, 2, 6, 5, 7)}
    whole = Network("elements", network.inputs, {"y": type, "conv": type}, nodes, constants)
    compiled = compile_network(whole, base, no_fold)
    x = random(33, 2, 3, 5, 7)
    found = compiled(x)
    expected = abs((constants["row"] - found["conv"]) * constants["planes"])
    np.testing.assert_allclose(found["y"], expected, rtol=1e-6)
    y = compiled.outputs["y"]
    assert isinstance(y, Buffer)
    assert y.strides[1] == 4
