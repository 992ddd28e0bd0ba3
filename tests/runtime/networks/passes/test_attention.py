"""Attention in steps becomes one operator where it is that, and gives what its steps give."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from small_network import FLOAT, no_fold

from sley.runtime import Device
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.passes.attention import fuse_attention

HEADS, QUERIES, KEYS = 3, 20, 33
FORMS = ("behind", "divided", "halves", "none", "reshaped", "three axes")


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=32M") as device:
        yield device


def network(form: str = "behind", dim: int = 16, factor: float = 0.25, **changed: Any) -> Network:
    """softmax(factor · q · k^T) · v. ``changed``: the attributes of the softmax, outputs besides y."""
    lead = (HEADS,) if form == "three axes" else (1, HEADS)
    q, k, v = ((*lead, rows, dim) for rows in (QUERIES, KEYS, KEYS))
    flat = (HEADS, KEYS, dim) if form == "reshaped" else k
    scores = (*lead, QUERIES, KEYS)
    shapes = {"q": q, "k": flat, "v": v, "y": q, "scores": scores, "weights": scores, "scaled": scores}
    shapes |= {"turned": (*flat[:-2], dim, KEYS), "flat": (*lead, dim, KEYS), "less": q, "fewer": (*lead, dim, KEYS)}
    constants: dict[str, Any] = {"factor": np.float32([factor]), "over": np.float32(1 / factor)}
    constants |= {"root": np.float32(np.sqrt(abs(factor))), "sizes": np.array((*lead, dim, KEYS), np.int64)}
    rank = len(flat)
    nodes = [Node("Transpose", ("k",), ("turned",), {"perm": [*range(rank - 2), rank - 1, rank - 2]})]
    left, right, last = "q", "turned", "scores"
    if form == "reshaped":
        nodes.append(Node("Reshape", ("turned", "sizes"), ("flat",)))
        right = "flat"
    if form == "halves":
        nodes += [Node("Mul", ("q", "root"), ("less",)), Node("Mul", ("root", right), ("fewer",))]
        left, right = "less", "fewer"
    nodes.append(Node("MatMul", (left, right), ("scores",)))
    if form not in ("halves", "none"):
        divided = form == "divided"
        nodes.append(Node("Div" if divided else "Mul", ("scores", "over" if divided else "factor"), ("scaled",)))
        last = "scaled"
    nodes += [
        Node("Softmax", (last,), ("weights",), changed.get("softmax", {"axis": -1})),
        Node("MatMul", ("weights", "v"), ("y",)),
    ]
    types = {name: TensorType(FLOAT, shape) for name, shape in shapes.items()}
    inputs = {name: types[name] for name in "qkv"}
    outputs = {name: types[name] for name in ("y", *changed.get("outputs", ()))}
    return Network("attention", inputs, outputs, nodes, constants, types)


def arrays(made: Network) -> dict[str, Any]:
    random = np.random.default_rng(7)
    return {name: random.standard_normal(type.shape).astype(np.float32) for name, type in made.inputs.items()}


def expected(given: dict[str, Any], factor: float) -> Any:
    q, k, v = (given[name].astype(np.float64) for name in "qkv")
    k = k.reshape(v.shape)
    powers = np.exp(factor * (q @ k.swapaxes(-1, -2)))
    return powers / powers.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("form", FORMS)
def test_what_is_fused(form: str) -> None:
    fused = fuse_attention(network(form))
    (found,) = [node for node in fused.nodes if node.operator == "Attention"]
    assert found.attributes["scale"] == pytest.approx(1.0 if form == "none" else 0.25)
    assert not {"Softmax", "MatMul", "Mul", "Div"} & {node.operator for node in fused.nodes}


@pytest.mark.parametrize(
    "made",
    [
        network(softmax={"axis": 1}),
        network(outputs=("weights",)),
        network(outputs=("scores",)),
        network(factor=-0.25),
    ],
    ids=["another axis", "weights are a result", "scores are a result", "negative factor"],
)
def test_what_is_not(made: Network) -> None:
    assert fuse_attention(made) is made


def test_masks_stay_in_steps() -> None:
    made = network("none")
    made.types["masked"] = made.types["scores"]
    nodes = [*made.nodes[:2], Node("Add", ("scores", "mask"), ("masked",)), *made.nodes[2:]]
    nodes[3] = Node("Softmax", ("masked",), ("weights",), {"axis": -1})
    masked = made.with_nodes(nodes, {**made.constants, "mask": np.zeros((QUERIES, KEYS), np.float32)})
    assert fuse_attention(masked) is masked


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("precision", "error"), [("highest", 2e-6), ("medium", 5e-2)])
def test_results(base: Device, form: str, precision: str, error: float) -> None:
    made = network(form)
    given = arrays(made)
    found = compile_network(made, base, no_fold, precision=precision)(*given.values())["y"]
    np.testing.assert_allclose(found, expected(given, 1.0 if form == "none" else 0.25), atol=error)


@pytest.mark.parametrize("dim", [1, 20, 48])
def test_other_sizes_are_done_in_steps_or_not(base: Device, dim: int) -> None:
    made = network("halves", dim)
    given = arrays(made)
    found = compile_network(made, base, no_fold, precision="medium")(*given.values())["y"]
    np.testing.assert_allclose(found, expected(given, 0.25), atol=2e-2)


def test_its_products_are_counted(base: Device) -> None:
    """Both products of attention, as they were in steps."""
    made = compile_network(network("behind"), base, no_fold, precision="medium")
    (place,) = [place for place in made.places if place.node.operator == "Attention"]
    assert place.macs == 2 * HEADS * QUERIES * KEYS * 16


@pytest.mark.parametrize("causal", [0, 1])
def test_the_operator_itself(base: Device, causal: int) -> None:
    """At precision "medium" one program, too, causal or not."""
    made = network("none")
    node = Node("Attention", ("q", "k", "v"), ("y",), {"scale": 0.25, "is_causal": causal}, "", 23)
    whole = made.with_nodes([node])
    given = arrays(made)
    found = compile_network(whole, base, no_fold, precision="medium")
    assert any("attention" in launch.program.name for launch in found.graph.launches)
    powers = np.exp(0.25 * (given["q"].astype(np.float64) @ given["k"].swapaxes(-1, -2)))
    powers = np.tril(powers) if causal else powers
    wanted = powers / powers.sum(-1, keepdims=True) @ given["v"]
    np.testing.assert_allclose(found(*given.values())["y"], wanted, atol=5e-2)
