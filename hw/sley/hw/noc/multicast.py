"""A router that copies packets to several sides."""

from amaranth import Cat, Module, Mux, Value
from amaranth.lib import data, wiring

from sley.hw.noc.direction import Direction
from sley.hw.noc.router import Router
from sley.hw.stream.arbiter import PacketGrant
from sley.hw.stream.buffer import StreamBuffer


class MulticastRouter(Router):
    """A ``Router`` whose packets go to every node of a rectangle, from ``dest`` (north-west) to ``far`` (south-east).

    A packet moves along x through all columns of its rectangle and branches off to the north, the south and the node
    in each of them, so that it reaches every node once. It takes all its outputs at the same time and passes a flit
    only when all of them take it: it never holds one while it waits for another.

    Parameters and members are those of ``Router``; ``shape`` has ``far`` besides.

    Rules
    -----
    1. Packets to more than one node must come from one source in the whole mesh, hence enter each router on one side
       only; two such inputs could be chosen by different outputs and wait for each other.
    2. A packet to several sides waits until each of them has chosen it, which every one does after at most one packet
       from each of its other inputs.

    Latency
    -------
    As of ``Router``.

    Throughput
    ----------
    As of ``Router``.

    Cost
    ----
    As of ``Router``, and two comparisons per input.
    """

    def directions(self, flit: data.View) -> dict[Direction, Value]:
        near, far = flit.dest, flit.far
        x, y = self._node
        column = (near.x <= x) & (x <= far.x)
        return {
            Direction.EAST: far.x > x,
            Direction.WEST: near.x < x,
            Direction.SOUTH: column & (far.y > y),
            Direction.NORTH: column & (near.y < y),
            Direction.LOCAL: column & (near.y <= y) & (y <= far.y),
        }

    def elaborate(self, platform: object) -> Module:
        m = Module()
        leaves = {side: self._leaves(m, side) for side in self.inputs}
        moves = {side: self.side_i(side).ready for side in self.inputs}
        chosen: dict[Direction, list[Value]] = {side: [] for side in self.inputs}
        for to in self.outputs:
            sources = [side for side in self.inputs if to in leaves[side]]
            name = to.name.lower()
            m.submodules[f"{name}_grant"] = grant = PacketGrant(len(sources))
            m.submodules[name] = buffer = StreamBuffer(self._shape)
            wiring.connect(m, buffer.o, wiring.flipped(self.side_o(to)))
            payload: Value = Value.cast(self.side_i(sources[0]).payload)
            for k, side in enumerate(sources):
                port = self.side_i(side)
                payload = Mux(grant.grant[k], Value.cast(port.payload), payload)
                m.d.comb += grant.requests[k].eq(port.valid & leaves[side][to])
                chosen[side].append(~leaves[side][to] | (grant.grant[k] & buffer.i.ready))
            m.d.comb += [
                Value.cast(buffer.i.payload).eq(payload),
                buffer.i.valid.eq((grant.grant & Cat(moves[side] for side in sources)).any()),
                grant.moved.eq(buffer.i.valid),
                grant.last.eq(buffer.i.payload.last),
            ]
        for side in self.inputs:
            port = self.side_i(side)
            m.d.comb += port.ready.eq(port.valid & Cat(leaves[side].values()).any() & Cat(chosen[side]).all())
        return m
