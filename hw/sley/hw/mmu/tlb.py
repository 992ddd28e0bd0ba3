"""The translations that a node has seen last."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.pages import CONTEXT_BITS, PAGE_BITS, TABLE_BITS
from sley.hw.noc.messages import walk_answer

Invalidation = data.StructLayout({"valid": 1, "context": CONTEXT_BITS, "contents": 1})
"""Told to every translator and every core, for one cycle: forget the translations of ``context``; with ``contents``,
also that local memories hold its data."""


class Tlb(wiring.Component):
    """A fully associative translation look-aside buffer over pages of both sizes, replaced in turn.

    Parameters: ``entries``.
    Members: ``context``, ``address``: what is looked up while ``valid``, for an ``access``: a bit each to read, write
    and execute; ``hit``, ``allowed``, ``page``: combinational; the page is that of ``address`` itself without a hit;
    ``fill``: enter ``answer`` for what is looked up and must not hit; ``invalidate``: forget a context,
    also the entry that is filled in this cycle.
    Cost: 55 flip-flops and a 25-bit comparator per entry.
    """

    context: Signal
    address: Signal
    access: Signal
    valid: Signal
    hit: Signal
    allowed: Signal
    page: Signal
    fill: Signal
    answer: Any
    invalidate: Any

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
        entry = data.StructLayout(
            {"context": CONTEXT_BITS, "upper": len(upper), "lower": TABLE_BITS, "answer": walk_answer}
        )
        victim = Signal(range(self._entries))
        with m.If(self.fill):
            m.d.sync += victim.eq(Mux(victim == self._entries - 1, 0, victim + 1))
        matches, small, allowed, pages = [], [], [], []
        for k in range(self._entries):
            valid = Signal(name=f"valid_{k}")
            held = Signal(entry, name=f"entry_{k}", reset_less=True)
            match = Signal(name=f"match_{k}")
            m.d.comb += match.eq(
                (self.valid & valid)
                & (held.context == self.context)
                & (held.upper == upper)
                & (held.answer.large | (held.lower == lower))
            )
            matches.append(match)
            small.append(match & ~held.answer.large)
            permitted = Cat(held.answer.read, held.answer.write, held.answer.execute) & self.access
            allowed.append(match & permitted.any())
            page = held.answer.page
            pages.append(
                Cat(
                    page[:TABLE_BITS] & small[-1].replicate(TABLE_BITS),
                    page[TABLE_BITS:] & match.replicate(len(upper)),
                )
            )
            with m.If(self.fill & (victim == k)):
                m.d.sync += [
                    valid.eq(~self._forgets(self.context)),
                    held.context.eq(self.context),
                    held.upper.eq(upper),
                    held.lower.eq(lower),
                    held.answer.eq(self.answer),
                ]
            with m.Elif(self._forgets(held.context)):
                m.d.sync += valid.eq(0)
        # Without a match the page is the one that is looked up: found beside those of the entries, not behind them.
        own = Cat(
            lower & ~Cat(small).any().replicate(len(lower)),
            upper & ~Cat(matches).any().replicate(len(upper)),
        )
        m.d.comb += [
            self.hit.eq(Cat(matches).any()),
            self.allowed.eq(Cat(allowed).any()),
            self.page.eq(reduce(or_, pages) | own),
        ]
        return m

    def _forgets(self, context: Any) -> Any:
        return self.invalidate.valid & (self.invalidate.context == context)
