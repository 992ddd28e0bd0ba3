"""Both networks of the chip."""

from amaranth import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.placement import Node
from sley.hw.noc.direction import Direction
from sley.hw.noc.messages import request_flit, response_flit
from sley.hw.noc.multicast import MulticastRouter
from sley.hw.noc.router import Router
from sley.hw.noc.routes import Pair, request_pairs, response_pairs, turns

Ports = dict[Node, stream.Interface]


class Mesh(wiring.Component):
    """A mesh of routers for requests, and another for responses.

    ``routes`` says who sends to whom; routers, links and turns that no packet takes are left out. With several cores a
    packet on the response network goes to all nodes of a rectangle (``MulticastRouter``).

    Parameters
    ----------
    config : ChipConfig
        The chip; see ``placement`` for what sits where.

    Members
    -------
    request_i, response_i : In(stream of flits), by node
        Packets the node sends: ports ``request_i_0_0``, ... with x and y. A node that never sends is not among them.
    request_o, response_o : Out(stream of flits), by node
        Packets for the node, likewise.

    Rules
    -----
    1. Order between one source and one destination is kept within each network.
    2. Packets to more than one node must all come from one node.
    3. The mesh is free of deadlock if every node always accepts responses without waiting for the request network.

    Latency
    -------
    1 cycle per router, the first and the last included (a neighbour is 2 cycles away).
    """

    request_i: Ports
    request_o: Ports
    response_i: Ports
    response_o: Ports

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        requests, responses = request_pairs(config), response_pairs(config)
        request, response = stream.Signature(request_flit(config)), stream.Signature(response_flit(config))
        ports = {
            "request_i": (In(request), sorted({source for source, _ in requests})),
            "request_o": (Out(request), sorted({dest for _, dest in requests})),
            "response_i": (In(response), sorted({source for source, _ in responses})),
            "response_o": (Out(response), sorted({dest for _, dest in responses})),
        }
        super().__init__({f"{name}_{x}_{y}": flow for name, (flow, nodes) in ports.items() for x, y in nodes})
        for name, (_, nodes) in ports.items():
            setattr(self, name, {(x, y): getattr(self, f"{name}_{x}_{y}") for x, y in nodes})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._config
        self._network(m, "request", request_flit(c), request_pairs(c), self.request_i, self.request_o)
        self._network(m, "response", response_flit(c), response_pairs(c), self.response_i, self.response_o)
        return m

    def _network(self, m: Module, name: str, shape: data.Layout, pairs: list[Pair], enter: Ports, leave: Ports) -> None:
        kind = MulticastRouter if "far" in shape.members else Router
        routers: dict[Node, Router] = {}
        for (x, y), taken in turns(pairs).items():
            m.submodules[f"{name}_{x}_{y}"] = routers[x, y] = kind(shape, (x, y), taken)
        for node, port in enter.items():
            wiring.connect(m, wiring.flipped(port), routers[node].side_i(Direction.LOCAL))
        for node, port in leave.items():
            wiring.connect(m, routers[node].side_o(Direction.LOCAL), wiring.flipped(port))
        for (x, y), router in routers.items():
            for side in router.outputs:
                if side is not Direction.LOCAL:
                    neighbour = routers[x + side.value[0], y + side.value[1]]
                    wiring.connect(m, router.side_o(side), neighbour.side_i(side.opposite))
