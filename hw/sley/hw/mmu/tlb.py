"""The translations that a node has seen last."""

from functools import reduce
from operator import or_

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.pages import CONTEXT_BITS, PAGE_BITS, TABLE_BITS
from sley.hw.noc.messages import walk_answer

Invalidation = data.StructLayout({"valid": 1, "context": CONTEXT_BITS, "contents": 1})
"""Told to every translator and every core, for one cycle: forget the translations of ``context``; with ``contents``,
also that local memories hold its data."""

ENTRY = data.StructLayout(
    {
        "context": CONTEXT_BITS,
        "upper": 32 - PAGE_BITS - TABLE_BITS,
        "lower": TABLE_BITS,
        "access": 3,
        "large": 1,
        "difference": 32 - PAGE_BITS,
    }
)
"""A translation that is held: of which page, what is allowed, and in which bits the page's address differs."""


class Tlb(wiring.Component):
    """A fully associative translation look-aside buffer over pages of both sizes, replaced round robin.

    Parameters
    ----------
    entries : int
        Translations held, at least 1.

    Members
    -------
    context : In(CONTEXT_BITS), address : In(32), access : In(3), valid : In(1)
        What is looked up while ``valid``, for an access: a bit each to read, write and execute.
    hit : Out(1), allowed : Out(1)
        Combinational; meaningless while not ``valid``.
    page : Out(32 - PAGE_BITS)
        Combinational; that of ``address`` itself without a hit and while not ``valid``.
    fill : In(1), answer : In(walk_answer)
        Enter the answer for what is looked up, which must not hit.
    invalidate : In(Invalidation)
        Forget a context, also the entry that is filled in this cycle.

    Raises
    ------
    ValueError
        If ``entries`` is below 1.

    Cost
    ----
    49 flip-flops and a 25-bit comparator per entry.
    """

    context: Signal
    address: Signal
    access: Signal
    valid: Signal
    hit: Signal
    allowed: Signal
    page: Signal
    fill: Signal
    answer: data.View
    invalidate: data.View

    def __init__(self, entries: int) -> None:
        if entries < 1:
            raise ValueError(f"entries is {entries}; it must be at least 1")
        self._entries = entries
        super().__init__(
            {
                "context": In(CONTEXT_BITS),
                "address": In(32),
                "access": In(3),
                "valid": In(1),
                "hit": Out(1),
                "allowed": Out(1),
                "page": Out(32 - PAGE_BITS),
                "fill": In(1),
                "answer": In(walk_answer),
                "invalidate": In(Invalidation),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        upper, lower = self.address[PAGE_BITS + TABLE_BITS :], self.address[PAGE_BITS:][:TABLE_BITS]
        victim = Signal(range(self._entries))
        with m.If(self.fill):
            m.d.sync += victim.eq(Mux(victim == self._entries - 1, 0, victim + 1))
        # An entry holds in which bits the page differs from that of the address: without a match, in none.
        answer = self.answer
        difference = answer.page ^ self.address[PAGE_BITS:]
        filled = Signal(ENTRY)
        m.d.comb += [
            filled.context.eq(self.context),
            filled.upper.eq(upper),
            filled.lower.eq(lower),
            filled.access.eq(Cat(answer.read, answer.write, answer.execute)),
            filled.large.eq(answer.large),
            filled.difference.eq(Cat(Mux(answer.large, 0, difference[:TABLE_BITS]), difference[TABLE_BITS:])),
        ]
        matches, allowed, differences = [], [], []
        for k in range(self._entries):
            valid = Signal(name=f"valid_{k}")
            entry = Signal(ENTRY, name=f"entry_{k}", reset_less=True)
            match = Signal(name=f"match_{k}")
            # What a large page needs not comes in parts that are a LUT each with it, one of them with ``valid`` too: so
            # all are three LUTs deep.
            first, second = (entry.lower[part] == lower[part] for part in (slice(6), slice(6, None)))
            parts = Cat(entry.large | first, (entry.large & valid) | (second & valid))
            m.d.comb += match.eq((entry.context == self.context) & (entry.upper == upper) & parts.all())
            matches.append(match)
            allowed.append(match & (entry.access & self.access).any())
            differences.append(entry.difference & match.replicate(len(self.page)))
            with m.If(self.fill & (victim == k)):
                m.d.sync += [valid.eq(~self._forgets(self.context)), entry.eq(filled)]
            with m.Elif(self._forgets(entry.context)):
                m.d.sync += valid.eq(0)
        # ``valid`` joins where a LUT has an input left: behind six entries.
        sixes = [reduce(or_, differences[k : k + 6]) for k in range(0, self._entries, 6)]
        differs = reduce(or_, [six & self.valid.replicate(len(self.page)) for six in sixes])
        m.d.comb += [
            self.hit.eq(Cat(matches).any()),
            self.allowed.eq(Cat(allowed).any()),
            self.page.eq(self.address[PAGE_BITS:] ^ differs),
        ]
        return m

    def _forgets(self, context: Value) -> Value:
        return self.invalidate.valid & (self.invalidate.context == context)
