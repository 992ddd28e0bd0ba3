"""The node of the memory: the port to the bus, and the walker of the page tables beside it."""

from amaranth import Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from sley.abi.config import ChipConfig
from sley.abi.network import RequestKind, Tag
from sley.abi.registers import RegisterMap
from sley.hw.bus.register_bank import bank_members
from sley.hw.memory.axi import axi4_signature
from sley.hw.memory.port import MemoryPort
from sley.hw.mmu.walker import Walker
from sley.hw.noc.messages import request_flit, response_flit


class MemoryGateway(wiring.Component):
    """Sends WALK packets to a ``Walker`` and all others to a ``MemoryPort``, which also serves the walker's own reads.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    request_o : In(stream of request_flit(config)), response_i : Out(stream of response_flit(config))
        As of ``MemoryPort``.
    axi : Out(axi4_signature(config)), ended : In(cores), drain : In(1), drained : Out(1)
        As of ``MemoryPort``.
    roots : In(see bank_members).array(contexts)
        The CONTEXT registers.

    Latency
    -------
    None besides that of the two, and a cycle for the walker's reads and answers, which go between other packets,
    alternating with these.
    """

    request_o: stream.Interface
    response_i: stream.Interface
    axi: wiring.PureInterface
    roots: list[wiring.PureInterface]
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
        m.submodules.walker = ResetInserter(self.drain)(walker)  # the port alone finishes what is on the bus
        connect(m, port.axi, flipped(self.axi))
        if c.cores > 1:
            m.d.comb += port.ended.eq(self.ended)
        m.d.comb += [port.drain.eq(self.drain), self.drained.eq(port.drained)]
        for k in range(c.contexts):
            connect(m, flipped(self.roots[k]), walker.roots[k])

        # Requests: only the first flit of a packet says what it is.
        others = stream.Interface(stream.Signature(request_flit(c)), path=("others",))
        in_packet = Signal()
        walks = ~in_packet & (self.request_o.payload.payload.head.kind == RequestKind.WALK)
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
            m.d.sync += in_packet.eq(0)
        with m.Elif(self.request_o.valid & self.request_o.ready):
            m.d.sync += in_packet.eq(~self.request_o.payload.last)
        self._between(m, "asking", others, walker.request, port.request_o)

        # Answers to the walker go round.
        for_walker = port.response_i.payload.payload.tag == Tag.TABLE
        for_others = stream.Interface(stream.Signature(response_flit(c)), path=("for_others",))
        m.d.comb += [
            walker.response.payload.eq(port.response_i.payload.payload),
            walker.response.valid.eq(port.response_i.valid & for_walker),
            for_others.payload.eq(port.response_i.payload),
            for_others.valid.eq(port.response_i.valid & ~for_walker),
            port.response_i.ready.eq(for_others.ready | for_walker),
        ]
        self._between(m, "answering", for_others, walker.o, self.response_i)
        return m

    def _between(
        self, m: Module, name: str, packets: stream.Interface, flits: stream.Interface, output: stream.Interface
    ) -> None:
        """Packets go through as if alone, but that a flit goes between two of them, a cycle after it could."""
        inserting = Signal(name=name)  # a flit's
        inside = Signal(name=f"{name}_inside")  # a packet
        m.d.comb += [
            Value.cast(output.payload).eq(Mux(inserting, Value.cast(flits.payload), Value.cast(packets.payload))),
            output.valid.eq(Mux(inserting, flits.valid, packets.valid)),
            flits.ready.eq(output.ready & inserting),
            packets.ready.eq(output.ready & ~inserting),
        ]
        continues = Signal(name=f"{name}_goes_on")  # the packet
        m.d.comb += continues.eq(Mux(packets.valid, ~(output.ready & packets.payload.last), inside))
        with m.If(inserting):
            m.d.sync += inserting.eq(~output.ready)
        with m.Else():
            m.d.sync += inserting.eq(flits.valid & ~continues)
            with m.If(packets.valid & output.ready):
                m.d.sync += inside.eq(~packets.payload.last)
        with m.If(self.drain):
            m.d.sync += [inserting.eq(0), inside.eq(0)]
