"""Views and copies in the order of memory: shapes as numpy has them, and no copy where a view will do."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sley.runtime import Device
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.operators.order import memory_order, merged_axes, restored

FLOAT = np.dtype(np.float32)
FACTORS = st.lists(st.sampled_from([1, 2, 3, 5]), max_size=5)


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=32M") as device:
        yield device


@given(FACTORS, st.lists(st.integers(0, 5), max_size=4), st.lists(st.integers(0, 5), max_size=4))
def test_groups_of_axes_hold_the_same(factors: list[int], one: list[int], other: list[int]) -> None:
    old, new = (_cut(factors, ends) for ends in (one, other))
    groups = merged_axes(old, new)
    assert [axis for left, _ in groups for axis in left] == list(range(len(old)))
    assert [axis for _, right in groups for axis in right] == list(range(len(new)))
    for left, right in groups:
        assert np.prod([old[axis] for axis in left]) == np.prod([new[axis] for axis in right])


def _cut(factors: list[int], ends: list[int]) -> tuple[int, ...]:
    """A shape of the product of the factors, cut at these places."""
    cuts = sorted(min(end, len(factors)) for end in ends)
    starts, ends = [0, *cuts], [*cuts, len(factors)]
    return tuple(int(np.prod(factors[a:b], dtype=int)) for a, b in zip(starts, ends, strict=True))


def test_order_of_memory(base: Device) -> None:
    x = base.zeros((2, 5, 1, 3), np.float32)
    view = x.transpose(0, 3, 2, 1)  # as networks see images
    order = memory_order(view)
    assert view.transpose(*order).contiguous
    assert restored(view.transpose(*order), order).strides == view.strides
    assert memory_order(x) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("order", "shape"),
    [
        ((0, 2, 3, 1), (2, 20, 3)),
        ((0, 2, 1, 3), (2, 2, 2, 3, 5)),
        ((3, 1, 2, 0), (15, 4, 2)),
        ((0, 3, 1, 2), (2, 5, 12)),
        ((1, 0, 3, 2), (6, 20)),
        ((0, 2, 3, 1), (120,)),
        ((2, 3, 0, 1), (4, 1, 10, 3, 1)),
    ],
)
def test_reshapes_of_views(base: Device, order: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 5)).astype(np.float32)
    wanted = x.transpose(order).reshape(shape)
    constants = {"shape": np.array(shape)}
    nodes = [Node("Transpose", ("x",), ("t",), {"perm": list(order)}), Node("Reshape", ("t", "shape"), ("y",))]
    types = TensorType(FLOAT, x.shape), TensorType(FLOAT, shape)
    network = Network("reshape", {"x": types[0]}, {"y": types[1]}, nodes, constants)
    np.testing.assert_array_equal(compile_network(network, base, _no_fold)(x)["y"], wanted)


def test_channels_are_not_moved(base: Device) -> None:
    """Between convolutions no launch moves elements: sums, concatenations and activations work as arrays lie."""
    random = np.random.default_rng(2)
    constants = {"w": random.standard_normal((6, 4, 1, 1)).astype(np.float32)}
    constants["v"] = random.standard_normal((3, 12, 1, 1)).astype(np.float32)
    nodes = [
        Node("Conv", ("x", "w"), ("a",)),
        Node("Sigmoid", ("a",), ("b",)),
        Node("Add", ("a", "b"), ("c",)),
        Node("Concat", ("c", "a"), ("d",), {"axis": 1}),
        Node("Conv", ("d", "v"), ("y",)),
    ]
    types = TensorType(FLOAT, (1, 4, 5, 7)), TensorType(FLOAT, (1, 3, 5, 7))
    network = Network("lies", {"x": types[0]}, {"y": types[1]}, nodes, constants)
    compiled = compile_network(network, base, _no_fold)
    for launch in compiled.graph.launches:
        steps = [value.strides[-1] for value in launch.values if hasattr(value, "strides") and value.shape[-1] > 1]
        assert all(step in (1, 2, 4) for step in steps), launch.program.name
    x = random.standard_normal((1, 4, 5, 7)).astype(np.float32)
    a = np.einsum("nchw,oc->nohw", x.astype(np.float64), constants["w"][:, :, 0, 0])
    d = np.concatenate([a + 1 / (1 + np.exp(-a)), a], 1)
    wanted = np.einsum("nchw,oc->nohw", d, constants["v"][:, :, 0, 0])
    np.testing.assert_allclose(compiled(x)["y"], wanted, rtol=1e-5, atol=1e-5)


def _no_fold(node: Node, inputs: object) -> list[np.ndarray]:
    raise AssertionError(node)
