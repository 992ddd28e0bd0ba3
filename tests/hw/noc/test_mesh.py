"""The mesh under random traffic: nothing lost, nothing twice, nothing out of order, no packet torn."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.placement import Node, command_node, core_node, memory_node
from sley.hw.noc.mesh import Mesh
from sley.hw.noc.routes import Pair, request_pairs, response_pairs
from sley.hw.testing.coverage import Coverage, stream_states, watch_streams
from sley.hw.testing.streams import StreamBench, compiled

TWO_BY_TWO = preset("nano").replace(cores_x=2, cores_y=2)  # a mesh of 3 x 2

PAIRS = {"request": request_pairs, "response": response_pairs}

WAYS = {
    "request": {
        "command to memory": ("east", "south"),
        "command to core": ("east", "east south"),
        "core to memory": ("west", "west north", "west south"),
    },
    "response": {
        "memory to command": ("west", "north"),
        "memory to core": ("east", "east north", "east south"),
        "core to command": ("west", "west north"),
    },
}
COVERAGE = Coverage(
    "mesh",
    {
        "way": [
            (network, who, way) for network, senders in WAYS.items() for who, ways in senders.items() for way in ways
        ],
        "packet of": (1, 2, 3, 7),
        "rectangle": ("a core", "in a row", "in a column", "of rows and columns"),
        "into the mesh, out of it, at one core": stream_states(2),
    },
)


def way(config: ChipConfig, pair: Pair) -> tuple[str, str]:
    """Who sends to whom, and where to."""
    names = {command_node(config): "command", memory_node(config): "memory"}
    (x, y), (to_x, to_y) = pair
    east, south = (to_x > x) - (to_x < x), (to_y > y) - (to_y < y)
    who = " to ".join(names.get(node, "core") for node in pair)
    return who, f"{('', 'east', 'west')[east]} {('', 'south', 'north')[south]}".strip()


def rectangle(near: Node, far: Node) -> str:
    names = ("a core", "in a row", "in a column", "of rows and columns")
    return names[(near[0] != far[0]) + 2 * (near[1] != far[1])]


def flit(network: str, number: int, dest: Node, last: bool, far: Node | None = None) -> dict[str, Any]:
    """With ``far`` for a network whose packets go to rectangles."""
    payload = {"beat": {"data": number}} if network == "request" else {"data": number}
    ends = {"dest": dest} if far is None else {"dest": dest, "far": far}
    corners = {name: {"x": x, "y": y} for name, (x, y) in ends.items()}
    return {"payload": payload, "last": last, **corners}


def number_of(network: str, item: Any) -> int:
    return int(item.payload.beat.data if network == "request" else item.payload.data)


@pytest.mark.some(12)
@pytest.mark.parametrize("network", ["request", "response"])
@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.5, 0.3), (0.1, 0.7)])
@pytest.mark.parametrize(
    "config",
    [
        preset("nano"),
        TWO_BY_TWO,
        preset("nano").replace(cores_y=3),
        preset("nano").replace(cores_x=3),
        preset("nano").replace(cores_x=2, cores_y=3),
    ],
    ids=["3x1", "3x2", "2x3", "5x1", "3x3"],
)
def test_random_traffic(config: ChipConfig, network: str, idle: float, pause: float) -> None:
    """Every node that sends, to every node to which it does."""
    bench = StreamBench(compiled(Mesh, config), seed=int(10 * idle), timeout=4000)
    enter, leave = getattr(bench.dut, f"{network}_i"), getattr(bench.dut, f"{network}_o")
    pairs = PAIRS[network](config)
    rectangles = network == "response" and config.cores > 1
    packets: dict[int, tuple[int, Any, Any]] = {}  # flit number: packet, source, destination
    total = dict.fromkeys(leave, 0)
    number = 0
    for source, port in enter.items():
        flits = []
        dests = [dest for sender, dest in pairs if sender == source]
        chosen = dests + bench.rng.choices(dests, k=12)
        bench.rng.shuffle(chosen)
        for dest in chosen:
            length = bench.rng.choice([1, 1, 2, 3, 7])
            COVERAGE.hit("way", (network, *way(config, (source, dest))))
            COVERAGE.hit("packet of", length)
            for k in range(length):
                packets[number + k] = (number, source, dest)
                flits.append(flit(network, number + k, dest, k == length - 1, dest if rectangles else None))
            number += length
            total[dest] += length
        bench.send(port, flits, idle=idle)
    outs = {dest: bench.receive(port, total[dest], pause=pause) for dest, port in leave.items()}
    for node in enter.keys() & leave.keys():
        watch_streams(bench, COVERAGE, "into the mesh, out of it, at one core", enter[node], leave[node])
    bench.run()
    for dest, out in outs.items():
        numbers = [number_of(network, item) for item in out.items]
        for source in enter:
            expected = [n for n, p in packets.items() if p[1:] == (source, dest)]
            assert [n for n in numbers if packets[n][1] == source] == expected
        for (a, item), (b, _) in pairwise(zip(numbers, out.items, strict=True)):
            assert item.last or packets[a] == packets[b], "packets interleaved"


def test_latency_and_throughput() -> None:
    """One cycle per router; a stream of flits passes without a gap."""
    bench = StreamBench(compiled(Mesh, TWO_BY_TWO))
    sent = bench.send(bench.dut.request_i[2, 0], [flit("request", k, (0, 1), k % 4 == 3) for k in range(20)])
    got = bench.receive(bench.dut.request_o[0, 1], 20)
    bench.run()
    assert got.cycles == [c + 4 for c in sent.cycles] == list(range(5, 25))


def test_only_who_sends_has_a_port() -> None:
    """Who wants to send all the same learns it when the chip is put together."""
    mesh = compiled(Mesh, TWO_BY_TWO).dut
    memory, command = memory_node(TWO_BY_TWO), command_node(TWO_BY_TWO)
    with pytest.raises(KeyError, match=re.escape(str(memory))):
        mesh.request_i[memory]
    with pytest.raises(KeyError, match=re.escape(str(command))):
        mesh.request_o[command]


@pytest.mark.some(4)
@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.5, 0.3), (0.1, 0.7)])
@pytest.mark.parametrize(
    "config",
    [TWO_BY_TWO, preset("nano").replace(cores_x=3), preset("nano").replace(cores_x=2, cores_y=3)],
    ids=["3x2", "5x1", "3x3"],
)
def test_random_multicast(config: ChipConfig, idle: float, pause: float) -> None:
    """The memory port answers rectangles of cores, and the command processor, to which all cores send besides."""
    bench = StreamBench(compiled(Mesh, config), seed=int(10 * idle), timeout=6000)
    enter, leave, memory = bench.dut.response_i, bench.dut.response_o, memory_node(config)
    cores = [core_node(config, k) for k in range(config.cores)]
    expected: dict[tuple[Node, Node], list[int]] = {(a, b): [] for a in enter for b in leave}
    packets: dict[int, tuple[int, Node]] = {}
    number = 0
    for source, port in enter.items():
        flits = []
        for _ in range(30 if source == memory else 8):
            near = far = command_node(config)
            if source == memory and bench.rng.random() < 0.8:
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
        bench.send(port, flits, idle=idle)
    outs = {}
    for dest, port in leave.items():
        count = sum(len(expected[source, dest]) for source in enter)
        outs[dest] = bench.receive(port, count, pause=pause)
    bench.run()
    for dest, out in outs.items():
        numbers = [int(item.payload.data) for item in out.items]
        for source in enter:
            assert [n for n in numbers if packets[n][1] == source] == expected[source, dest]
        for (a, item), (b, _) in pairwise(zip(numbers, out.items, strict=True)):
            assert item.last or packets[a] == packets[b], "packets interleaved"


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
