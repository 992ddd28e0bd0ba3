"""The walker: what it answers about a page is what the tables say."""

from typing import Any

import pytest
from amaranth.hdl import Array, Assert, Assume, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from sley.abi.config import preset
from sley.abi.network import AccessError
from sley.abi.pages import PAGE_BITS, PAGE_ENTRY, TABLE_BITS, AddressMode
from sley.hw.elaboration.layouts import struct
from sley.hw.mmu.walker import Walker
from sley.hw.noc.messages import request_flit, walk_answer
from sley.hw.testing.fifo_facts import fifo_facts
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

CONFIG = preset("nano").replace(contexts=2, addr_bits=28)
QUEUED = 1 + CONFIG.cores
ENTRY = data.StructLayout({"word": 32, "lost": 1})


class Walked(Property):
    """An answer goes to who asked, with its tag, after the entries of the tables that it needs were read, each once:
    the entry of the upper table at the root of the context, and that of the lower table to which it points. It says
    what they say; ``valid`` is low if a table could not be read, an entry is absent, has a reserved bit or points
    beyond the chip's addresses, a large page is not aligned, or the context is OFF or does not exist. A PHYSICAL
    context maps all with all rights.

    Assumed: one WALK at a time (others wait in a ``StreamFIFO``), memory answers what was asked, roots do not change.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        roots = [self.constant(32, f"root{k}") for k in range(CONFIG.contexts)]
        self.free_inputs(m, dut)
        for k, root in enumerate(roots):
            m.d.comb += Assume(Value.cast(dut.roots[k].root) == root)
        i, request, response, o = dut.i, dut.request, dut.response, dut.o
        entries = [data.View(ENTRY, self.constant(33, f"entry{k}")) for k in range(2)]
        word = [data.View(struct(PAGE_ENTRY), entry.word) for entry in entries]

        busy, asked, answered = Signal(), Signal(2), Signal(2)
        head = Signal(i.payload.payload.head.shape())
        m.d.comb += Assume(~(i.valid & busy))
        with m.If(i.valid & i.ready):
            m.d.sync += [busy.eq(1), head.eq(i.payload.payload.head), asked.eq(0), answered.eq(0)]

        # Memory: one answer for each request, the entry that the solver chose.
        waits = asked != answered
        entry = data.View(ENTRY, Mux(answered == 0, Value.cast(entries[0]), Value.cast(entries[1])))
        m.d.comb += [
            Assume(~response.valid | waits),
            Assume(~response.valid | ((response.payload.error != AccessError.NONE) == entry.lost)),
            Assume(~response.valid | (response.payload.data == entry.word)),
        ]
        m.d.sync += [asked.eq(asked + (request.valid & request.ready)), answered.eq(answered + response.valid)]
        with m.If(i.valid & i.ready):
            m.d.sync += [asked.eq(0), answered.eq(0)]

        # What the tables say.
        mode, table = Signal(2), Signal(20)
        with m.If(head.context < CONFIG.contexts):
            m.d.comb += [mode.eq(Array(roots)[head.context][:2]), table.eq(Array(roots)[head.context][PAGE_BITS:])]
        upper, lower = head.addr[PAGE_BITS + TABLE_BITS :], head.addr[PAGE_BITS:][:TABLE_BITS]
        sound = [self.sound(word[k], entries[k]) for k in range(2)]
        leaf = word[0].read | word[0].write | word[0].execute
        paged, second = mode == AddressMode.PAGED, Signal()
        m.d.comb += second.eq(sound[0] & ~leaf)
        expected = Signal(walk_answer)
        with m.If(mode == AddressMode.PHYSICAL):
            m.d.comb += [expected[name].eq(1) for name in ("valid", "read", "write", "execute", "large")]
            m.d.comb += expected.page.eq(upper << TABLE_BITS)
        with m.Elif(paged & second):
            m.d.comb += [expected.valid.eq(sound[1]), expected.page.eq(word[1].page)]
            m.d.comb += [expected[name].eq(word[1][name]) for name in ("read", "write", "execute")]
        with m.Elif(paged):
            m.d.comb += [expected.valid.eq(sound[0] & ~word[0].page[:TABLE_BITS].any()), expected.large.eq(1)]
            m.d.comb += expected.page.eq(word[0].page)
            m.d.comb += [expected[name].eq(word[0][name]) for name in ("read", "write", "execute")]

        where = Cat(Const(0, 2), Mux(asked == 0, upper, lower), Mux(asked == 0, table, word[0].page))
        reply, needs = Signal(walk_answer), Mux(paged, 1 + second, 0)
        m.d.comb += [
            reply.eq(o.payload.payload.data),
            Assert(~request.valid | (busy & ~waits & (asked < needs))),
            Assert(~request.valid | (request.payload.payload.head.addr == where)),
            Assert(~o.valid | (busy & ~waits & (asked == needs))),
            Assert(~o.valid | (reply.valid == expected.valid)),
            Assert(~o.valid | ~reply.valid | (Value.cast(reply) == Value.cast(expected))),
            Assert(~o.valid | (o.payload.payload.walk & o.payload.last & (o.payload.payload.tag == head.tag))),
            Assert(~o.valid | (Value.cast(o.payload.dest) == Value.cast(head.src))),
        ]
        with m.If(o.valid & o.ready):
            m.d.sync += busy.eq(0)

        # Lemmas: the walk that is asked for, and how far it is in each state.
        flit = data.View(request_flit(CONFIG), Value.cast(inner["waiting.o__payload"]))
        state, lower_now, root = inner["fsm_state"], inner["lower"], Value.cast(inner["root"])
        held = data.View(walk_answer, Value.cast(inner["answer"]))
        where_now = Mux(lower_now, word[0].page, table)
        looked = Mux(lower_now, Value.cast(entries[1]), Value.cast(entries[0]))
        facts = {
            "IDLE": (asked == answered) & (~busy | (asked == 0)),
            "ROOT": (asked == 0) & (answered == 0) & (root[:2] == mode) & (root[PAGE_BITS:] == table),
            "ASK": paged & ~waits & (asked == lower_now) & (~lower_now | second) & (inner["table"] == where_now),
            "ANSWER": ~waits & (asked == needs) & (held.valid == expected.valid),
            "RECEIVE": paged & waits & (answered == lower_now) & (asked == answered + 1) & (~lower_now | second),
            "LOOK": paged & ~waits & (asked == lower_now + 1) & (~lower_now | second),
        }
        for number, fact in enumerate(facts.values()):  # as the states come in the source
            m.d.comb += Assert((state != number) | fact)
        m.d.comb += [
            Assert(state < len(facts)),
            Assert(inner["waiting.level"] == busy),
            *(Assert(fact) for fact in fifo_facts(inner, QUEUED, "waiting.")),
            Assert((state == 0) | inner["waiting.o__valid"]),
            Assert(~inner["waiting.o__valid"] | (Value.cast(flit.payload.head) == Value.cast(head))),
            Assert((state != 5) | (Cat(inner["word"], inner["lost"]) == looked)),
            Assert((state != 3) | ~held.valid | (Value.cast(held) == Value.cast(expected))),
        ]
        return m

    def sound(self, word: Any, entry: Any) -> Any:
        beyond = (word.page << PAGE_BITS)[CONFIG.addr_bits :].any()
        return word.valid & ~entry.lost & ~beyond & ((entry.word & ~PAGE_ENTRY.mask & 0xFFFFFFFF) == 0)


def test_walker() -> None:
    prove(Walked(Walker(CONFIG)), 4)


@planted(
    {
        "off": ("answer.valid.eq(root.mode == AddressMode.PHYSICAL)", "answer.valid.eq(1)"),
        "reserved bits": (
            "sound_entry = word.valid & ~reserved & ~lost & inside",
            "sound_entry = word.valid & ~lost & inside",
        ),
        "lost": (
            "sound_entry = word.valid & ~reserved & ~lost & inside",
            "sound_entry = word.valid & ~reserved & inside",
        ),
        "beyond": (
            "sound_entry = word.valid & ~reserved & ~lost & inside",
            "sound_entry = word.valid & ~reserved & ~lost",
        ),
        "unaligned": ("answer.valid.eq(sound_entry & (lower | aligned))", "answer.valid.eq(sound_entry)"),
        "leaf walked": ("with m.If(~lower & sound_entry & ~leaf):", "with m.If(~lower & sound_entry):"),
        "upper index twice": ("[lower.eq(1), table.eq(word.page)]", "table.eq(word.page)"),
        "table forgotten": ("[table.eq(root.page), lower.eq(0)]", "table.eq(root.page)"),
        "size": ("answer.large.eq(~lower)", "answer.large.eq(lower)"),
    }
)
def test_walker_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Walked(mutated(Walker, line, bug)(CONFIG)), 14, induction=False)
