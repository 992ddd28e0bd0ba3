"""All that ask for memory: their requests are what the memory port relies on, and what it answers is always taken."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from sley.abi.config import preset
from sley.abi.network import RequestKind, Tag
from sley.abi.packets import PACKET_BYTES
from sley.hw.command.fetch import PacketFetch
from sley.hw.command.words import LINE_BITS, LINE_BYTES, WordAccess, WordCommand
from sley.hw.memory.reader import MemoryReader
from sley.hw.memory.span import span_layout
from sley.hw.memory.writer import MemoryWriter
from sley.hw.mmu.walker import Walker
from sley.hw.noc.messages import request_flit
from sley.hw.testing.fifo_facts import fifo_facts
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

CONFIG = preset("nano").replace(max_burst=4)
PLACE = {"tag": Tag.LOAD, "source": (2, 0)}


class Asks(Property):
    """Requests are whole READ and WRITE packets: aligned to the bus, within ``max_burst`` beats from a multiple of
    these (so within 4 KiB), a WRITE with as many beats as its head says. What is offered stays until it is taken. What
    memory answers is taken at once.

    Assumed: memory answers what was asked, a beat for each of a read and one for a write; ``more`` of each block.
    """

    def __init__(self, dut: Any, more: Callable[[Property, Module, Any, Any], None] = lambda *_: None) -> None:
        super().__init__(dut)
        self.more = more

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        o, head = dut.request, dut.request.payload.payload.head
        waits, offered = Signal(), Signal(request_flit(CONFIG))
        m.d.sync += [waits.eq(o.valid & ~o.ready), offered.eq(o.payload)]
        self.data, self.left = Signal(), Signal(8)  # the next flit is data, and how many follow it
        # Behind a head nobody looks at what is no data.
        same = (Value.cast(o.payload.payload.beat) == Value.cast(offered.payload.beat)) & (
            Cat(o.payload.dest, o.payload.last) == Cat(offered.dest, offered.last)
        )
        reads, writes = head.kind == RequestKind.READ, head.kind == RequestKind.WRITE
        lanes = CONFIG.bus_bytes
        position = head.addr[lanes.bit_length() - 1 :][: CONFIG.max_burst.bit_length() - 1]
        goes = o.valid & o.ready
        m.d.comb += [
            Assert(~waits | (o.valid & ((Value.cast(o.payload) == Value.cast(offered)) | (self.data & same)))),
            Assert(~o.valid | self.data | reads | writes),
            Assert(~o.valid | self.data | ((head.addr % lanes == 0) & (position + head.beats < CONFIG.max_burst))),
            Assert(~o.valid | self.data | (o.payload.last == reads)),
            Assert(~o.valid | ~self.data | (o.payload.last == (self.left == 0))),
            Assert(~dut.response.valid | dut.response.ready),
        ]
        with m.If(goes):
            m.d.sync += [self.left.eq(self.left - 1), self.data.eq(self.data & (self.left != 0))]
            with m.If(~self.data):
                m.d.sync += [self.left.eq(head.beats), self.data.eq(writes)]

        self.owed = Signal(12)  # answers
        asked = Signal(9)
        m.d.comb += asked.eq(Mux(goes & ~self.data & reads, head.beats + 1, goes & Mux(self.data, o.payload.last, 0)))
        m.d.sync += self.owed.eq(self.owed + asked - dut.response.valid)
        m.d.comb += Assume(~dut.response.valid | (self.owed != 0))
        self.more(self, m, dut, inner)
        return m


LANES, PLACES = CONFIG.bus_bytes.bit_length() - 1, CONFIG.max_burst.bit_length() - 1


def reader(component: Any = MemoryReader) -> Asks:
    """A run that joins begins where the one before it ended, if that says so; the first one after a reset does not."""

    def more(p: Any, m: Module, dut: Any, inner: Any) -> None:
        run = dut.i.payload
        begun, promised, end = Signal(), Signal(), Signal(32)
        with m.If(dut.i.valid & dut.i.ready):
            m.d.sync += [begun.eq(1), promised.eq(run.more), end.eq(run.addr + run.bytes)]
        window, position, windows, last = (inner[name] for name in ("window", "position", "windows", "last"))
        final_beat = (end - 1)[LANES:32]
        m.d.comb += Assume(~dut.i.valid | (run.bytes != 0))
        m.d.comb += Assume(~dut.i.valid | ~run.joins | (begun & (~promised | (run.addr == end))))
        m.d.comb += [
            Assert(~begun | (inner["more"] == promised)),
            Assert(~begun | (inner["shares"] == (promised & (end[:LANES] != 0)))),
            Assert(~inner["active"] | begun),
            Assert(~inner["active"] | ((Cat(last, window) + (windows << PLACES))[: 32 - LANES] == final_beat)),
            Assert(~inner["active"] | (windows != 0) | (last >= position)),
            Assert(~begun | (last == final_beat[:PLACES])),
            Assert(~begun | inner["active"] | (Cat(last, window)[: 32 - LANES] == final_beat)),
            Assert(~p.data),
            Assert(inner["free"] + p.owed + inner["arrived.level"] == 8),
            *(Assert(fact) for fact in fifo_facts(inner, 8, "arrived.")),
        ]

    return Asks(component(CONFIG, **PLACE, depth=2, beats=8), more)


def writer(component: Any = MemoryWriter) -> Asks:
    """What is assumed of runs, and of those that continue each other, is assumed where they leave their queue."""

    def more(p: Any, m: Module, dut: Any, inner: Any) -> None:
        window, position, windows, last = (inner[name] for name in ("window", "position", "windows", "last"))
        layout = span_layout(CONFIG)
        run = data.View(
            data.StructLayout({name: layout[name].shape for name in ("window", "position", "windows", "last")}),
            Value.cast(inner["runs.o__payload"])[: 32 - LANES + layout["windows"].width + PLACES],
        )
        follows = Cat(last, window) + ~inner["shared"]
        m.d.comb += [
            Assume(~inner["runs.o__valid"] | (run.windows != 0) | (run.last >= run.position)),
            Assume(~inner["runs.o__valid"] | ~run.windows.all()),
            Assume(
                ~(inner["runs.o__valid"] & inner["active"] & inner["more"])
                | (windows != 0)
                | (Cat(run.position, run.window) == follows[: 32 - LANES])
            ),
            Assert(~inner["active"] | (inner["final"] == (windows == 0))),
            Assert(~inner["active"] | (inner["rest"] == (last - position)[:PLACES])),
            Assert(~inner["active"] | (windows != 0) | (last >= position)),
        ]
        m.d.comb += [
            Assert(inner["in_data"] == p.data),
            Assert(~p.data | (inner["count"] == p.left)),
            Assert(inner["outstanding"] + inner["head_sent"] == p.owed + p.data),
            Assert(inner["unacknowledged0"] + inner["unacknowledged1"] == inner["outstanding"]),
            Assert(dut.pending.any() | ((p.owed == 0) & ~p.data)),
            *(Assert(fact) for fact in fifo_facts(inner, CONFIG.max_burst + 2, "beats.")),
        ]

    return Asks(component(CONFIG, **PLACE), more)


def words(component: Any = WordAccess) -> Asks:
    """Commands are of 4 to 16 bytes, aligned to their size; no read comes while an answer is on its way."""

    def more(p: Any, m: Module, dut: Any, inner: Any) -> None:
        command = dut.i.payload
        aligned = (command.addr & ((1 << command.size) - 1)) == 0
        m.d.comb += Assume(~dut.i.valid | ((command.size >= 2) & (command.size <= LINE_BITS) & aligned))
        m.d.comb += Assume(~dut.i.valid | command.write | (p.owed == 0))
        unsent, position = inner["unsent"], inner["position"]
        held = data.View(WordCommand, Value.cast(inner["command"]))
        m.d.comb += [
            Assert(inner["body"] == p.data),
            Assert(~p.data | (unsent == p.left + 1)),
            Assert((unsent == 0) | (position + unsent <= LINE_BYTES // CONFIG.bus_bytes)),
            Assert(p.data | (unsent == 0) | ((unsent & (unsent - 1)) == 0)),
            Assert(inner["outstanding"] + inner["outstanding_before"] == p.owed + Mux(held.write, unsent != 0, unsent)),
            Assert((inner["outstanding_before"] == 0) | (held.write & (inner["outstanding"] != 0))),
            Assert(~p.data | held.write),
        ]

    return Asks(component(CONFIG, **PLACE), more)


def fetch(component: Any = PacketFetch) -> Asks:
    def more(p: Any, m: Module, dut: Any, inner: Any) -> None:
        beats = PACKET_BYTES // CONFIG.bus_bytes
        asking = inner["fsm_state"] == 1
        m.d.comb += [
            Assert(~p.data),
            Assert(inner["requested"] % CONFIG.max_burst == 0),
            Assert(~asking | ((inner["left"] != 0) & (inner["requested"] <= beats))),
            Assert(Mux(asking, inner["requesting"] == (inner["requested"] != beats), ~dut.request.valid)),
            Assert(p.owed + Mux(asking, beats, 0) == Mux(asking, inner["left"] + inner["requested"], 0)),
        ]

    return Asks(component(CONFIG, **PLACE), more)


def walker(component: Any = Walker) -> Asks:
    def more(p: Any, m: Module, dut: Any, inner: Any) -> None:
        m.d.comb += [Assert(~p.data), Assert((inner["fsm_state"] == 0) | inner["waiting.o__valid"])]

    return Asks(component(CONFIG), more)


@pytest.mark.parametrize("asks", [reader, writer, words, fetch, walker])
def test_asks(asks: Callable[[], Asks]) -> None:
    prove(asks(), 2)


@planted(
    {
        "length of words": (words, WordAccess, "beats=together - 1", "beats=together"),
        "boundary of reads": (
            reader,
            MemoryReader,
            "burst.eq(Mux(final, rest, ~position))",
            "burst.eq(Mux(final, rest, ~0))",
        ),
        "no room": (reader, MemoryReader, "(above > 1)", "(above > 0)"),
        "room counted twice": (
            reader,
            MemoryReader,
            "Cat(returned, counted) + Cat(returned, taken, ",
            "Cat(1, counted) + Cat(1, taken, ",
        ),
        "boundary of writes": (
            writer,
            MemoryWriter,
            "burst.eq(Mux(final, rest, ~position))",
            "burst.eq(Mux(final, rest, ~0))",
        ),
        "length of writes": (writer, MemoryWriter, "count.eq(burst)", "count.eq(burst + 1)"),
        "changed": (writer, MemoryWriter, "active & ~extends & data_complete", "active & data_complete"),
        "answer forgotten": (
            words,
            WordAccess,
            "outstanding_before.eq(outstanding - self.response.valid)",
            "outstanding_before.eq(outstanding)",
        ),
        "whose answer": (writer, MemoryWriter, "self.error_phase.eq(oldest ^ done)", "self.error_phase.eq(oldest)"),
        "end of words": (words, WordAccess, "(unsent & (burst - 1) == 1)", "(unsent & (burst - 1) == 0)"),
        "length of packets": (fetch, PacketFetch, "beats=burst - 1", "beats=beats - 1"),
        "overlap": (fetch, PacketFetch, "requested << exact_log2(config.bus_bytes)", "requested"),
        "entry": (walker, Walker, "addr=entry_address >> bus << bus", "addr=entry_address + 1"),
        "endless": (walker, Walker, "flit.last.eq(1)", "flit.last.eq(0)"),
    },
    ("asks", "component", "line", "bug"),
)
def test_asks_finds(asks: Callable[[Any], Asks], component: Any, line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(asks(mutated(component, line, bug)), 12)
