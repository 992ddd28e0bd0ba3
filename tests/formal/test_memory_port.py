"""The chip's AXI4 manager: the rules of the bus; each request is carried out and answered once, in its turn."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value

from sley.abi.config import preset
from sley.abi.network import AccessError, RequestKind, Tag
from sley.hw.memory.port import MemoryPort
from sley.hw.noc.messages import request_flit
from sley.hw.testing.axi_rules import AxiRules
from sley.hw.testing.mutation import copied, mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

CONFIG = preset("nano").replace(max_burst=4)
QUEUED = 2
"""Depth of the queues of who asked, in these proofs."""
IN_FLIGHT = QUEUED + 2  # reads, and as many writes


class Carried(Property):
    """The rules of AXI4, at any time, drained or not. Each read and each write without an error becomes one burst, with
    its address, length, data and strobes; each is answered by one packet to who asked, with its tag, a beat for each of
    a read: with the data and the error of the bus, or with its own error and no data. Reads are answered in the order
    of the requests, and so are writes. While ``drain`` is high nothing is taken nor answered, and what a burst
    still lacks is sent without strobes; ``drained`` is not high while anything is on its way.

    Assumed: memory keeps the rules of AXI4; requests are whole packets, aligned, within ``max_burst`` beats from a
    multiple of these, and stay until they are taken, but for a drain; a drain lasts until ``drained``. With ``only``
    all requests are of one kind.
    """

    def __init__(self, dut: Any, only: RequestKind | None = None) -> None:
        super().__init__(dut)
        self.only = only

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        self.free_inputs(m, dut)
        self.requests(m)
        axi = dut.axi
        drained, quiet, drains = Signal(init=1), dut.drain & dut.drained, Signal()
        m.d.sync += [drained.eq(~dut.drain | quiet), drains.eq(dut.drain)]
        m.d.comb += Assume(drained | dut.drain)

        self.read_addressed, self.write_turn = Signal(), Signal()
        self.rules = AxiRules(
            m, self, axi, outstanding=IN_FLIGHT, choose_read=self.read_addressed, choose_write=self.write_turn
        )
        m.d.comb += [
            *self.rules.rules(manager=True),
            Assume((axi.rid == 0) & (axi.bid == 0) & (self.rules.read_id == 0) & (self.rules.write_id == 0)),
            Assert((axi.awlock == 0) & (axi.arlock == 0)),
            Assert(self.rules.all_addresses <= IN_FLIGHT),
        ]
        answer = dut.response_i
        last, stored = answer.payload.last, answer.payload.payload.tag == Tag.STORE
        passes = answer.valid & answer.ready & ~dut.drain
        self.reads(m, passes & ~stored & last, answer, answer.valid & ~stored & ~dut.drain)
        self.writes(m, passes & stored, answer, answer.valid & stored & ~dut.drain)
        m.d.comb += [
            Assert(~(dut.drain & dut.request_o.ready)),
            Assert(~drains | (self.bursts == 0) | axi.wvalid),
            Assert(~quiet | (self.rules.all_reads + self.rules.all_addresses + self.rules.all_data == 0)),
            Assert(~quiet | ~(axi.arvalid | axi.awvalid | axi.wvalid)),
        ]
        return m

    def requests(self, m: Module) -> None:
        """What may come, and what came: heads of reads and writes, and data."""
        dut = self.dut
        i, head = dut.request_o, dut.request_o.payload.payload.head
        waits, offered = Signal(), Signal(request_flit(CONFIG))
        m.d.sync += [waits.eq(i.valid & ~i.ready & ~dut.drain), offered.eq(i.payload)]
        inside, writing, left = Signal(), Signal(), Signal(8)
        comes = i.valid & i.ready
        is_read, is_write = head.kind == RequestKind.READ, head.kind == RequestKind.WRITE
        lanes = CONFIG.bus_bytes
        place = head.addr[lanes.bit_length() - 1 :][: CONFIG.max_burst.bit_length() - 1]
        sound = (head.addr % lanes == 0) & (place + head.beats < CONFIG.max_burst)
        m.d.comb += [
            Assume(~waits | (i.valid & (Value.cast(i.payload) == Value.cast(offered)))),
            Assume(~i.valid | inside | ~(is_read | is_write) | sound),
            Assume(~i.valid | inside | (i.payload.last == ~is_write) | (head.kind == RequestKind.MESSAGE)),
            Assume(~i.valid | ~writing | (i.payload.last == (left == 0))),
            # So answers to reads and to writes can be told from each other.
            Assume(~i.valid | inside | ~(is_read | is_write) | ((head.tag == Tag.STORE) == is_write)),
        ]
        if self.only is not None:
            m.d.comb += Assume(inside | (head.kind == self.only))
        with m.If(comes):
            m.d.sync += [inside.eq(~i.payload.last), left.eq(left - 1)]
            with m.If(~inside):
                m.d.sync += [writing.eq(is_write), left.eq(head.beats)]
            with m.If(i.payload.last):
                m.d.sync += writing.eq(0)
        with m.If(dut.drain):
            m.d.sync += [inside.eq(0), writing.eq(0)]
        self.head, self.beat = head, i.payload.payload.beat
        self.asks_read, self.asks_write = comes & ~inside & is_read, comes & ~inside & is_write
        self.data, self.data_left = comes & writing, left
        self.sound = head.error == AccessError.NONE

    def keep(self, m: Module, name: str, asks: Any) -> tuple[Signal, Any, Any, Any]:
        """A request that the solver chooses, until its answer."""
        chosen = Signal(name=f"{name}_chosen")
        head = Signal(self.head.shape(), name=f"{name}_head")
        choose = asks & ~chosen & self.free(1, f"choose_{name}")
        with m.If(choose):
            m.d.sync += [chosen.eq(1), head.eq(self.head)]
        return chosen, choose, head, head.error == AccessError.NONE

    def count(self, m: Module, name: str, up: Any, down: Any, clear: Any = 0) -> Signal:
        count = Signal(5, name=name)
        m.d.sync += count.eq(Mux(clear, 0, count + up - down))
        return count

    def before(self, m: Module, name: str, choose: Any, count: Any, down: Any) -> tuple[Signal, Signal]:
        """How many of those counted come before the chosen one, and whether it has passed."""
        before, gone = Signal(5, name=f"{name}_before"), Signal(name=f"{name}_gone")
        with m.If(choose):
            m.d.sync += [before.eq(count - down), gone.eq(0)]
        with m.Elif(down & ~gone):
            m.d.sync += [before.eq(before - (before != 0)), gone.eq(before == 0)]
        return before, gone

    def reads(self, m: Module, ends: Any, answer: Any, offers: Any) -> None:
        axi, drain, rules = self.dut.axi, self.dut.drain, self.rules
        chosen, choose, head, sound = self.keep(m, "read", self.asks_read)
        addressed = axi.arvalid & axi.arready
        pending = self.count(m, "reads_to_address", self.asks_read & self.sound, addressed)
        asked = self.count(m, "reads_to_answer", self.asks_read, ends, clear=drain)
        before, gone = self.before(m, "address", choose, pending, addressed)
        turn, answered = self.before(m, "read", choose, asked, ends)
        m.d.comb += self.read_addressed.eq(chosen & sound & addressed & (before == 0) & ~gone)
        with m.If(self.read_addressed):
            m.d.comb += Assert((axi.araddr == head.addr) & (axi.arlen == head.beats))
        with m.If(drain):
            m.d.sync += chosen.eq(0)

        which, beats = self.constant(8, "read_beat"), Signal(8, name="read_answers")
        data, error = Signal(8 * CONFIG.bus_bytes, name="read_data"), Signal(name="read_error")
        arrives = axi.rvalid & axi.rready & rules.read_picked & ~rules.read_done & (rules.reads_before == 0)
        with m.If(arrives & (rules.read_beats == which)):
            m.d.sync += [data.eq(axi.rdata), error.eq(axi.rresp[1])]
        mine = offers & chosen & (turn == 0) & ~answered
        with m.If(choose):
            m.d.sync += beats.eq(0)
        with m.Elif(mine & answer.ready):
            m.d.sync += beats.eq(beats + 1)
        reply = answer.payload.payload
        m.d.comb += [
            Assert(~offers | (asked != 0)),
            Assert(~mine | (Value.cast(answer.payload.dest) == Value.cast(head.src))),
            Assert(~mine | (reply.tag == head.tag) & ~reply.walk),
            Assert(~mine | (answer.payload.last == (beats == head.beats))),
            Assert(~(mine & ~sound) | ((reply.error == head.error) & (reply.data == 0))),
            Assert(~(mine & sound) | gone),
        ]
        with m.If(mine & sound & (beats == which)):
            m.d.comb += [
                Assert(reply.data == data),
                Assert(reply.error == Mux(error, AccessError.BUS, AccessError.NONE)),
            ]

    def writes(self, m: Module, ends: Any, answer: Any, offers: Any) -> None:
        axi, drain, rules = self.dut.axi, self.dut.drain, self.rules
        chosen, choose, head, sound = self.keep(m, "write", self.asks_write)
        addressed, beat = axi.awvalid & axi.awready, axi.wvalid & axi.wready
        taken = self.asks_write & self.sound
        addresses = self.count(m, "writes_to_address", taken, addressed)
        bursts = self.bursts = self.count(m, "writes_to_send", taken, beat & axi.wlast)
        asked = self.count(m, "writes_to_answer", self.asks_write, ends, clear=drain)
        before, gone = self.before(m, "write_address", choose, addresses, addressed)
        data_before, sent = self.before(m, "write_data", choose, bursts, beat & axi.wlast)
        turn, answered = self.before(m, "write", choose, asked, ends)
        m.d.comb += self.write_turn.eq(chosen & sound & ((before == 0) | (data_before == rules.inside_data)))
        with m.If(chosen & sound & addressed & (before == 0) & ~gone):
            m.d.comb += Assert((axi.awaddr == head.addr) & (axi.awlen == head.beats))

        # Of the data one beat that the solver chooses, counted down.
        which = self.constant(8, "write_beat")
        came, held = Signal(), Signal(self.beat.shape())
        open_, cut = Signal(), Signal()  # its data comes; it was drained before all had come
        with m.If(choose):
            m.d.sync += [open_.eq(1), came.eq(0)]
        with m.Elif(self.data & open_):
            m.d.sync += open_.eq(self.data_left != 0)
            with m.If(self.data_left == which):
                m.d.sync += [came.eq(1), held.eq(self.beat)]
        mine = chosen & sound & axi.wvalid & (data_before == 0) & ~sent
        beats = Signal(8, name="beats_sent")
        with m.If(choose):
            m.d.sync += beats.eq(0)
        with m.Elif(mine & axi.wready):
            m.d.sync += beats.eq(beats + 1)
        with m.If(mine & (beats + which == head.beats)):
            with m.If(came):
                m.d.comb += Assert((axi.wdata == held.data) & (axi.wstrb == held.strobe))
            with m.Else():
                m.d.comb += [Assert(axi.wstrb == 0), Assert(cut)]
        with m.If(drain):
            m.d.sync += [cut.eq(open_ | cut), open_.eq(0)]

        error = Signal(name="write_error")
        acknowledged = axi.bvalid & axi.bready & rules.write_followed & ~rules.write_answered
        with m.If(acknowledged & (rules.answers_before == 0)):
            m.d.sync += error.eq(axi.bresp[1])
        dropped = Signal()  # its answer is
        with m.If(drain & chosen):
            m.d.sync += dropped.eq(1)
        mine = offers & chosen & ~dropped & (turn == 0) & ~answered
        reply = answer.payload.payload
        expected = Mux(sound, Mux(error, AccessError.BUS, AccessError.NONE), head.error)
        m.d.comb += [
            Assert(~offers | (asked != 0)),
            Assert(~mine | (Value.cast(answer.payload.dest) == Value.cast(head.src))),
            Assert(~mine | (reply.tag == Tag.STORE) & answer.payload.last & ~reply.walk),
            Assert(~mine | (reply.error == expected)),
            Assert(~(mine & sound) | rules.write_answered),
        ]


def port(component: Any = None, only: RequestKind | None = None) -> Carried:
    """The port, or one with a planted bug, with short queues."""
    component = component or copied(MemoryPort)
    component.elaborate.__globals__.update(PORT_READS=QUEUED, PORT_WRITES=QUEUED)
    return Carried(component(CONFIG), only)


@pytest.mark.some(1, "campaign")
@pytest.mark.parametrize(
    ("only", "depth"),
    [
        pytest.param(RequestKind.READ, 7, id="reads"),
        pytest.param(RequestKind.WRITE, 7, id="writes"),
        pytest.param(None, 10, id="all", marks=pytest.mark.campaign),
    ],
)
def test_memory_port(only: RequestKind | None, depth: int) -> None:
    prove(port(only=only), depth, induction=False)


@planted(
    {
        "drained too early": ("self.drained.eq(self.drain & ~waiting)", "self.drained.eq(self.drain)"),
        "too many": ("taken.eq((ar.i.ready | refused) & reads.i.ready)", "taken.eq(ar.i.ready | refused)"),
        "refused, yet read": (
            "ar.i.valid.eq(read_valid & reads.i.ready & ~refused)",
            "ar.i.valid.eq(read_valid & reads.i.ready)",
        ),
        "writes forgotten": (
            "aw.i.valid.eq(request.valid & writes.i.ready & ~refused)",
            "aw.i.valid.eq(request.valid & ~refused)",
        ),
        "last": ("w.i.payload.last.eq(left == 0)", "w.i.payload.last.eq(left == 1)"),
        "strobes in a drain": ("w.i.valid.eq(1)", "[w.i.valid.eq(1), w.i.payload.beat.strobe.eq(1)]"),
        "burst cut off": ("w.i.valid.eq(1)", "w.i.valid.eq(0)"),
        "one beat for all": ("beat == requester.payload.beats, answer.payload.last)", "1, answer.payload.last)"),
        "long refusals": ("Mux(last, 0, beat + 1)", "beat + 1"),
        "data with an error": ("Mux(from_memory, r.o.payload.data, 0)", "r.o.payload.data"),
        "DECERR": ("(axi.rresp & RESP_ERROR).any()", "(axi.rresp == RESP_ERROR)"),
        "refusal to nobody": ("m.d.sync += dropped.eq(writes.i.payload)", "pass"),
        "withdrawn": ('channel.o.ready.eq(getattr(axi, f"{name}ready"))', "channel.o.ready.eq(1)"),
        "page crossed": ("channel.i.payload.addr.eq(head.addr)", "channel.i.payload.addr.eq(head.addr + 4)"),
        "wrong error": ("Mux(refused, requester.payload.error, answer.payload.error)", "answer.payload.error"),
        "answered before": ("output.valid.eq(answered & requester.valid)", "output.valid.eq(requester.valid)"),
    }
)
def test_memory_port_finds(line: str, bug: str) -> None:
    only = RequestKind.WRITE if "writes" in line else None  # one kind makes a queue too full sooner
    with pytest.raises(Counterexample):
        prove(port(mutated(MemoryPort, line, bug), only), 11, induction=False)
