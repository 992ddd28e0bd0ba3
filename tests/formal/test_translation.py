"""Address translation: what the TLB answers, and what a translator does to the packets that pass it."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from sley.abi.config import preset
from sley.abi.network import AccessError, RequestKind
from sley.abi.pages import CONTEXT_BITS, PAGE_BITS, TABLE_BITS
from sley.hw.mmu.tlb import ENTRY, Tlb
from sley.hw.mmu.translate import Translate
from sley.hw.noc.messages import request_flit, walk_answer
from sley.hw.testing.in_order import InOrder
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

CONFIG = preset("nano").replace(tlb_entries=2)


class Mapped(Property):
    """One page of one context, both chosen by the solver: what was answered last about it since it was forgotten.

    Assumed: between two invalidations of a context, an entry of its upper table does not change between large and
    small pages.
    """

    def page(self, m: Module) -> None:
        self.context = self.constant(CONTEXT_BITS, "the_context")
        self.upper, self.lower = self.constant(10, "the_upper"), self.constant(TABLE_BITS, "the_lower")
        self.known, self.value = Signal(), Signal(walk_answer)
        self.sized, self.large = Signal(), Signal()

    def here(self, context: Any, address: Any) -> Any:
        """An access to this page."""
        return (context == self.context) & (address[PAGE_BITS:] == Cat(self.lower, self.upper))

    def answered(self, m: Module, happens: Any, context: Any, address: Any, answer: Any, invalidate: Any) -> None:
        near = happens & (context == self.context) & (address[PAGE_BITS + TABLE_BITS :] == self.upper)
        m.d.comb += Assume(~(near & self.sized) | (answer.large == self.large))
        with m.If(near):
            m.d.sync += [self.sized.eq(1), self.large.eq(answer.large)]
        with m.If(near & (answer.large | (address[PAGE_BITS:][:TABLE_BITS] == self.lower))):
            m.d.sync += [self.known.eq(1), self.value.eq(answer)]
        with m.If(invalidate.valid & (invalidate.context == self.context)):
            m.d.sync += [self.known.eq(0), self.sized.eq(0)]

    def covers(self, valid: Any, entry: Any) -> Any:
        near = valid & (entry.context == self.context) & (entry.upper == self.upper)
        return near & (entry.large | (entry.lower == self.lower))

    def entries(self, m: Module, inner: Any, path: str, count: int) -> list[Any]:
        """Lemma: what each entry holds of this page; whether it holds it."""
        holds, value = [], self.value
        differs = value.page ^ Cat(self.lower, self.upper)
        held = Cat(value.read, value.write, value.execute, value.large)
        held = Cat(held, Mux(value.large, 0, differs[:TABLE_BITS]), differs[TABLE_BITS:])
        for k in range(count):
            entry, valid = data.View(ENTRY, inner[f"{path}entry_{k}"]), inner[f"{path}valid_{k}"]
            near = valid & (entry.context == self.context) & (entry.upper == self.upper)
            holds.append(self.covers(valid, entry))
            m.d.comb += [
                Assert(~near | (self.sized & (entry.large == self.large))),
                Assert(~holds[-1] | (self.known & (Cat(entry.access, entry.large, entry.difference) == held))),
            ]
        return holds


class Remembers(Mapped):
    """A hit is on a page of which the context was not forgotten since, and finds what was filled last for it; so does
    every lookup until as many others were filled as there are entries. Assumed: what is filled is looked up and does
    not hit."""

    def __init__(self, dut: Any, entries: int) -> None:
        super().__init__(dut)
        self.count = entries

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut, n = self.dut, self.count
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        self.page(m)
        m.d.comb += Assume(~dut.fill | (dut.valid & ~dut.hit))
        self.answered(m, dut.fill, dut.context, dut.address, dut.answer, dut.invalidate)
        covers = dut.fill & (dut.context == self.context) & (dut.address[PAGE_BITS + TABLE_BITS :] == self.upper)
        covers &= dut.answer.large | (dut.address[PAGE_BITS:][:TABLE_BITS] == self.lower)
        fills = Signal(range(n + 1))  # others, since
        with m.If(covers):
            m.d.sync += fills.eq(0)
        with m.Elif(dut.fill & (fills < n)):
            m.d.sync += fills.eq(fills + 1)
        looked, lower = self.here(dut.context, dut.address), dut.address[PAGE_BITS:][:TABLE_BITS]
        with m.If(looked & dut.valid & dut.hit):
            permitted = Cat(self.value.read, self.value.write, self.value.execute)
            m.d.comb += [
                Assert(self.known),
                Assert(
                    dut.page
                    == Cat(Mux(self.value.large, lower, self.value.page[:TABLE_BITS]), self.value.page[TABLE_BITS:])
                ),
                Assert(dut.allowed == (permitted & dut.access).any()),
            ]
        with m.If(looked & dut.valid & self.known & (fills < n)):
            m.d.comb += Assert(dut.hit)
        with m.If(~dut.hit | ~dut.valid):
            m.d.comb += Assert(dut.page == dut.address[PAGE_BITS:])

        holds = self.entries(m, inner, "", n)
        victim = inner["victim"] if n > 1 else 0
        m.d.comb += Assert(victim < n) if n > 1 else []
        for v in range(n):
            for age in range(n):
                m.d.comb += Assert(~self.known | (fills != age) | (victim != v) | holds[(v - 1 - age) % n])
        return m


@pytest.mark.parametrize("entries", [1, 2, 3, 4])
def test_tlb(entries: int) -> None:
    prove(Remembers(Tlb(entries), entries), 2)


@planted(
    {
        "a bit left out": ("(slice(6), slice(6, None))", "(slice(5), slice(6, None))"),
        "context": ("(entry.context == self.context) & ", ""),
        "upper": ("& (entry.upper == upper)", ""),
        "first of a large one": ("entry.large | first", "first"),
        "first of a small one": ("entry.large | first", "1"),
        "second of a large one": ("(entry.large & valid) | (second & valid)", "second & valid"),
        "second of a small one": ("(second & valid)", "valid"),
        "large and not valid": ("(entry.large & valid)", "entry.large"),
        "small and not valid": ("(second & valid)", "second"),
        "filled now": ("valid.eq(~self._forgets(self.context))", "valid.eq(1)"),
        "not forgotten": ("m.d.sync += valid.eq(0)", "pass"),
        "allowed": ("match & (entry.access", "(entry.access"),
        "page of another": ("entry.difference & match.replicate(len(self.page))", "entry.difference"),
        "page of a large one": ("Mux(answer.large, 0, difference[:TABLE_BITS])", "difference[:TABLE_BITS]"),
        "nothing to look up": ("six & self.valid.replicate(len(self.page))", "six"),
        "all forgotten": ("self.invalidate.valid & (self.invalidate.context == context)", "self.invalidate.valid"),
        "one victim": ("Mux(victim == self._entries - 1, 0, victim + 1)", "0"),
    }
)
def test_tlb_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Remembers(mutated(Tlb, line, bug)(2), 2), 6)


class Translated(Mapped, InOrder):
    """Flits leave in order, none is lost, none is added but WALK packets. A flit that is not the head of a READ or
    WRITE is as it was. A head goes on with the address of its page as the last walk since the last invalidation found
    it; with PERMISSION, if that does not allow it; with PAGE, if that walk, made for this head, found nothing.

    Assumed of the neighbours: what is offered stays; a READ or WRITE comes without an error; a walk is answered once,
    after it has left. Nothing else.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        self.page(m)
        shape = request_flit(CONFIG)
        i, o = dut.i, dut.o
        spare_valid, spare = inner["buffer.spare_valid"], data.View(shape, Value.cast(inner["buffer.spare"]))

        # The input stays.
        waits, held = Signal(), Signal(shape, reset_less=True)
        m.d.sync += [waits.eq(i.valid & ~i.ready), held.eq(i.payload)]
        m.d.comb += Assume(~waits | (i.valid & (Value.cast(i.payload) == Value.cast(held))))

        # What each flit is, at both ends.
        behind = Signal()  # the next flit in is not a head
        left = Signal()  # the next flit out is not a head
        come = i.valid & i.ready
        head, first = i.payload.payload.head, o.payload.payload.head
        with m.If(come):
            m.d.sync += behind.eq(~i.payload.last)
        m.d.comb += Assume(behind | ~i.valid | (head.kind != RequestKind.WALK))
        walks = o.valid & ~left & (first.kind == RequestKind.WALK)
        with m.If(o.valid & o.ready):
            m.d.sync += left.eq(~o.payload.last)
        go = o.valid & o.ready & ~walks

        # Walks on their way.
        outstanding, fresh = Signal(), Signal()
        asked_context, asked_address = Signal(CONTEXT_BITS, reset_less=True), Signal(32, reset_less=True)
        forgotten = dut.invalidate.valid & (dut.invalidate.context == self.context)
        response, answer = dut.response_i, Signal(walk_answer)
        answers = response.valid & response.payload.payload.walk
        m.d.comb += [answer.eq(response.payload.payload.data), Assume(~answers | outstanding)]
        with m.If(answers):
            m.d.sync += outstanding.eq(0)
        with m.If(forgotten):
            m.d.sync += fresh.eq(0)
        with m.If(walks & o.ready):
            m.d.sync += [outstanding.eq(1), fresh.eq(1), asked_context.eq(first.context), asked_address.eq(first.addr)]
            m.d.comb += Assert(~outstanding | answers)
        self.answered(m, answers & fresh & answer.valid, asked_context, asked_address, answer, dut.invalidate)
        denied = Signal()
        with m.If(answers & fresh & self.here(asked_context, asked_address)):
            m.d.sync += denied.eq(~answer.valid)
            with m.If(~answer.valid):
                m.d.sync += self.known.eq(0)
        with m.If(come | forgotten):
            m.d.sync += denied.eq(0)

        # What has to become of a flit.
        translates = ~behind & ((head.kind == RequestKind.READ) | (head.kind == RequestKind.WRITE))
        m.d.comb += Assume(~(i.valid & translates) | (head.error == AccessError.NONE))
        mine = translates & self.here(head.context, head.addr)
        needs = Mux(head.kind == RequestKind.WRITE, self.value.write, self.value.read)
        needs = Mux((head.kind == RequestKind.READ) & head.execute, self.value.execute, needs)
        becomes = Signal(shape)
        m.d.comb += becomes.eq(i.payload)
        with m.If(mine):
            with m.If(denied):
                m.d.comb += becomes.payload.head.error.eq(AccessError.PAGE)
            with m.Elif(self.value.large):
                m.d.comb += becomes.payload.head.addr.eq(Cat(head.addr[:22], self.value.page[TABLE_BITS:]))
            with m.Else():
                m.d.comb += becomes.payload.head.addr.eq(Cat(head.addr[:PAGE_BITS], self.value.page))
            with m.If(~denied & ~needs):
                m.d.comb += becomes.payload.head.error.eq(AccessError.PERMISSION)
            m.d.comb += Assert(~come | denied | self.known)
        count = Signal(2)
        m.d.sync += count.eq(count + come - go)
        chosen, ahead, item = self.follow(m, count, come & (mine | ~translates), becomes, go, o.payload)

        # Answers to others pass, and nothing waits but for a walk or for room.
        m.d.comb += [
            Assert(dut.response_o.valid == (response.valid & ~response.payload.payload.walk)),
            Assert(Value.cast(dut.response_o.payload) == Value.cast(response.payload)),
            Assert(~dut.response_o.valid | (response.ready == dut.response_o.ready)),
            Assert(~answers | response.ready),
            Assert(~i.valid | i.ready | spare_valid | inner["walking"] | (inner["tlb.hit"] == 0)),
        ]

        # Lemmas. The two flits in the buffer, in their order, up to the input.
        follows = Mux(o.valid, ~o.payload.last, left)
        second = spare.payload.head
        spare_walks = spare_valid & ~follows & (second.kind == RequestKind.WALK)
        asked, stale, absent = inner["walking"], inner["stale"], inner["absent"]
        waiting = held.payload.head
        translating = waits & ~behind & ((waiting.kind == RequestKind.READ) | (waiting.kind == RequestKind.WRITE))
        m.d.comb += [
            Assert(o.valid | ~spare_valid),
            Assert(behind == Mux(spare_valid, ~spare.last, follows)),
            Assert(behind == inner["inside"]),
            Assert(count == (o.valid & ~walks) + (spare_valid & ~spare_walks)),
            Assert(asked == walks + spare_walks + outstanding),
            Assert(~(asked | absent) | translating),
            Assert(~(asked & absent)),
            Assert(~(asked & inner["tlb.hit"])),
            Assert(~stale | asked),
            Assert(~(walks & spare_valid)),
            # So a head whose page is absent goes on in the next cycle, before an invalidation can make that old.
            Assert(~(outstanding | absent) | ~o.valid),
            Assert(~(outstanding & ~stale & (asked_context == self.context)) | fresh),
            Assert(~(absent & self.here(waiting.context, waiting.addr)) | denied),
            Assert(~denied | (translating & self.here(waiting.context, waiting.addr) & ~inner["tlb.hit"])),
        ]
        for there, context, address in (
            (walks & o.payload.last, first.context, first.addr),
            (spare_walks & spare.last, second.context, second.addr),
            (outstanding, asked_context, asked_address),
        ):
            m.d.comb += Assert(~there | ((context == waiting.context) & (address == waiting.addr)))
        m.d.comb += [Assert(~walks | o.payload.last), Assert(~spare_walks | spare.last)]
        self.entries(m, inner, "tlb.", CONFIG.tlb_entries)
        front, back = (Value.cast(flit) for flit in (o.payload, spare))
        with m.If(chosen):
            m.d.comb += Assert(Mux((ahead == 0) & ~walks, front, back) == item)
        return m


def test_translate() -> None:
    prove(Translated(Translate(CONFIG)), 2)


@planted(
    {
        "head forgotten": ("inside.eq(~self.i.payload.last)", "inside.eq(0)"),
        "stale used": ("& mapping.valid & ~stale)", "& mapping.valid)"),
        "stale absence": ("absent.eq(~mapping.valid & ~stale & ~forgets)", "absent.eq(~mapping.valid & ~stale)"),
        "data translated": ("~inside & ((head.kind", "((head.kind"),
        "write": ("Cat(~writes & ~head.execute, writes,", "Cat(writes | ~head.execute, 0,"),
        "execute": ("Cat(~writes & ~head.execute,", "Cat(~writes,"),
        "asked twice": ("buffer.i.valid.eq(self.i.valid & ~walking)", "buffer.i.valid.eq(self.i.valid)"),
        "dropped": ("self.i.ready.eq(buffer.i.ready)", "self.i.ready.eq(1)"),
        "absent for ever": ("m.d.sync += absent.eq(0)", "pass"),
        "data looked up": ("tlb.valid.eq(translates)", "tlb.valid.eq(1)"),
        "data refused": ("Mux(translates & ~tlb.allowed", "Mux(~tlb.allowed"),
        "absence is permission": ("Mux(absent, AccessError.PAGE, AccessError.PERMISSION)", "AccessError.PERMISSION"),
    }
)
def test_translate_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Translated(mutated(Translate, line, bug)(CONFIG)), 10)
