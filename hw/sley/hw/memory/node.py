"""Where the parts of one node meet its router."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.network import Tag
from sley.hw.noc.messages import request_flit, response_flit, response_payload
from sley.hw.stream.arbiter import PacketArbiter


class NodePort(wiring.Component):
    """Merges the requests of a node's parts, and hands the answers out by tag.

    Parameters
    ----------
    config : ChipConfig
        The chip.
    tags : list of Tag
        The tag of each part, all different.
    weights : tuple of int
        The packets that each part may send in a row; 1 if not given.

    Members
    -------
    request : In(stream of request_flit(config)).array(len(tags))
        Of the part with that tag; round robin between whole packets, see ``PacketGrant``.
    response : Out(stream of response_payload(config)).array(len(tags))
        The answers to that tag; combinational. Those with a tag that no part has are dropped.
    request_i : Out(stream of request_flit(config)), response_o : In(stream of response_flit(config))
        To the router's ``request_i``, from its ``response_o``.

    Raises
    ------
    ValueError
        If there is no tag, or one comes twice.

    Latency
    -------
    1 cycle of a request, none of an answer.

    Throughput
    ----------
    1 flit per cycle.
    """

    request: list[stream.Interface]
    response: list[stream.Interface]
    request_i: stream.Interface
    response_o: stream.Interface

    def __init__(self, config: ChipConfig, tags: list[Tag], weights: tuple[int, ...] = ()) -> None:
        if not tags or len(set(tags)) != len(tags):
            raise ValueError(f"tags are {tags}; there must be at least one, and none twice")
        self._config = config
        self._tags = tags
        self._weights = weights
        super().__init__(
            {
                "request": In(stream.Signature(request_flit(config))).array(len(tags)),
                "response": Out(stream.Signature(response_payload(config))).array(len(tags)),
                "request_i": Out(stream.Signature(request_flit(config))),
                "response_o": In(stream.Signature(response_flit(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.merge = merge = PacketArbiter(request_flit(self._config), len(self._tags), self._weights)
        wiring.connect(m, merge.o, wiring.flipped(self.request_i))
        answer = self.response_o.payload.payload
        blocked = Signal()
        m.d.comb += self.response_o.ready.eq(~blocked)
        for k, tag in enumerate(self._tags):
            wiring.connect(m, wiring.flipped(self.request[k]), merge.i[k])
            m.d.comb += [
                self.response[k].payload.eq(answer),
                self.response[k].valid.eq(self.response_o.valid & (answer.tag == tag)),
            ]
            with m.If(self.response[k].valid & ~self.response[k].ready):
                m.d.comb += blocked.eq(1)
        return m
