"""Both networks of the chip."""

from amaranth import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.hw.noc.messages import request_flit, response_flit
from sley.hw.noc.multicast import MulticastRouter
from sley.hw.noc.placement import mesh_size, used_nodes
from sley.hw.noc.router import Direction, Router


class Mesh(wiring.Component):
    """A full rectangle of routers for requests, and another for responses.

    Parameters: ``config`` (see ``placement`` for what sits where).
    Members, indexed ``[y][x]`` by node: ``request_i``, ``response_i``: packets the node sends; ``request_o``,
    ``response_o``: packets for the node. Nodes with nothing attached send nothing and drop what they are sent; their
    ports are not connected inside. With several cores a packet on the response network goes to all nodes of a rectangle
    (``MulticastRouter``); packets to more than one node must all come from one node.
    Latency: 1 cycle per router, the first and the last included (a neighbour is 2 cycles away). Order between one
    source and one destination is kept within each network. Free of deadlock if every node always takes responses
    without waiting for the request network.
    """

    request_i: list[list[stream.Interface]]
    request_o: list[list[stream.Interface]]
    response_i: list[list[stream.Interface]]
    response_o: list[list[stream.Interface]]

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        width, height = mesh_size(config)
        request = stream.Signature(request_flit(config))
        response = stream.Signature(response_flit(config))
        super().__init__(
            {
                "request_i": In(request).array(height, width),
                "request_o": Out(request).array(height, width),
                "response_i": In(response).array(height, width),
                "response_o": Out(response).array(height, width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        self._network(m, "request", request_flit(config), self.request_i, self.request_o)
        self._network(m, "response", response_flit(config), self.response_i, self.response_o)
        return m

    def _network(
        self,
        m: Module,
        name: str,
        shape: data.Layout,
        enter: list[list[stream.Interface]],
        leave: list[list[stream.Interface]],
    ) -> None:
        width, height = mesh_size(self._config)
        used = used_nodes(self._config)
        kind = MulticastRouter if "far" in shape.members else Router
        routers: dict[tuple[int, int], Router] = {}
        for y in range(height):
            for x in range(width):
                sides = [d for d in Direction if 0 <= x + d.value[0] < width and 0 <= y + d.value[1] < height]
                routers[x, y] = router = kind(shape, (x, y), sides)
                m.submodules[f"{name}_{x}_{y}"] = router
                if (x, y) in used:
                    wiring.connect(m, wiring.flipped(enter[y][x]), router.i_local)
                    wiring.connect(m, router.o_local, wiring.flipped(leave[y][x]))
                else:
                    m.d.comb += router.o_local.ready.eq(1)
        for (x, y), router in routers.items():
            for side in (Direction.EAST, Direction.SOUTH):
                neighbour = routers.get((x + side.value[0], y + side.value[1]))
                if neighbour is not None:
                    wiring.connect(m, router.side_o(side), neighbour.side_i(side.opposite))
                    wiring.connect(m, neighbour.side_o(side.opposite), router.side_i(side))
