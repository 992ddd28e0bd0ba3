"""What each pass makes of a network, and what it leaves alone."""

from dataclasses import replace

import numpy as np
import pytest
from small_network import small_network

from sley.runtime.networks.graph import Network, Node
from sley.runtime.networks.passes.activation import fuse_activation
from sley.runtime.networks.passes.batch_norm import fold_batch_norm
from sley.runtime.networks.passes.constants import fold_constants
from sley.runtime.networks.passes.order import PASSES, optimised
from sley.runtime.networks.passes.regions import MOST_STEPS, form_regions
from sley.runtime.networks.passes.scales import join_scales
from sley.runtime.networks.passes.unused import leave_out_unused


def operators(network: Network) -> list[str]:
    return [node.operator for node in network.nodes]


def test_unused() -> None:
    network = leave_out_unused(small_network())
    assert "Exp" not in operators(network)
    assert "alone" not in network.constants


def test_constants() -> None:
    network = fold_constants(
        small_network(), lambda node, inputs: [np.exp(value) for value in inputs if value is not None]
    )
    assert "Exp" not in operators(network)
    np.testing.assert_array_equal(network.constants["unused"], np.exp(network.constants["alone"]))


def test_batch_norm() -> None:
    network = fold_batch_norm(small_network())
    assert operators(network)[:2] == ["Conv", "Relu"]
    conv, before = network.nodes[0], small_network().constants
    factor = before["scale"] / np.sqrt(before["var"] + 1e-3)
    np.testing.assert_allclose(network.constants[conv.inputs[1]], before["w"] * factor[:, None, None, None], rtol=1e-6)
    np.testing.assert_allclose(network.constants[conv.inputs[2]], before["shift"] - before["mean"] * factor, rtol=1e-5)


def test_batch_norm_that_stays() -> None:
    """Where somebody else sees the convolution, or its moments are not known."""
    network = small_network()
    seen = replace(network, outputs={**network.outputs, "conv": network.types["conv"]})
    assert "BatchNormalization" in operators(fold_batch_norm(seen))
    unknown = replace(network, constants={name: value for name, value in network.constants.items() if name != "var"})
    assert "BatchNormalization" in operators(fold_batch_norm(unknown))


@pytest.mark.parametrize("side", [0, 1])
def test_scales(side: int) -> None:
    """Mul and Add of channels behind a batch norm; one along another axis stays."""
    network, rows = small_network(), {"m": np.arange(1, 7), "a": np.arange(6) - 2.0}
    constants = {**network.constants, **{name: row.astype(np.float32).reshape(6, 1, 1) for name, row in rows.items()}}
    values = [("norm", "m"), ("scaled by m", "a")]
    norm = [
        replace(network.nodes[1], outputs=("norm",)),
        Node("Mul", values[0][:: 1 - 2 * side], ("scaled by m",)),
        Node("Add", values[1][:: 1 - 2 * side], ("moved",)),
        replace(network.nodes[2], inputs=("moved",)),
    ]
    types = {**network.types, "scaled by m": network.types["norm"], "moved": network.types["norm"]}
    grown = replace(network, nodes=[network.nodes[0], *norm, *network.nodes[3:]], constants=constants, types=types)
    joined = join_scales(grown)
    assert operators(joined)[:3] == ["Conv", "BatchNormalization", "Relu"]
    scale, shift = (joined.constants[name] for name in joined.nodes[1].inputs[1:3])
    np.testing.assert_allclose(scale, constants["scale"] * rows["m"], rtol=1e-6)
    np.testing.assert_allclose(shift, constants["shift"] * rows["m"] + rows["a"], rtol=1e-6)
    across = replace(grown, constants={**constants, "m": np.ones((1, 1, 7), np.float32)})
    assert "Mul" in operators(join_scales(across))


def test_activation() -> None:
    network = fuse_activation(fold_batch_norm(small_network()))
    assert operators(network)[0] == "Conv"
    assert "Relu" not in operators(network)
    assert network.nodes[0].attributes["relu"] == 1
    assert network.nodes[0].outputs == ("active",)


def test_regions() -> None:
    network = form_regions(fuse_activation(fold_batch_norm(leave_out_unused(small_network()))))
    assert operators(network) == ["Conv", "Conv", "Region"]
    region = network.nodes[-1]
    assert set(region.inputs) == {"active", "side"}
    assert [step.operator for step in region.attributes["region"].steps] == ["Add", "Sigmoid", "Mul", "LeakyRelu"]


def test_regions_have_an_end() -> None:
    network = small_network()
    count, types = 2 * MOST_STEPS + 3, dict(network.types)
    nodes = [Node("Neg", (f"v{number}" if number else "x",), (f"v{number + 1}",)) for number in range(count)]
    types |= {node.outputs[0]: network.types["y"] for node in nodes}
    long = Network("long", network.inputs, {f"v{count}": network.types["y"]}, nodes, {}, types)
    made = form_regions(long)
    steps = [len(node.attributes["region"].steps) if "region" in node.attributes else 1 for node in made.nodes]
    assert sum(steps) == count
    assert max(steps) <= MOST_STEPS


def test_dumps(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SLEY_DUMP", "regions")
    optimised(leave_out_unused(small_network()), lambda node, inputs: [])
    text = capsys.readouterr().err
    assert text.startswith("# behind regions\nnetwork small: x -> y\n")
    assert "y = Region(" in text
    assert list(PASSES) == ["unused", "scales", "batch_norm", "bias", "activation", "attention", "shuffles", "regions"]
