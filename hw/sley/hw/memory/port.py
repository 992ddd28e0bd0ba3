"""The node through which the chip reaches its memory."""

from amaranth.hdl import Module, Mux, ResetInserter, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.network import AccessError, RequestKind, Tag
from sley.abi.placement import command_node
from sley.abi.timing import PORT_READS, PORT_WRITES
from sley.hw.memory.axi import BURST_INCR, CACHE_NORMAL, RESP_ERROR, axi4_signature
from sley.hw.memory.combine import COMBINED, ReadCombiner
from sley.hw.noc.access import ERROR_BITS
from sley.hw.noc.messages import BEATS_BITS, Coordinate, request_data, request_flit, response_flit, to_node
from sley.hw.stream.arbiter import PacketArbiter
from sley.hw.stream.buffer import StreamBuffer
from sley.hw.stream.prefetch import PrefetchFIFO


class MemoryPort(wiring.Component):
    """Node of the mesh that turns request packets into AXI4 bursts and their answers into response packets.

    Every burst has ID 0, so memory answers in order, and a queue beside the bus remembers the requesters. In a chip
    with several cores the reads of their Loads pass a ``ReadCombiner``, which joins those that a gang shares; the
    answer is one packet to all requesters. All other reads go past it, alternating with what comes out of it.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    request_o : In(stream of request_flit(config))
        From the router: packets for this node.
    response_i : Out(stream of response_flit(config))
        To the router.
    axi : Out(axi4_signature(config))
        The bus. Outputs depend on registers only.
    ended : In(cores)
        With several cores: see ``ReadCombiner``.
    drain : In(1), drained : Out(1)
        See the rules; ``drained`` is a register.

    Rules
    -----
    1. Reads and writes are not ordered among each other.
    2. SLVERR and DECERR become ``error`` in the response, beat by beat for reads.
    3. A request that already has an ``error`` never reaches the bus: it is answered with that error, in its turn.
    4. Packets of kind MESSAGE are dropped.
    5. While ``drain`` is high no request is accepted, write bursts begun on the bus are completed with beats whose
       strobes are 0, and all answers are dropped. ``drained`` rises when no answer is missing and nothing is left to
       send.
    6. Afterwards, with the rest of the chip in reset, ``drain`` may fall; the port is then as after reset. It must not
       be reset itself while the bus is busy.

    Latency
    ------- 1 cycle from a head or a write beat to the bus, 4 more through the combiner, 2 cycles from the bus to
    ``response_i``.

    Throughput
    ----------
    A read burst per cycle and a read beat per cycle; a write burst of n beats in n + 1 cycles. In flight: 128 reads,
    besides those in the combiner, and 64 writes.
    """

    request_o: stream.Interface
    response_i: stream.Interface
    axi: wiring.PureInterface
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
                "drain": In(1),
                "drained": Out(1),
                **({"ended": In(config.cores)} if config.cores > 1 else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        requester: dict[str, ShapeLike] = {"src": Coordinate, "tag": Tag, "error": ERROR_BITS}
        read: dict[str, ShapeLike] = {
            **requester,
            "beats": BEATS_BITS,
            **({"far": Coordinate} if config.cores > 1 else {}),
        }
        m.submodules.reads = reads = PrefetchFIFO(data.StructLayout(read), PORT_READS)
        m.submodules.writes = writes = PrefetchFIFO(data.StructLayout(requester), PORT_WRITES)
        sending = self._requests(m, reads, writes)
        self._responses(m, reads.o, writes.o)

        waiting = Signal()
        m.d.comb += waiting.eq(sending | ~reads.empty | ~writes.empty)
        m.d.sync += self.drained.eq(self.drain & ~waiting)
        axi = self.axi
        for channel in ("aw", "ar"):
            m.d.comb += [
                getattr(axi, f"{channel}size").eq(exact_log2(config.bus_bytes)),
                getattr(axi, f"{channel}burst").eq(BURST_INCR),
                getattr(axi, f"{channel}cache").eq(CACHE_NORMAL),
            ]
        return m

    def _requests(self, m: Module, reads: PrefetchFIFO, writes: PrefetchFIFO) -> Signal:
        """Takes packets apart; returns whether something is still on its way to the bus."""
        config, axi = self._config, self.axi
        address = data.StructLayout({"addr": config.addr_bits, "len": BEATS_BITS})
        m.submodules.ar = ar = StreamBuffer(address)
        m.submodules.aw = aw = StreamBuffer(address)
        m.submodules.w = w = StreamBuffer(data.StructLayout({"beat": request_data(config), "last": 1}))
        for name, channel in (("ar", ar), ("aw", aw)):
            m.d.comb += [
                getattr(axi, f"{name}addr").eq(channel.o.payload.addr),
                getattr(axi, f"{name}len").eq(channel.o.payload.len),
                getattr(axi, f"{name}valid").eq(channel.o.valid),
                channel.o.ready.eq(getattr(axi, f"{name}ready")),
            ]
        m.d.comb += [
            axi.wdata.eq(w.o.payload.beat.data),
            axi.wstrb.eq(w.o.payload.beat.strobe),
            axi.wlast.eq(w.o.payload.last),
            axi.wvalid.eq(w.o.valid),
            w.o.ready.eq(axi.wready),
        ]

        request = self.request_o
        head = request.payload.payload.head
        in_write = Signal()
        in_message = Signal()
        dropping = Signal()  # the data of a write that is refused
        dropped = Signal(writes.i.payload.shape(), reset_less=True)
        left = Signal(BEATS_BITS, reset_less=True)  # beats of the write burst to come, minus one
        for channel, queue in ((ar, reads), (aw, writes)):
            m.d.comb += [
                channel.i.payload.addr.eq(head.addr),
                channel.i.payload.len.eq(head.beats),
                queue.i.payload.src.eq(head.src),
                queue.i.payload.tag.eq(head.tag),
                queue.i.payload.error.eq(head.error),
            ]
        m.d.comb += [reads.i.payload.beats.eq(head.beats), w.i.payload.last.eq(left == 0)]
        refused = head.error != AccessError.NONE
        read_valid = Signal()  # a READ is here
        taken = Signal()
        with m.If(in_write):
            with m.If(self.drain):
                m.d.comb += w.i.valid.eq(1)  # data and strobe 0: the sender may be gone
            with m.Else():
                m.d.comb += [
                    w.i.payload.beat.eq(request.payload.payload.beat),
                    w.i.valid.eq(request.valid),
                    request.ready.eq(w.i.ready),
                ]
            with m.If(w.i.valid & w.i.ready):
                m.d.sync += [left.eq(left - 1), in_write.eq(left != 0)]
        with m.Elif(dropping):
            # The acknowledgement waits for the last beat: then the sender is rid of the burst.
            last = request.payload.last
            m.d.comb += [
                writes.i.payload.eq(dropped),
                writes.i.valid.eq(request.valid & last & ~self.drain),
                request.ready.eq((writes.i.ready | ~last) & ~self.drain),
            ]
            with m.If(self.drain | (request.valid & request.ready & last)):
                m.d.sync += dropping.eq(0)
        with m.Elif(in_message):
            m.d.comb += request.ready.eq(~self.drain)
            with m.If(self.drain | (request.valid & request.payload.last)):
                m.d.sync += in_message.eq(0)
        with m.Elif(~self.drain), m.Switch(head.kind):
            with m.Case(RequestKind.READ):
                m.d.comb += [read_valid.eq(request.valid), request.ready.eq(taken)]
            with m.Case(RequestKind.WRITE):
                m.d.comb += [
                    aw.i.valid.eq(request.valid & writes.i.ready & ~refused),
                    request.ready.eq((aw.i.ready & writes.i.ready) | refused),
                    writes.i.valid.eq(aw.i.valid & aw.i.ready),
                ]
                with m.If(request.valid & request.ready):
                    m.d.sync += [in_write.eq(~refused), dropping.eq(refused), left.eq(head.beats)]
                    m.d.sync += dropped.eq(writes.i.payload)
            with m.Default():
                m.d.comb += request.ready.eq(1)
                with m.If(request.valid & ~request.payload.last):
                    m.d.sync += in_message.eq(1)
        if config.cores > 1:
            self._combine(m, read_valid, taken, ar.i, reads.i)
        else:
            m.d.comb += [
                ar.i.valid.eq(read_valid & reads.i.ready & ~refused),
                taken.eq((ar.i.ready | refused) & reads.i.ready),
                reads.i.valid.eq(read_valid & taken),
            ]
        return in_write | in_message | dropping | ar.o.valid | aw.o.valid | w.o.valid

    def _combine(
        self, m: Module, read_valid: Signal, taken: Signal, ar: stream.Interface, reads: stream.Interface
    ) -> None:
        """Reads of the cores' Loads through the combiner, others past it."""
        head = self.request_o.payload.payload.head
        combiner = ReadCombiner(self._config)
        m.submodules.combiner = ResetInserter(self.drain)(combiner)
        x, y = command_node(self._config)
        load = Signal()
        direct = Signal()
        combiner_next = Signal()  # of the combiner
        read = Signal(COMBINED)  # the one that goes on
        refused = read.error != AccessError.NONE
        issued = Signal()
        m.d.comb += [
            combiner.ended.eq(self.ended),
            load.eq((head.tag == Tag.LOAD) & ((head.src.x != x) | (head.src.y != y))),
            combiner.i.payload.eq(head),
            combiner.i.valid.eq(read_valid & load),
            direct.eq(read_valid & ~load & ~(combiner_next & combiner.o.valid)),
            taken.eq(Mux(load, combiner.i.ready, direct & issued)),
            combiner.o.ready.eq(~direct & issued),
        ]
        with m.If(direct):
            m.d.comb += [read.near.eq(head.src), read.far.eq(head.src), reads.payload.tag.eq(head.tag)]
            m.d.comb += [read[name].eq(head[name]) for name in ("addr", "beats", "error")]
        with m.Else():
            m.d.comb += [read.eq(combiner.o.payload), reads.payload.tag.eq(Tag.LOAD)]
        offered = direct | (combiner.o.valid & ~self.drain)
        m.d.comb += [
            issued.eq(offered & reads.ready & (ar.ready | refused)),
            ar.payload.addr.eq(read.addr),
            ar.payload.len.eq(read.beats),
            ar.valid.eq(offered & reads.ready & ~refused),
            reads.payload.src.eq(read.near),
            reads.payload.far.eq(read.far),
            reads.payload.error.eq(read.error),
            reads.payload.beats.eq(read.beats),
            reads.valid.eq(issued),
        ]
        with m.If(issued):
            m.d.sync += combiner_next.eq(direct)

    def _responses(self, m: Module, reads: stream.Interface, writes: stream.Interface) -> None:
        """Addresses the answers to who asked and sends them, whole bursts at a time."""
        config, axi = self._config, self.axi
        m.submodules.r = r = StreamBuffer(
            data.StructLayout({"data": 8 * config.bus_bytes, "error": ERROR_BITS, "last": 1})
        )
        m.submodules.b = b = StreamBuffer(data.StructLayout({"error": ERROR_BITS}))
        m.d.comb += [
            r.i.payload.data.eq(axi.rdata),
            r.i.payload.error.eq(Mux((axi.rresp & RESP_ERROR).any(), AccessError.BUS, AccessError.NONE)),
            r.i.payload.last.eq(axi.rlast),
            r.i.valid.eq(axi.rvalid),
            axi.rready.eq(r.i.ready),
            b.i.payload.error.eq(Mux((axi.bresp & RESP_ERROR).any(), AccessError.BUS, AccessError.NONE)),
            b.i.valid.eq(axi.bvalid),
            axi.bready.eq(b.i.ready),
        ]
        m.submodules.merge = merge = ResetInserter(self.drain)(PacketArbiter(response_flit(config), 2))
        wiring.connect(m, merge.o, wiring.flipped(self.response_i))
        for k, (answer, requester) in enumerate(((r.o, reads), (b.o, writes))):
            output = merge.i[k]
            refused = requester.payload.error != AccessError.NONE
            answered = answer.valid | refused
            last = Value.cast(1)
            if k == 0:
                beat = Signal(BEATS_BITS)  # of an answer that does not come from the bus
                last = Mux(refused, beat == requester.payload.beats, answer.payload.last)
                with m.If(requester.valid & refused & (output.ready | self.drain)):
                    m.d.sync += beat.eq(Mux(last, 0, beat + 1))
            m.d.comb += [
                *to_node(output.payload, requester.payload.src.x, requester.payload.src.y),
                output.payload.payload.tag.eq(requester.payload.tag),
                output.payload.payload.error.eq(Mux(refused, requester.payload.error, answer.payload.error)),
                output.payload.last.eq(last),
                output.valid.eq(answered & requester.valid),
                answer.ready.eq((output.ready | self.drain) & requester.valid & ~refused),
                requester.ready.eq(answered & (output.ready | self.drain) & last),
            ]
        from_memory = reads.payload.error == AccessError.NONE  # by memory; other answers have no data
        m.d.comb += merge.i[0].payload.payload.data.eq(Mux(from_memory, r.o.payload.data, 0))
        if config.cores > 1:
            m.d.comb += merge.i[0].payload.far.eq(reads.payload.far)
