"""The node of the memory: the port to the bus, and the walker of the page tables beside it."""

from typing import Any

from amaranth import Module, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from sley.abi.config import ChipConfig
from sley.abi.registers import RegisterMap
from sley.hw.bus.register_bank import bank_members
from sley.hw.memory.axi import axi4_signature
from sley.hw.memory.port import MemoryPort
from sley.hw.mmu.walker import Walker
from sley.hw.noc.messages import RequestKind, request_flit, response_flit
from sley.hw.noc.placement import memory_node
from sley.hw.stream.arbiter import PacketGrant, select_packet


class MemoryGateway(wiring.Component):
    """Sends WALK packets to a ``Walker`` and all others to a ``MemoryPort``, which also serves the walker's own reads.

    Parameters: ``config``.
    Members: as of ``MemoryPort``; ``roots``: the CONTEXT registers.
    Latency: none besides that of the two. The walker's reads and answers take turns with other packets.
    """

    request_o: stream.Interface
    response_i: stream.Interface
    axi: wiring.PureInterface
    roots: Any
    ended: Signal
    drain: Signal
    drained: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "request_o": In(stream.Signature(request_flit(config))),
                "response_i": Out(stream.Signature(response_flit(config))),
                "axi": Out(axi4_signature(config)),
                "roots": In(bank_members(RegisterMap(config))["context"].signature).array(config.contexts),
                **({"ended": In(config.cores)} if config.cores > 1 else {}),
                "drain": In(1),
                "drained": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._config
        m.submodules.port = port = MemoryPort(c)
        walker = Walker(c)
        asking, answering = PacketGrant(2, steady=True), PacketGrant(2, steady=True)
        restart = ResetInserter(self.drain)  # the port alone finishes what is on the bus
        m.submodules.walker = restart(walker)
        m.submodules.asking = restart(asking)
        m.submodules.answering = restart(answering)
        connect(m, port.axi, flipped(self.axi))
        if c.cores > 1:
            m.d.comb += port.ended.eq(self.ended)
        m.d.comb += [port.drain.eq(self.drain), self.drained.eq(port.drained)]
        for k in range(c.contexts):
            connect(m, flipped(self.roots[k]), walker.roots[k])

        # Requests: only the first flit of a packet says what it is.
        others = stream.Interface(stream.Signature(request_flit(c)), path=("others",))
        begun = Signal()
        walks = ~begun & (self.request_o.payload.payload.head.kind == RequestKind.WALK)
        m.d.comb += [
            walker.i.payload.eq(self.request_o.payload),
            walker.i.valid.eq(self.request_o.valid & walks & ~self.drain),
            others.payload.eq(self.request_o.payload),
            others.valid.eq(self.request_o.valid & ~walks),
            self.request_o.ready.eq(others.ready),
        ]
        with m.If(walks):
            m.d.comb += self.request_o.ready.eq(walker.i.ready & ~self.drain)
        with m.If(self.drain):
            m.d.sync += begun.eq(0)
        with m.Elif(self.request_o.valid & self.request_o.ready):
            m.d.sync += begun.eq(~self.request_o.payload.last)
        select_packet(m, [others, walker.request], port.request_o, asking)

        # Answers to the walker go round.
        x, y = memory_node(c)
        dest = port.response_i.payload.dest
        mine = (dest.x == x) & (dest.y == y)
        elsewhere = stream.Interface(stream.Signature(response_flit(c)), path=("elsewhere",))
        m.d.comb += [
            walker.response.payload.eq(port.response_i.payload.payload),
            walker.response.valid.eq(port.response_i.valid & mine),
            elsewhere.payload.eq(port.response_i.payload),
            elsewhere.valid.eq(port.response_i.valid & ~mine),
            port.response_i.ready.eq(elsewhere.ready | mine),
        ]
        select_packet(m, [elsewhere, walker.o], self.response_i, answering)
        return m
