"""From addresses of a context to addresses of memory, on a node's way to the network."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.network import AccessError, RequestKind
from sley.abi.pages import PAGE_BITS
from sley.hw.mmu.tlb import Invalidation, Tlb
from sley.hw.noc.messages import request_flit, response_flit, walk_answer
from sley.hw.stream.buffer import StreamBuffer


class Translate(wiring.Component):
    """Translates the heads of READ and WRITE packets; everything else passes.

    Parameters
    ----------
    config : ChipConfig
        Sets the number of translations held.

    Members
    -------
    i : In(stream of request_flit(config))
        Packets of a node, with addresses of contexts.
    o : Out(stream of request_flit(config))
        To its router; comes from registers.
    response_i : In(stream of response_flit(config))
        Answers from the router.
    response_o : Out(stream of response_flit(config))
        Those that are not for this block, combinational.
    invalidate : In(Invalidation)
        A context whose translations are forgotten.

    Rules
    -----
    1. A head whose page is not held here waits, and all behind it, for one WALK.
    2. A head whose page is not mapped or does not allow the access goes on with ``error`` set, for which nothing is
       done at its address.
    3. An invalidation while a walk is in flight has that walk done again, so no translation older than the invalidation
       is used after it.

    Latency
    -------
    1 cycle when the translation is held. A miss costs 2 cycles and the path to the walker and back, with an access to
    memory for a large page and two for a small one.

    Throughput
    ----------
    A flit a cycle, when the translation is held.
    """

    i: stream.Interface
    o: stream.Interface
    response_i: stream.Interface
    response_o: stream.Interface
    invalidate: data.View

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        request, response = stream.Signature(request_flit(config)), stream.Signature(response_flit(config))
        super().__init__(
            {
                "i": In(request),
                "o": Out(request),
                "response_i": In(response),
                "response_o": Out(response),
                "invalidate": In(Invalidation),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.tlb = tlb = Tlb(self._config.tlb_entries)
        m.submodules.buffer = buffer = StreamBuffer(request_flit(self._config))
        wiring.connect(m, buffer.o, wiring.flipped(self.o))

        inside = Signal()  # behind the head of a packet
        walking = Signal()  # a walk is on its way
        stale = Signal()  # its answer came too late
        absent = Signal()  # its answer: the page of this head is not mapped
        passing = Signal()
        head: data.View = self.i.payload.payload.head
        answer: data.View = self.response_i.payload.payload
        mapping = Signal(walk_answer)
        writes = head.kind == RequestKind.WRITE
        arrives = self.response_i.valid & answer.walk
        m.d.comb += [
            mapping.eq(answer.data),
            tlb.context.eq(head.context),
            tlb.address.eq(head.addr),
            tlb.access.eq(Cat(~writes & ~head.execute, writes, ~writes & head.execute)),
            tlb.answer.eq(mapping),
            tlb.invalidate.eq(self.invalidate),
            tlb.fill.eq(walking & arrives & mapping.valid & ~stale),
            self.response_o.payload.eq(self.response_i.payload),
            self.response_o.valid.eq(self.response_i.valid & ~answer.walk),
            self.response_i.ready.eq(self.response_o.ready | answer.walk),
        ]
        forgets = self.invalidate.valid & (self.invalidate.context == head.context)
        with m.If(buffer.i.ready):  # the head whose page is absent goes on
            m.d.sync += absent.eq(0)
        with m.If(walking):
            m.d.sync += stale.eq(stale | forgets)
            with m.If(arrives):
                m.d.sync += [walking.eq(0), stale.eq(0), absent.eq(~mapping.valid & ~stale & ~forgets)]

        flit: data.View = buffer.i.payload
        translates = ~inside & ((head.kind == RequestKind.READ) | (head.kind == RequestKind.WRITE))
        m.d.comb += [
            tlb.valid.eq(translates),
            flit.eq(self.i.payload),
            flit.payload.head.addr[PAGE_BITS:].eq(tlb.page),
            passing.eq(self.i.valid & self.i.ready),
        ]
        # Also of a WALK, in which it says nothing. A head comes without one: it joins by OR, which is a LUT less.
        error = Mux(absent, AccessError.PAGE, AccessError.PERMISSION)
        m.d.comb += flit.payload.head.error.eq(head.error | Mux(translates & ~tlb.allowed, error, AccessError.NONE))
        with m.If(~translates | tlb.hit | absent):
            m.d.comb += [buffer.i.valid.eq(self.i.valid), self.i.ready.eq(buffer.i.ready)]
        with m.Else():
            m.d.comb += [
                flit.payload.head.kind.eq(RequestKind.WALK),
                flit.last.eq(1),
                buffer.i.valid.eq(self.i.valid & ~walking),
            ]
            with m.If(buffer.i.valid & buffer.i.ready):
                m.d.sync += walking.eq(1)
        with m.If(passing):
            m.d.sync += inside.eq(~self.i.payload.last)
        return m
