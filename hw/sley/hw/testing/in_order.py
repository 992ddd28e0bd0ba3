"""The property of everything that hands on items."""

from typing import Any

from amaranth.hdl import Assert, Module, Signal, Value

from sley.hw.testing.proof import Property


class InOrder(Property):
    """Items leave as they came: one that the solver chooses leaves unchanged behind exactly those that were inside when
    it came."""

    def follow(
        self, m: Module, inside: Signal, come: Any, came: Any, go: Any, gone: Any
    ) -> tuple[Signal, Signal, Signal]:
        """``inside`` items are inside; ``come``: ``came`` enters, ``go``: ``gone`` leaves. Whether the chosen item is
        inside, how many go before it, and the item."""
        came, gone = Value.cast(came), Value.cast(gone)
        chosen, ahead, item = Signal(), Signal.like(inside), Signal.like(came, reset_less=True)
        with m.If(~chosen & come & self.free(1, "choose")):
            m.d.sync += [chosen.eq(1), item.eq(came), ahead.eq(inside - go)]
        with m.Elif(chosen & go):
            m.d.sync += [chosen.eq(ahead != 0), ahead.eq(ahead - 1)]
            with m.If(ahead == 0):
                m.d.comb += Assert(gone == item)
        m.d.comb += Assert(~chosen | (ahead < inside))
        return chosen, ahead, item
