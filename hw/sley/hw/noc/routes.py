"""Who sends to whom, and which turns that takes in each router. What nobody takes is not built.

    requests:    command processor ──► cores (messages), memory port
                 cores ──► memory port
    responses:   memory port ──► command processor, cores (also rectangles of them)
                 cores ──► command processor (ends of blocks)

A packet to a rectangle takes, copy by copy, the ways of packets to each of its nodes.
"""

from collections.abc import Iterable, Iterator

from sley.abi.config import ChipConfig
from sley.abi.placement import Node, command_node, core_node, memory_node
from sley.hw.noc.direction import Direction, Turn

Pair = tuple[Node, Node]
"""A node, and one to which it sends."""


def request_pairs(config: ChipConfig) -> list[Pair]:
    """Who sends to whom on the request network."""
    command, memory, cores = _nodes(config)
    return [(command, memory), *((command, core) for core in cores), *((core, memory) for core in cores)]


def response_pairs(config: ChipConfig) -> list[Pair]:
    """Who sends to whom on the response network."""
    command, memory, cores = _nodes(config)
    return [(memory, command), *((memory, core) for core in cores), *((core, command) for core in cores)]


def turns(pairs: Iterable[Pair]) -> dict[Node, set[Turn]]:
    """The turns that packets of these pairs take, by router; one that nobody passes is not among them."""
    routers: dict[Node, set[Turn]] = {}
    for pair in pairs:
        for node, turn in route(*pair):
            routers.setdefault(node, set()).add(turn)
    return routers


def route(source: Node, dest: Node) -> Iterator[tuple[Node, Turn]]:
    """Each router on the way from one node to another, along x, then along y, and the turn that is taken there."""
    (x, y), side = source, Direction.LOCAL
    while True:
        dx, dy = dest[0] - x, dest[1] - y
        to = Direction(((dx > 0) - (dx < 0), 0 if dx else (dy > 0) - (dy < 0)))
        yield (x, y), (side, to)
        if to is Direction.LOCAL:
            return
        (x, y), side = (x + to.value[0], y + to.value[1]), to.opposite


def _nodes(config: ChipConfig) -> tuple[Node, Node, list[Node]]:
    return command_node(config), memory_node(config), [core_node(config, index) for index in range(config.cores)]
