"""If, Loop and Scan: replaced by what is inside of them, step by step; what is not known is named."""

from typing import Any

import numpy as np
import pytest

from sley.runtime.networks.graph import Array, Network, Node, TensorType
from sley.runtime.networks.passes.subgraphs import MOST, inline_subgraphs

ANY = TensorType(np.dtype(np.void), None)
HOST: dict[str, Any] = {
    "Add": np.add,
    "Less": np.less,
    "Identity": lambda x: x,
    "Neg": np.negative,
    "Unsqueeze": lambda x, axes: np.expand_dims(x, tuple(axes)),
}


def fold(node: Node, inputs: Any) -> list[Array]:
    if node.operator == "Concat":
        return [np.concatenate(inputs, node.attributes["axis"])]
    if node.operator == "Gather":
        return [np.take(inputs[0], inputs[1], node.attributes.get("axis", 0))]
    return [np.asarray(HOST[node.operator](*inputs))]


def graph(nodes: list[Node], inputs: str, outputs: str, **constants: Any) -> Network:
    known = {name: np.asarray(value) for name, value in constants.items()}
    return Network("part", dict.fromkeys(inputs.split(), ANY), dict.fromkeys(outputs.split(), ANY), nodes, known)


def computed(network: Network, **values: Array) -> dict[str, Array]:
    """What a network without subgraphs gives."""
    found: dict[str, Any] = {**network.constants, **values}
    for node in network.nodes:
        found |= dict(zip(node.outputs, fold(node, [found[name] for name in node.inputs]), strict=True))
    return {name: found[name] for name in network.outputs}


BRANCHES = {
    "then_branch": graph([Node("Add", ("x", "k"), ("r",))], "", "r", k=2.0),
    "else_branch": graph([Node("Neg", ("x",), ("r",))], "", "r"),
}


@pytest.mark.parametrize(("condition", "right"), [(True, 5.0), (False, -3.0)])
def test_if(condition: bool, right: float) -> None:
    """The branch sees values outside of it, and its own names do not meet those outside."""
    nodes = [Node("If", ("c",), ("y",), BRANCHES), Node("Add", ("y", "k"), ("z",))]
    made = inline_subgraphs(graph(nodes, "x", "y z", c=condition, k=10.0), fold)
    assert "If" not in [node.operator for node in made.nodes]
    assert computed(made, x=np.float64(3)) == {"y": right, "z": right + 10}


def test_a_condition_that_is_made_of_constants() -> None:
    nodes = [Node("Less", ("a", "b"), ("c",)), Node("If", ("c",), ("y",), BRANCHES)]
    made = inline_subgraphs(graph(nodes, "x", "y", a=1, b=2), fold)
    assert computed(made, x=np.float64(3)) == {"y": 5.0}


def test_a_condition_that_is_computed_stays_with_the_reason() -> None:
    made = inline_subgraphs(graph([Node("If", ("c",), ("y",), BRANCHES)], "x c", "y"), fold)
    (node,) = made.nodes
    assert (node.operator, node.outputs) == ("If", ("y",))
    assert node.attributes == {
        "reason": "the condition is computed by the network; it must be known when it is compiled"
    }


def loop(count: Any, limit: int = 100) -> Network:
    """Adds x, and gives each sum; goes on while the step is below ``limit`` - 1."""
    body = graph(
        [
            Node("Add", ("sum", "x"), ("more",)),
            Node("Identity", ("more",), ("seen",)),
            Node("Add", ("i", "one"), ("next",)),
            Node("Less", ("next", "limit"), ("go",)),
        ],
        "i going sum",
        "go more seen",
        one=1,
        limit=limit,
    )
    known = {} if count is None else {"m": count}
    nodes = [Node("Loop", ("" if count is None else "m", "c", "start"), ("y", "all"), {"body": body})]
    return graph(nodes, "x start", "y all", c=True, **known)


@pytest.mark.parametrize(("count", "limit", "steps"), [(1, 100, 1), (5, 100, 5), (5, 3, 3), (None, 4, 4)])
def test_loop(count: int | None, limit: int, steps: int) -> None:
    made = inline_subgraphs(loop(count, limit), fold)
    found = computed(made, x=np.float64(2), start=np.float64(1))
    assert found["y"] == 1 + 2 * steps
    assert found["all"].tolist() == [1 + 2 * (step + 1) for step in range(steps)]


def test_a_loop_without_steps() -> None:
    """It gives what it began with; what its steps would have given has no shape."""
    without = inline_subgraphs(loop(0), fold)
    assert without.nodes[0].attributes == {"reason": "results of no steps"}


def test_loops_have_an_end() -> None:
    made = inline_subgraphs(loop(None, 10 * MOST), fold)
    assert made.nodes[0].attributes == {"reason": f"more than {MOST} steps"}


@pytest.mark.parametrize(("axis", "backward"), [(0, 0), (1, 0), (0, 1)])
def test_scan(axis: int, backward: int) -> None:
    """Sums along an axis, from either end; partial sums in the order of the result that is asked for."""
    body = graph([Node("Add", ("s", "part"), ("more",)), Node("Neg", ("more",), ("seen",))], "s part", "more seen")
    attributes = {
        "body": body,
        "num_scan_inputs": 1,
        "scan_input_axes": [axis],
        "scan_input_directions": [backward],
        "scan_output_axes": [1],
        "scan_output_directions": [1 - backward],
    }
    network = graph([Node("Scan", ("s", "x"), ("y", "all"), attributes)], "s", "y all")
    x = np.arange(6.0).reshape(2, 3) if axis else np.arange(6.0).reshape(3, 2)
    network.inputs["x"] = TensorType(np.dtype(np.float64), x.shape)
    found = computed(inline_subgraphs(network, fold), x=x, s=np.zeros(2))
    order = np.moveaxis(x, axis, 0)[::-1] if backward else np.moveaxis(x, axis, 0)
    sums = -np.cumsum(order, 0)
    np.testing.assert_array_equal(found["y"], order.sum(0))
    np.testing.assert_array_equal(found["all"], (sums if backward else sums[::-1]).T)


def test_a_scan_of_unknown_length_stays_with_the_reason() -> None:
    body = graph([Node("Add", ("s", "part"), ("more",))], "s part", "more")
    network = graph([Node("Scan", ("s", "x"), ("y",), {"body": body, "num_scan_inputs": 1})], "s x", "y")
    (node,) = inline_subgraphs(network, fold).nodes
    assert node.attributes == {"reason": "a side of x, which is the number of steps, is not known"}


def test_subgraphs_in_subgraphs() -> None:
    """A condition that is known in each step only."""
    inner = Node("If", ("even",), ("r",), {
        "then_branch": graph([Node("Add", ("sum", "x"), ("t",))], "", "t"),
        "else_branch": graph([Node("Identity", ("sum",), ("t",))], "", "t"),
    })  # fmt: skip
    nodes = [Node("Less", ("i", "two"), ("even",)), inner, Node("Identity", ("going",), ("go",))]
    body = graph(nodes, "i going sum", "go r", two=2)
    network = graph([Node("Loop", ("m", "c", "start"), ("y",), {"body": body})], "x start", "y", c=True, m=5)
    assert computed(inline_subgraphs(network, fold), x=np.float64(2), start=np.float64(1)) == {"y": 5.0}
