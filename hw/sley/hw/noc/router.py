"""A router of the mesh."""

from enum import Enum

from amaranth import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Member, Out

from sley.hw.noc.placement import Node
from sley.hw.stream.arbiter import PacketArbiter


class Direction(Enum):
    """A side of a router; the value is the step in x and y to the neighbour there."""

    LOCAL = (0, 0)
    NORTH = (0, -1)
    EAST = (1, 0)
    SOUTH = (0, 1)
    WEST = (-1, 0)

    @property
    def opposite(self) -> "Direction":
        return Direction((-self.value[0], -self.value[1]))


def may_turn(came_from: Direction, goes_to: Direction) -> bool:
    """Whether dimension-order routing, x first, can take a packet from one side to the other: it never goes back,
    and once it moves north or south it never moves east or west again."""
    if came_from is goes_to:
        return False
    return came_from.value[1] == 0 or goes_to.value[0] == 0


class Router(wiring.Component):
    """Passes packets on towards their destination, x first, then y.

    Wormhole switching: a packet holds its output from its first flit to its last, so packets are never interleaved.
    Each output serves the inputs that may turn to it round robin (``PacketGrant``, inputs in the order of
    ``Direction``). Dimension order makes the mesh free of deadlock as long as every local port keeps taking flits.

    Parameters: ``shape``: flit layout with ``dest`` (x, y) and ``last``; ``node``: x and y of this router;
    ``directions``: the sides that exist; packets for a side that does not, or from a node to itself, must not occur.
    Members: ``i[direction]``, ``o[direction]`` through ``side_i`` and ``side_o`` (ports ``i_north``, ``o_north``, ...).
    Latency 1 cycle per router; throughput 1 flit per cycle on each link, no gap between packets. Outputs come from
    registers; ``i_*.ready`` depends on ``valid`` and ``dest`` of all inputs. Cost: per output a multiplexer of at most
    4 flits and 2 flits of registers.
    """

    def __init__(self, shape: data.Layout, node: Node, directions: list[Direction]) -> None:
        if Direction.LOCAL not in directions or len(set(directions)) != len(directions):
            raise ValueError(f"directions are {directions}; LOCAL must be among them, and none twice")
        self._shape = shape
        self._node = node
        self._directions = [d for d in Direction if d in directions]
        ports: dict[str, Member] = {}
        for side in self._directions:
            ports[f"i_{side.name.lower()}"] = In(stream.Signature(shape))
            ports[f"o_{side.name.lower()}"] = Out(stream.Signature(shape))
        super().__init__(ports)

    def side_i(self, side: Direction) -> stream.Interface:
        """The stream that enters on that side."""
        return getattr(self, f"i_{side.name.lower()}")

    def side_o(self, side: Direction) -> stream.Interface:
        """The stream that leaves on that side."""
        return getattr(self, f"o_{side.name.lower()}")

    def _ways(self, flit: data.View) -> dict[Direction, Value]:
        """Whether a flit has to go to each side."""
        dest = flit.dest
        x, y = self._node
        here = dest.x == x
        return {
            Direction.EAST: dest.x > x,
            Direction.WEST: dest.x < x,
            Direction.SOUTH: here & (dest.y > y),
            Direction.NORTH: here & (dest.y < y),
            Direction.LOCAL: here & (dest.y == y),
        }

    def _leaves(self, m: Module, side: Direction) -> dict[Direction, Signal]:
        """For the flit on an input: whether it leaves to each side."""
        tests = self._ways(self.side_i(side).payload)
        leaves = {}
        for to in self._directions:
            if may_turn(side, to):
                leaves[to] = Signal(name=f"{side.name.lower()}_to_{to.name.lower()}")
                m.d.comb += leaves[to].eq(tests[to])
        return leaves

    def elaborate(self, platform: object) -> Module:
        m = Module()
        leaves = {side: self._leaves(m, side) for side in self._directions}
        for to in self._directions:
            sources = [side for side in self._directions if to in leaves[side]]
            if not sources:
                continue
            merge = PacketArbiter(self._shape, len(sources))
            m.submodules[to.name.lower()] = merge
            for k, side in enumerate(sources):
                port = self.side_i(side)
                m.d.comb += [
                    merge.i[k].payload.eq(port.payload),
                    merge.i[k].valid.eq(port.valid & leaves[side][to]),
                ]
                with m.If(leaves[side][to] & merge.i[k].ready):
                    m.d.comb += port.ready.eq(1)
            wiring.connect(m, merge.o, wiring.flipped(self.side_o(to)))
        return m
