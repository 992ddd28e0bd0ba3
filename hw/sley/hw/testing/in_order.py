"""The property of everything that hands on items."""

from typing import Any

from amaranth.hdl import Assert, Module, Signal, Value

from sley.hw.testing.proof import Property


class InOrder(Property):
    """Items leave as they came: one that the solver chooses leaves unchanged behind exactly those that were inside when
    it came."""

    def follow(
        self, m: Module, inside: Signal, enter: Any, entering: Any, leave: Any, leaving: Any
    ) -> tuple[Signal, Signal, Signal]:
        """``inside`` items are inside; with ``enter`` the item ``entering`` does, with ``leave`` the item ``leaving``.
        Returns whether the chosen item is inside, how many go before it, and the item."""
        entering, leaving = Value.cast(entering), Value.cast(leaving)
        chosen, ahead, item = Signal(), Signal.like(inside), Signal.like(entering, reset_less=True)
        with m.If(~chosen & enter & self.free(1, "choose")):
            m.d.sync += [chosen.eq(1), item.eq(entering), ahead.eq(inside - leave)]
        with m.Elif(chosen & leave):
            m.d.sync += [chosen.eq(ahead != 0), ahead.eq(ahead - 1)]
            with m.If(ahead == 0):
                m.d.comb += Assert(leaving == item)
        m.d.comb += Assert(~chosen | (ahead < inside))
        return chosen, ahead, item
