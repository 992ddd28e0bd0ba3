"""Reads the page tables for every translator of the chip."""

from amaranth import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.network import AccessError, RequestKind, Tag
from sley.abi.pages import ENTRY_BYTES, PAGE_BITS, PAGE_ENTRY, TABLE_BITS, AddressMode
from sley.abi.placement import memory_node
from sley.abi.registers import RegisterMap
from sley.hw.bus.register_bank import bank_members
from sley.hw.elaboration.layouts import struct
from sley.hw.noc.messages import ask_memory, request_flit, response_flit, response_payload, to_node, walk_answer
from sley.hw.stream.fifo import StreamFIFO


class Walker(wiring.Component):
    """Answers WALK requests, one after another: how the page of an address is mapped in a context.

    The entry of the upper table first; if that points to a lower table, its entry then. An address that is not mapped,
    a table that memory cannot deliver, an entry with a reserved bit, one that points beyond the chip's address width,
    and a context that does not exist or is OFF are all answered as not valid.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    i : In(stream of request_flit(config))
        WALK packets, always accepted.
    o : Out(stream of response_flit(config))
        Their answers, in the order of arrival.
    request : Out(stream of request_flit(config))
        READ packets of one beat to memory, with this node as their source and a tag of their own.
    response : In(stream of response_payload(config))
        The answers to them, always accepted.
    roots : In(see bank_members).array(contexts)
        The CONTEXT registers.

    Latency
    -------
    3 cycles, and 3 and an access to memory for each table.

    Throughput
    ----------
    One walk at a time.

    Cost
    ----
    A queue of one head per translator.
    """

    i: stream.Interface
    o: stream.Interface
    request: stream.Interface
    response: stream.Interface
    roots: list[wiring.PureInterface]

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(request_flit(config))),
                "o": Out(stream.Signature(response_flit(config))),
                "request": Out(stream.Signature(request_flit(config))),
                "response": In(stream.Signature(response_payload(config))),
                "roots": In(bank_members(RegisterMap(config))["context"].signature).array(config.contexts),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._config
        # The command processor and each core have a translator, which asks again when it has its answer.
        m.submodules.waiting = waiting = StreamFIFO(request_flit(c), 1 + c.cores)
        wiring.connect(m, wiring.flipped(self.i), waiting.i)
        head: data.View = waiting.o.payload.payload.head
        root = Signal(self.roots[0].root.shape(), reset_less=True)
        lower = Signal(reset_less=True)  # the table that is read
        table = Signal(32 - PAGE_BITS, reset_less=True)
        word = Signal(struct(PAGE_ENTRY), reset_less=True)
        lost = Signal(reset_less=True)
        answer = Signal(walk_answer, reset_less=True)

        index = Mux(lower, head.addr[PAGE_BITS:][:TABLE_BITS], head.addr[PAGE_BITS + TABLE_BITS :])
        entry_address = Signal(32)
        flit: data.View = self.request.payload
        reply: data.View = self.o.payload
        bus = exact_log2(c.bus_bytes)
        m.d.comb += [
            entry_address.eq(table << PAGE_BITS | index << exact_log2(ENTRY_BYTES)),
            *ask_memory(
                flit, c, memory_node(c), kind=RequestKind.READ, tag=Tag.TABLE, addr=entry_address >> bus << bus
            ),
            flit.last.eq(1),
            self.response.ready.eq(1),
            reply.payload.tag.eq(head.tag),
            reply.payload.walk.eq(1),
            reply.payload.data.eq(answer),
            *to_node(reply, head.src.x, head.src.y),
            reply.last.eq(1),
        ]
        arrived = self.response.payload.data
        if len(arrived) > 8 * ENTRY_BYTES:
            arrived = arrived.word_select(entry_address[exact_log2(ENTRY_BYTES) : bus], 8 * ENTRY_BYTES)

        leaf = word.read | word.write | word.execute
        reserved = (word.as_value() & ~PAGE_ENTRY.mask & (1 << 8 * ENTRY_BYTES) - 1).any()
        aligned = ~word.page[:TABLE_BITS].any()
        inside = ~(word.page << PAGE_BITS)[c.addr_bits :].any()
        sound_entry = word.valid & ~reserved & ~lost & inside
        with m.FSM():
            with m.State("IDLE"), m.If(waiting.o.valid):
                m.d.sync += [root.eq(Array(r.root for r in self.roots)[head.context]), answer.eq(0)]
                with m.If(head.context >= c.contexts):
                    m.d.sync += root.eq(0)
                m.next = "ROOT"
            with m.State("ROOT"):
                m.d.sync += [table.eq(root.page), lower.eq(0)]
                with m.If(root.mode == AddressMode.PAGED):
                    m.next = "ASK"
                with m.Else():
                    m.d.sync += [
                        answer.valid.eq(root.mode == AddressMode.PHYSICAL),
                        *(answer[name].eq(1) for name in ("read", "write", "execute", "large")),
                        answer.page.eq(head.addr[PAGE_BITS + TABLE_BITS :] << TABLE_BITS),
                    ]
                    m.next = "ANSWER"
            with m.State("ASK"):
                m.d.comb += self.request.valid.eq(1)
                with m.If(self.request.ready):
                    m.next = "RECEIVE"
            with m.State("RECEIVE"), m.If(self.response.valid):
                m.d.sync += [word.eq(arrived), lost.eq(self.response.payload.error != AccessError.NONE)]
                m.next = "LOOK"
            with m.State("LOOK"):
                m.d.sync += [
                    answer.valid.eq(sound_entry & (lower | aligned)),
                    *(answer[name].eq(word[name]) for name in ("read", "write", "execute", "page")),
                    answer.large.eq(~lower),
                ]
                m.next = "ANSWER"
                with m.If(~lower & sound_entry & ~leaf):
                    m.d.sync += [lower.eq(1), table.eq(word.page)]
                    m.next = "ASK"
            with m.State("ANSWER"):
                m.d.comb += [self.o.valid.eq(1), waiting.o.ready.eq(self.o.ready)]
                with m.If(self.o.ready):
                    m.next = "IDLE"
        return m
