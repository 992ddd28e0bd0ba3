"""Values in bfloat16 where only products take them: no bit changes, and fewer bytes are moved."""

from collections.abc import Iterator

import numpy as np
import pytest
from random_network import SIDES, random_network
from small_network import FLOAT, no_fold, random

from sley.runtime import Device
from sley.runtime.device.buffer import BF16
from sley.runtime.networks import compilation
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.passes.bias import fuse_bias
from sley.runtime.networks.passes.narrow import RESULT, narrow
from sley.runtime.networks.passes.regions import form_regions
from sley.runtime.networks.passes.unused import leave_out_unused


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=32M") as device:
        yield device


def chain() -> Network:
    """Products with what may be between them, and a value that an addition takes, too."""
    types = {name: TensorType(FLOAT, (4, 16)) for name in "xabcdefgy"}
    constants = {name: random(number, 16, 16) for number, name in enumerate("uvw")}
    nodes = [
        Node("MatMul", ("x", "u"), ("a",)),
        Node("Relu", ("a",), ("b",)),
        Node("MatMul", ("b", "v"), ("c",)),
        Node("Sigmoid", ("c",), ("d",)),
        Node("Gelu", ("d",), ("e",)),
        Node("MatMul", ("e", "w"), ("f",)),
        Node("Add", ("f", "d"), ("y",)),
    ]
    return Network("chain", {"x": types["x"]}, {"y": types["y"]}, nodes, constants, types)


def test_what_is_narrow() -> None:
    network = narrow(chain())
    assert {node.outputs[0] for node in network.nodes if node.attributes.get(RESULT) == BF16} == {"a", "e"}


def test_outputs_and_other_types_are_not() -> None:
    network = chain()
    shown = Network("shown", network.inputs, {"a": network.types["a"]}, network.nodes, network.constants, network.types)
    assert not any(RESULT in node.attributes for node in narrow(shown).nodes if node.outputs[0] == "a")
    integers = {**network.types, "a": TensorType(np.dtype(np.int32), (4, 16))}
    other = Network("other", network.inputs, network.outputs, network.nodes, network.constants, integers)
    assert not any(RESULT in node.attributes for node in narrow(other).nodes if node.outputs[0] == "a")


def residual() -> Network:
    """A region whose result a convolution rounds and an addition does not."""
    types = {name: TensorType(FLOAT, SIDES) for name in "xabcdey"}
    constants = {"v": random(1, 3, 3, 1, 1), "w": random(2, 3, 3, 1, 1)}
    nodes = [
        Node("Conv", ("x", "v"), ("a",)),
        Node("Add", ("a", "x"), ("b",)),
        Node("Sigmoid", ("b",), ("c",)),
        Node("Conv", ("c", "w"), ("d",)),
        Node("Add", ("d", "c"), ("e",)),
        Node("Tanh", ("e",), ("y",)),
    ]
    return Network("residual", {"x": types["x"]}, {"y": types["y"]}, nodes, constants, types)


def test_a_region_makes_its_result_twice(base: Device) -> None:
    nodes = narrow(form_regions(residual())).nodes
    assert [len(node.outputs) for node in nodes if node.operator == "Region"] == [2, 1]
    compiled = compile_network(residual(), base, no_fold, precision="medium")
    assert len(compiled.graph) == 5  # x in parts, convolution, region, convolution, region


@pytest.mark.parametrize(
    "network", [chain(), residual(), *map(random_network, (11, 12, 13))], ids=lambda network: network.name
)
def test_no_bit_changes(base: Device, monkeypatch: pytest.MonkeyPatch, network: Network) -> None:
    network = leave_out_unused(network)
    narrowed = compile_network(network, base, no_fold, precision="medium")
    monkeypatch.setattr(compilation, "narrow", lambda network: network)
    wide = compile_network(network, base, no_fold, precision="medium")
    x = random(5, *((4, 16) if network.name == "chain" else SIDES))
    found, wanted = narrowed(x), wide(x)
    for name in network.outputs:
        np.testing.assert_array_equal(found[name], wanted[name])
    assert len(narrowed.graph) <= len(wide.graph)


def test_a_row_joins_its_product(base: Device) -> None:
    type = TensorType(FLOAT, (2, 3, 8))
    wide = TensorType(FLOAT, (2, 3, 5))
    constants = {"w": random(1, 8, 5), "b": random(2, 5)}
    nodes = [Node("MatMul", ("x", "w"), ("s",)), Node("Add", ("b", "s"), ("t",)), Node("Relu", ("t",), ("y",))]
    network = Network("row", {"x": type}, {"y": wide}, nodes, constants, {"s": wide, "t": wide})
    assert [node.operator for node in fuse_bias(network).nodes] == ["MatMul", "Relu"]
    compiled = compile_network(network, base, no_fold)
    assert len(compiled.graph) == 2  # parts of x, the product
    x = random(3, 2, 3, 8)
    wanted = np.maximum(x.astype(np.float64) @ constants["w"] + constants["b"], 0)
    np.testing.assert_allclose(compiled(x)["y"], wanted, rtol=1e-5, atol=1e-6)
    shown = Network("shown", {"x": type}, {"y": wide, "s": wide}, nodes, constants, {"s": wide, "t": wide})
    assert [node.operator for node in fuse_bias(shown).nodes] == ["MatMul", "Add", "Relu"]


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
@pytest.mark.parametrize(
    ("left", "right"), [((6,), (6,)), ((6,), (6, 4)), ((3, 6), (6,)), ((2, 3, 6), (6, 4)), ((2, 3, 6), (2, 6, 4))]
)
def test_products_with_constants(base: Device, left: tuple[int, ...], right: tuple[int, ...], precision: str) -> None:
    w, x = random(1, *right), random(2, *left)
    wanted = x.astype(np.float64) @ w
    types = TensorType(FLOAT, left), TensorType(FLOAT, wanted.shape)
    network = Network("product", {"x": types[0]}, {"y": types[1]}, [Node("MatMul", ("x", "w"), ("y",))], {"w": w})
    found = compile_network(network, base, no_fold, precision=precision)(x)["y"]
    error = {"highest": 1e-6, "high": 1e-4, "medium": 2e-2}[precision]
    np.testing.assert_allclose(found, wanted, atol=error * np.abs(wanted).max())
