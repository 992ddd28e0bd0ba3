"""Memory of intermediate arrays: no two in use at the same time overlap, and no bit of a result changes."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_network import SIDES, random_network
from small_network import FLOAT, no_fold, random, small_network

from sley.driver import BadRequest
from sley.runtime import Device
from sley.runtime.networks import compilation
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.memory import ALIGNMENT, Lifetime, MemoryUse, placed, plan_memory
from sley.runtime.networks.passes.unused import leave_out_unused

LIFETIMES = st.lists(
    st.builds(
        lambda size, first, length: Lifetime(size, first, first + length),
        st.integers(0, 500),
        st.integers(0, 30),
        st.integers(0, 10),
    ),
    max_size=25,
)


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=32M") as device:
        yield device


@given(LIFETIMES)
def test_arrays_in_use_at_the_same_time_are_apart(lifetimes: list[Lifetime]) -> None:
    places, total = placed(lifetimes)
    for (one, at), (other, there) in combinations(zip(lifetimes, places, strict=True), 2):
        if one.first <= other.last and other.first <= one.last:
            assert at + one.size <= there or there + other.size <= at
    sizes = [max(-(-one.size // ALIGNMENT), 1) * ALIGNMENT for one in lifetimes]
    assert all(place % ALIGNMENT == 0 for place in places)
    assert total == max((place + size for place, size in zip(places, sizes, strict=True)), default=0) <= sum(sizes)


def test_arrays_that_follow_each_other_share_a_place() -> None:
    chain = [Lifetime(640, n, n + 1) for n in range(10)]
    assert placed(chain)[1] == 2 * 640


def no_plan(graph: object, device: object, fixed: object) -> MemoryUse:
    return MemoryUse(0, 0, 0, 0)


@pytest.mark.parametrize("precision", ["highest", "medium"])
@pytest.mark.parametrize("seed", range(4))
def test_random_networks_give_the_same_bits(
    base: Device, monkeypatch: pytest.MonkeyPatch, seed: int, precision: str
) -> None:
    network = leave_out_unused(random_network(seed))
    planned = compile_network(network, base, no_fold, precision=precision)
    monkeypatch.setattr(compilation, "plan_memory", no_plan)
    apart = compile_network(network, base, no_fold, precision=precision)
    for turn in range(2):
        x = random(100 + turn, *SIDES)
        found, wanted = planned(x), apart(x)
        for name in network.outputs:
            np.testing.assert_array_equal(found[name], wanted[name], strict=True)


def test_what_is_reported(base: Device) -> None:
    compiled = compile_network(leave_out_unused(small_network()), base, no_fold)
    memory = compiled.memory
    assert memory.ends == 4 * 2 * 5 * 7 * (3 + 6)
    assert 0 < memory.planned < memory.intermediates
    assert memory.weights > 6 * 3 * 9 * 2
    assert sum(place.launches for place in compiled.places) == len(compiled.graph)


def test_element_wise_operators_work_in_place(base: Device) -> None:
    """A chain that no pass joins, as its values have no types: all but one array are at one place."""
    type = TensorType(FLOAT, (64, 16))
    names = ["x", "a", "b", "c", "d", "y"]
    operators = ["Relu", "Sigmoid", "Relu", "Tanh", "Relu"]
    nodes = [Node(o, (i,), (r,)) for o, i, r in zip(operators, names, names[1:], strict=False)]
    compiled = compile_network(Network("chain", {"x": type}, {"y": type}, nodes, {}), base, no_fold)
    assert compiled.memory.intermediates == 4 * compiled.memory.planned
    x = random(3, 64, 16)
    wanted = np.tanh(np.maximum(1 / (1 + np.exp(-np.maximum(x, 0).astype(np.float64))), 0))
    np.testing.assert_allclose(compiled(x)["y"], wanted, rtol=1e-5)


def test_an_operand_that_is_read_later_is_kept(base: Device) -> None:
    type = TensorType(FLOAT, (64, 16))
    nodes = [Node("Relu", ("x",), ("a",)), Node("Exp", ("a",), ("b",)), Node("Mul", ("a", "b"), ("y",))]
    compiled = compile_network(Network("kept", {"x": type}, {"y": type}, nodes, {}), base, no_fold)
    assert compiled.memory.planned == compiled.memory.intermediates
    x = np.maximum(random(4, 64, 16), 0)
    np.testing.assert_allclose(compiled(x)["y"], x * np.exp(x), rtol=1e-5)


def test_graphs_with_copies_are_refused(base: Device) -> None:
    one, other = base.zeros(16, np.float32), base.zeros(16, np.float32)
    with base.stream.capture() as graph:
        base.stream.copy(one, other)
    with pytest.raises(BadRequest, match="has packets besides launches"):
        plan_memory(graph, base, [])
