"""A router that copies packets: every rectangle, timing, random traffic of copied and plain packets together."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.lib import data
from traffic_bench import Packets

from sley.abi.placement import Node
from sley.hw.noc.direction import Direction, all_turns, may_turn
from sley.hw.noc.messages import Coordinate
from sley.hw.noc.multicast import MulticastRouter
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.streams import StreamBench

FLIT = data.StructLayout({"payload": 16, "dest": Coordinate, "last": 1, "far": Coordinate})
HERE = (2, 3)
Rectangle = tuple[Node, Node]


def packet(where: Rectangle, length: int, start: int) -> list[dict[str, Any]]:
    ends = {name: {"x": x, "y": y} for name, (x, y) in zip(("dest", "far"), where, strict=True)}
    return [{"payload": start + k, "last": k == length - 1, **ends} for k in range(length)]


def sides(came_from: Direction, where: Rectangle) -> set[Direction]:
    """Where a packet has to leave: to the nodes that paths along x first, then y, reach through a side."""
    (left, top), (right, bottom) = where
    leaves = set()
    for x in range(left, right + 1):
        for y in range(top, bottom + 1):
            dx, dy = x - HERE[0], y - HERE[1]
            step = (dx > 0) - (dx < 0), 0 if dx else (dy > 0) - (dy < 0)
            leaves.add(Direction(step))
    return {side for side in leaves if may_turn(came_from, side)}


RECTANGLES = [
    ((left, top), (right, bottom))
    for left in (1, 2, 3)
    for right in (1, 2, 3)
    for top in (2, 3, 4)
    for bottom in (2, 3, 4)
    if left <= right and top <= bottom
]


def named(leaves: set[Direction]) -> str:
    return " ".join(sorted(side.name for side in leaves))


COVERAGE = Coverage(
    "multicast router",
    {
        "from one side to": {
            (side.name, named(sides(side, where)))
            for side in (Direction.LOCAL, Direction.WEST)
            for where in RECTANGLES
            if sides(side, where)
        },
        "from others to": {
            (side.name, named(sides(side, where)))
            for side in Direction
            for where in RECTANGLES
            if where[0] == where[1] and sides(side, where)
        },
        "flits of a packet": range(1, 6),
    },
)


def random_rectangle(rng: random.Random, side: Direction, *, one_node: bool) -> Rectangle:
    """All choices of sides to leave to are as likely."""
    groups: dict[str, list[Rectangle]] = {}
    for where in RECTANGLES:
        if sides(side, where) and (where[0] == where[1] or not one_node):
            groups.setdefault(named(sides(side, where)), []).append(where)
    return rng.choice(groups[rng.choice(sorted(groups))])


@pytest.mark.parametrize("side", list(Direction), ids=lambda side: side.name)
def test_every_rectangle(side: Direction) -> None:
    """Latency 1 and a flit a cycle, to all sides at once; no side that has not to see a packet sees it."""
    bench = StreamBench(MulticastRouter(FLIT, HERE, all_turns()))
    flits: list[dict[str, Any]] = []
    expected: dict[Direction, list[int]] = {to: [] for to in Direction}
    for where in RECTANGLES:
        leaves = sides(side, where)
        if leaves:
            numbers = range(len(flits), len(flits) + 3)
            flits += packet(where, 3, len(flits))
            for to in leaves:
                expected[to] += numbers
    sent = bench.send(bench.dut.side_i(side), flits)
    outs = {to: bench.receive(bench.dut.side_o(to), len(expected[to])) for to in Direction}
    bench.run()
    assert sent.cycles == list(range(1, len(flits) + 1))
    for to, out in outs.items():
        assert [x.payload for x in out.items] == expected[to]
        assert out.cycles == [number + 2 for number in expected[to]]


@pytest.mark.parametrize("side", [Direction.LOCAL, Direction.WEST], ids=lambda side: side.name)
@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.5, 0.2), (0.1, 0.6)])
def test_random_traffic(side: Direction, idle: float, pause: float) -> None:
    """Rectangles from one side, single nodes from all others, to outputs that are slow each in its own way."""
    bench = StreamBench(MulticastRouter(FLIT, HERE, all_turns()), seed=int(10 * idle))
    packets = Packets()
    for source in Direction:
        flits: list[dict[str, Any]] = []
        for _ in range(25):
            where = random_rectangle(bench.rng, source, one_node=source is not side)
            length = bench.rng.randint(1, 5)
            point = "from one side to" if source is side else "from others to"
            COVERAGE.hit(point, (source.name, named(sides(source, where))))
            COVERAGE.hit("flits of a packet", length)
            flits += packet(where, length, packets.add(source, sides(source, where), length))
        bench.send(bench.dut.side_i(source), flits, idle=idle)
    packets.run(bench, pause)


def test_chosen_in_turn() -> None:
    """A packet to two sides that are both busy with others gets its turn behind one packet of each."""
    bench = StreamBench(MulticastRouter(FLIT, HERE, all_turns()))
    plain = [f for n in range(8) for f in packet(((2, 2), (2, 2)), 3, 100 + 3 * n)]
    other = [f for n in range(8) for f in packet(((2, 4), (2, 4)), 4, 200 + 4 * n)]
    both = packet(((2, 2), (2, 4)), 5, 0)
    bench.send(bench.dut.side_i(Direction.SOUTH), plain)
    bench.send(bench.dut.side_i(Direction.NORTH), other)
    sent = bench.send(bench.dut.side_i(Direction.WEST), both)
    bench.receive(bench.dut.side_o(Direction.NORTH), len(plain) + len(both))
    bench.receive(bench.dut.side_o(Direction.SOUTH), len(other) + len(both))
    bench.receive(bench.dut.side_o(Direction.LOCAL), len(both))
    bench.run()
    assert sent.cycles[0] <= 1 + 3 + 4
    assert sent.cycles[-1] == sent.cycles[0] + 4


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
