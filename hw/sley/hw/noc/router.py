"""A router of the mesh."""

from collections.abc import Collection

from amaranth import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.placement import Node
from sley.hw.noc.direction import Direction, Turn, all_turns, may_turn
from sley.hw.stream.arbiter import PacketArbiter


class Router(wiring.Component):
    """Passes packets on towards their destination, x first, then y.

    Wormhole switching: a packet holds its output from its first flit to its last, so packets are never interleaved.
    Dimension order makes the mesh free of deadlock as long as every local port keeps taking flits.

    Parameters
    ----------
    shape : data.Layout
        Flit layout with ``dest`` (x, y) and ``last``.
    node : Node
        x and y of this router.
    turns : collection of Turn
        Those that packets take, of ``all_turns()``; at least one. No packet may need another one.

    Members
    -------
    i_SIDE : In(stream of shape)
        What enters on that side, of those in ``inputs``; by ``side_i(side)``. ``ready`` depends on ``valid`` and
        ``dest`` of all inputs.
    o_SIDE : Out(stream of shape)
        What leaves on that side, of those in ``outputs``; by ``side_o(side)``. From registers.

    Raises
    ------
    ValueError
        If ``turns`` is empty or names one that dimension order never takes.

    Rules
    -----
    1. Each output serves the inputs that turn to it round robin (``PacketGrant``, inputs in the order of
       ``Direction``).
    2. What enters on a side with one turn takes it, whatever its destination.

    Latency
    -------
    1 cycle per router.

    Throughput
    ----------
    1 flit per cycle on each link, no gap between packets.

    Cost
    ----
    Per output 2 flits of registers and a multiplexer of the flits that turn to it, at most 4.
    """

    def __init__(self, shape: data.Layout, node: Node, turns: Collection[Turn]) -> None:
        if not turns:
            raise ValueError("turns is empty; a router that no packet passes need not exist")
        for side, to in turns:
            if not may_turn(side, to):
                raise ValueError(f"turns has {side.name} to {to.name}, which dimension order, x first, never takes")
        self._shape = shape
        self._node = node
        self._turns = [turn for turn in all_turns() if turn in turns]
        self.inputs = [side for side in Direction if any(side is came_from for came_from, _ in turns)]
        self.outputs = [side for side in Direction if any(side is goes_to for _, goes_to in turns)]
        inputs = {f"i_{side.name.lower()}": In(stream.Signature(shape)) for side in self.inputs}
        outputs = {f"o_{side.name.lower()}": Out(stream.Signature(shape)) for side in self.outputs}
        super().__init__({**inputs, **outputs})

    def side_i(self, side: Direction) -> stream.Interface:
        """The stream that enters on that side."""
        return getattr(self, f"i_{side.name.lower()}")

    def side_o(self, side: Direction) -> stream.Interface:
        """The stream that leaves on that side."""
        return getattr(self, f"o_{side.name.lower()}")

    def directions(self, flit: data.View) -> dict[Direction, Value]:
        """Whether a flit has to go to each side."""
        dest = flit.dest
        x, y = self._node
        same_column = dest.x == x
        return {
            Direction.EAST: dest.x > x,
            Direction.WEST: dest.x < x,
            Direction.SOUTH: same_column & (dest.y > y),
            Direction.NORTH: same_column & (dest.y < y),
            Direction.LOCAL: same_column & (dest.y == y),
        }

    def _leaves(self, m: Module, side: Direction) -> dict[Direction, Signal]:
        """For the flit on an input: whether it leaves to each side."""
        tests = self.directions(self.side_i(side).payload)
        goes_to = [to for came_from, to in self._turns if came_from is side]
        leaves = {to: Signal(name=f"{side.name.lower()}_to_{to.name.lower()}") for to in goes_to}
        for to, leaving in leaves.items():
            m.d.comb += leaving.eq(tests[to] if len(leaves) > 1 else 1)
        return leaves

    def elaborate(self, platform: object) -> Module:
        m = Module()
        leaves = {side: self._leaves(m, side) for side in self.inputs}
        for to in self.outputs:
            sources = [side for side in self.inputs if to in leaves[side]]
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
