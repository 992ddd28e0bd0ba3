# amaranth: UnusedElaboratable=no
"""Who sends to whom, and that the mesh has the ways that this takes, and no others."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import combinations_with_replacement, pairwise, product
from types import SimpleNamespace

import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.placement import Node, command_node, core_node, memory_node
from sley.hw.noc.direction import Direction, Turn, all_turns, may_turn
from sley.hw.noc.mesh import Mesh
from sley.hw.noc.messages import response_flit
from sley.hw.noc.multicast import MulticastRouter
from sley.hw.noc.routes import Pair, request_pairs, response_pairs, turns

SENDERS = {
    request_pairs: {("command", "memory"), ("command", "core"), ("core", "memory")},
    response_pairs: {("memory", "command"), ("memory", "core"), ("core", "command")},
}
CONFIGS = [ChipConfig(cores_x=x, cores_y=y) for x in range(1, 9) for y in range(1, 9)]


def nodes(config: ChipConfig) -> dict[str, list[Node]]:
    cores = [core_node(config, index) for index in range(config.cores)]
    return {"command": [command_node(config)], "memory": [memory_node(config)], "core": cores}


def expected_pairs(config: ChipConfig, senders: set[tuple[str, str]]) -> set[Pair]:
    there = nodes(config)
    return {pair for source, dest in senders for pair in product(there[source], there[dest])}


def side_towards(node: Node, other: Node) -> Direction:
    return Direction((other[0] - node[0], other[1] - node[1]))


def steps(source: Node, dest: Node) -> set[tuple[Node, Turn]]:
    """The nodes in the row of the source, then those in the column of the destination, and how each is passed."""
    (x, y), (to_x, to_y) = source, dest
    row = [(k, y) for k in range(x, to_x, 1 if to_x > x else -1)]
    column = [(to_x, k) for k in range(y, to_y, 1 if to_y > y else -1)]
    passed = [*row, *column, dest]
    sides = [Direction.LOCAL, *(side_towards(b, a) for a, b in pairwise(passed))]
    leaves = [*(side_towards(a, b) for a, b in pairwise(passed)), Direction.LOCAL]
    return set(zip(passed, zip(sides, leaves, strict=True), strict=True))


@pytest.mark.parametrize("pairs", [request_pairs, response_pairs])
def test_every_way_and_no_other(pairs: Callable[[ChipConfig], list[Pair]]) -> None:
    for config in CONFIGS:
        senders = expected_pairs(config, SENDERS[pairs])
        assert sorted(pairs(config)) == sorted(senders)
        needed = set().union(*(steps(*pair) for pair in senders))
        built = {(node, turn) for node, taken in turns(pairs(config)).items() for turn in taken}
        assert built == needed
        assert all(may_turn(*turn) for _, turn in built)


@lru_cache(maxsize=256)
def full_router(node: Node) -> MulticastRouter:
    return MulticastRouter(response_flit(preset("quad")), node, all_turns())


def copies(config: ChipConfig, near: Node, far: Node) -> Iterator[tuple[Node, Turn]]:
    """What a packet from the memory port to a rectangle takes, by the rule of full routers."""
    corners = {name: SimpleNamespace(x=x, y=y) for name, (x, y) in (("dest", near), ("far", far))}
    reached = [(memory_node(config), Direction.LOCAL)]
    while reached:
        (x, y), side = reached.pop()
        for to, leaves in full_router((x, y)).directions(SimpleNamespace(**corners)).items():
            if leaves and may_turn(side, to):
                yield (x, y), (side, to)
                if to is not Direction.LOCAL:
                    reached.append(((x + to.value[0], y + to.value[1]), to.opposite))


def test_rectangles_take_ways_of_pairs() -> None:
    """Whatever the rectangle of cores, its copies find every turn that they take."""
    for config in CONFIGS:
        built = turns(response_pairs(config))
        cores = nodes(config)["core"]
        columns, rows = sorted({x for x, _ in cores}), sorted({y for _, y in cores})
        for left, right in combinations_with_replacement(columns, 2):
            for top, bottom in combinations_with_replacement(rows, 2):
                taken = list(copies(config, (left, top), (right, bottom)))
                assert all(turn in built[node] for node, turn in taken)
                here = [node for node, (_, to) in taken if to is Direction.LOCAL]
                assert sorted(here) == [(x, y) for x in range(left, right + 1) for y in range(top, bottom + 1)]


@pytest.mark.some(24)
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.cores_x}x{config.cores_y}")
def test_ports_of_the_mesh(config: ChipConfig) -> None:
    there, mesh = nodes(config), Mesh(config)
    assert set(mesh.request_i) == {*there["command"], *there["core"]}
    assert set(mesh.request_o) == {*there["memory"], *there["core"]}
    assert set(mesh.response_i) == {*there["memory"], *there["core"]}
    assert set(mesh.response_o) == {*there["command"], *there["core"]}
