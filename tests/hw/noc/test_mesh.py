"""The mesh under random traffic: nothing lost, nothing twice, nothing out of order, no packet torn."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from sley.abi.config import ChipConfig, preset
from sley.hw.noc.mesh import Mesh
from sley.hw.noc.placement import Node, core_node, memory_node, used_nodes
from sley.hw.testing.coverage import Coverage, stream_states, watch_streams
from sley.hw.testing.streams import StreamBench, compiled

TWO_BY_TWO = preset("nano").replace(cores_x=2, cores_y=2)  # a mesh of 3 x 2

WAYS = [f"{x} {y}".strip() for x in ("west", "", "east") for y in ("north", "", "south") if x or y]
COVERAGE = Coverage(
    "mesh",
    {
        "way": [(network, way) for network in ("request", "response") for way in WAYS],
        "packet of": (1, 2, 3, 7),
        "rectangle": ("a core", "in a row", "in a column", "of rows and columns"),
        "into the mesh, out of it, at one node": stream_states(2),
    },
)


def way(source: Node, dest: Node) -> str:
    (x, y), (to_x, to_y) = source, dest
    east, south = (to_x > x) - (to_x < x), (to_y > y) - (to_y < y)
    return f"{('', 'east', 'west')[east]} {('', 'south', 'north')[south]}".strip()


def rectangle(near: Node, far: Node) -> str:
    names = ("a core", "in a row", "in a column", "of rows and columns")
    return names[(near[0] != far[0]) + 2 * (near[1] != far[1])]


def flit(network: str, number: int, dest: Node, last: bool, far: Node | None = None) -> dict[str, Any]:
    to = {"x": dest[0], "y": dest[1]}
    if network == "request":
        return {"payload": {"beat": {"data": number}}, "dest": to, "last": last}
    end = to if far is None else {"x": far[0], "y": far[1]}
    return {"payload": {"data": number}, "dest": to, "far": end, "last": last}


def number_of(network: str, item: Any) -> int:
    return int(item.payload.beat.data if network == "request" else item.payload.data)


@pytest.mark.parametrize("network", ["request", "response"])
@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.5, 0.3), (0.1, 0.7)])
@pytest.mark.parametrize("config", [TWO_BY_TWO, preset("nano").replace(cores_y=3)], ids=["3x2", "2x3"])
def test_random_traffic(config: ChipConfig, network: str, idle: float, pause: float) -> None:
    bench = StreamBench(compiled(Mesh, config), seed=int(10 * idle), timeout=4000)
    nodes = used_nodes(config)
    packets: dict[int, tuple[int, Any, Any]] = {}  # flit number: packet, source, destination
    total = dict.fromkeys(nodes, 0)
    number = 0
    for x, y in nodes:
        flits = []
        for _ in range(12):
            dest = bench.rng.choice([n for n in nodes if n != (x, y)])
            length = bench.rng.choice([1, 1, 2, 3, 7])
            COVERAGE.hit("way", (network, way((x, y), dest)))
            COVERAGE.hit("packet of", length)
            for k in range(length):
                packets[number + k] = (number, (x, y), dest)
                flits.append(flit(network, number + k, dest, k == length - 1))
            number += length
            total[dest] += length
        ports = [getattr(bench.dut, f"{network}_{side}")[y][x] for side in "io"]
        watch_streams(bench, COVERAGE, "into the mesh, out of it, at one node", *ports)
        bench.send(ports[0], flits, idle=idle)
    outs = {(x, y): bench.receive(getattr(bench.dut, f"{network}_o")[y][x], total[x, y], pause=pause) for x, y in nodes}
    bench.run()
    for dest in nodes:
        numbers = [number_of(network, item) for item in outs[dest].items]
        for source in nodes:
            expected = [n for n, p in packets.items() if p[1:] == (source, dest)]
            assert [n for n in numbers if packets[n][1] == source] == expected
        for (a, item), (b, _) in pairwise(zip(numbers, outs[dest].items, strict=True)):
            assert item.last or packets[a] == packets[b], "packets interleaved"


def test_latency_and_throughput() -> None:
    """One cycle per router; a stream of flits passes without a gap."""
    bench = StreamBench(compiled(Mesh, TWO_BY_TWO))
    sent = bench.send(bench.dut.request_i[0][2], [flit("request", k, (0, 1), k % 4 == 3) for k in range(20)])
    got = bench.receive(bench.dut.request_o[1][0], 20)
    bench.run()
    assert got.cycles == [c + 4 for c in sent.cycles] == list(range(5, 25))


def test_unused_node_swallows() -> None:
    config = preset("nano").replace(cores_y=3)
    bench = StreamBench(compiled(Mesh, config), timeout=200)
    bench.send(bench.dut.request_i[0][0], [flit("request", k, (0, 2), True) for k in range(20)])
    bench.receive(bench.dut.request_o[2][0], 0)
    bench.run()


@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.5, 0.3), (0.1, 0.7)])
@pytest.mark.parametrize(
    "config",
    [TWO_BY_TWO, preset("nano").replace(cores_x=3), preset("nano").replace(cores_x=2, cores_y=3)],
    ids=["3x2", "5x1", "3x3"],
)
def test_random_multicast(config: ChipConfig, idle: float, pause: float) -> None:
    """The memory port answers rectangles of cores while all others send to single nodes: each node gets its own."""
    bench = StreamBench(compiled(Mesh, config), seed=int(10 * idle), timeout=6000)
    nodes, memory = used_nodes(config), memory_node(config)
    cores = [core_node(config, k) for k in range(config.cores)]
    expected: dict[tuple[Node, Node], list[int]] = {(a, b): [] for a in nodes for b in nodes}
    packets: dict[int, tuple[int, Node]] = {}
    number = 0
    for source in nodes:
        flits = []
        for _ in range(30 if source == memory else 8):
            near = far = bench.rng.choice([n for n in nodes if n != source])
            if source == memory:
                a, b = bench.rng.choice(cores), bench.rng.choice(cores)
                near, far = (min(a[0], b[0]), min(a[1], b[1])), (max(a[0], b[0]), max(a[1], b[1]))
                COVERAGE.hit("rectangle", rectangle(near, far))
            length = bench.rng.choice([1, 1, 2, 3, 7])
            for k in range(length):
                packets[number + k] = (number, source)
                flits.append(flit("response", number + k, near, k == length - 1, far))
            for x in range(near[0], far[0] + 1):
                for y in range(near[1], far[1] + 1):
                    expected[source, (x, y)] += range(number, number + length)
            number += length
        bench.send(bench.dut.response_i[source[1]][source[0]], flits, idle=idle)
    outs = {}
    for x, y in nodes:
        count = sum(len(expected[source, (x, y)]) for source in nodes)
        outs[x, y] = bench.receive(bench.dut.response_o[y][x], count, pause=pause)
    bench.run()
    for dest in nodes:
        numbers = [int(item.payload.data) for item in outs[dest].items]
        for source in nodes:
            assert [n for n in numbers if packets[n][1] == source] == expected[source, dest]
        for (a, item), (b, _) in pairwise(zip(numbers, outs[dest].items, strict=True)):
            assert item.last or packets[a] == packets[b], "packets interleaved"


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
