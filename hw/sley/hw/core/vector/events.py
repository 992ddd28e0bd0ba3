"""Events that follow rows through the lanes: a bit in a shift register, whose taps are the latencies that a stage may
have."""

from amaranth.hdl import Cat, Const, Module, Signal, Value

Choice = dict[int, Value]
"""Cycles that a stage may take, each with the condition for it; of the conditions one is true."""


def later(m: Module, name: str, event: Value, cycles: Choice, abort: Value, more: int = 0) -> Value:
    """The event as many cycles later as the choice says, and some more; ``abort`` forgets those on their way.

    An event leaves the shift register at its tap: the choice may be another one before it would have come to the end.
    """
    places = {latency + more: chosen for latency, chosen in cycles.items()}
    line = Signal(max(places), name=f"to_{name}")
    taps = Cat(event, line)
    m.d.sync += line.eq(Cat(taps[place] & ~places.get(place, Const(0, 1)) for place in range(len(line))))
    with m.If(abort):
        m.d.sync += line.eq(0)
    event_later = Signal(name=f"at_{name}")
    m.d.comb += event_later.eq(Cat(taps[place] & chosen for place, chosen in places.items()).any())
    return event_later
