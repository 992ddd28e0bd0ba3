"""The counting semaphores of a core: how its units wait for each other."""

from functools import reduce
from operator import and_, or_

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import SEMAPHORE_MAX, SEMAPHORES

SEMAPHORE_VALUES = data.ArrayLayout(range(SEMAPHORE_MAX + 1), SEMAPHORES)
"""Every semaphore's value; as one number, number 0 is in the lowest bits."""


class Semaphores(wiring.Component):
    """All semaphores of a core, taken and given as sets.

    Parameters
    ----------
    waiters : int
        Streams that take, at least 1.
    signallers : int
        Streams that give, at least 1.

    Members
    -------
    wait : In(stream of SEMAPHORES bits).array(waiters)
        A set; accepted when every semaphore in it is above zero, each is then one less.
    signal : In(stream of SEMAPHORES bits).array(signallers)
        A set; accepted when every semaphore in it is below SEMAPHORE_MAX, each is then one more.
    clear : In(1)
        All semaphores become zero, whatever is accepted in that cycle.
    values : Out(SEMAPHORE_VALUES), some : Out(SEMAPHORES)
        Two LUTs behind registers, and which of them are above zero: registers.

    Raises
    ------
    ValueError
        If ``waiters`` or ``signallers`` is below 1.

    Rules
    -----
    1. A set is taken or given as a whole in one cycle, or not at all. An empty set is accepted at once.
    2. Of the sets that could be accepted, a set passes unless it shares a semaphore with one of lower index; waits and
       signals are judged apart, both by the values before the cycle.
    3. So a semaphore goes down by at most one and up by at most one in a cycle, never wraps and never saturates.
    4. ``ready`` depends on ``valid`` and ``payload`` in the same cycle. A request may be taken back.

    Latency
    ------- A value is seen one cycle after it was given. From a request to a semaphore's bounds are seven LUTs, to
    ``ready`` five.

    Throughput
    ----------
    Every disjoint set in every cycle.
    """

    wait: list[stream.Interface]
    signal: list[stream.Interface]
    clear: Signal
    values: data.View
    some: Signal

    def __init__(self, waiters: int = 5, signallers: int = 6) -> None:
        for name, value in (("waiters", waiters), ("signallers", signallers)):
            if value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")
        super().__init__(
            {
                "wait": In(stream.Signature(SEMAPHORES)).array(waiters),
                "signal": In(stream.Signature(SEMAPHORES)).array(signallers),
                "clear": In(1),
                "values": Out(SEMAPHORE_VALUES),
                "some": Out(SEMAPHORES),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        empty = Signal(SEMAPHORES, init=-1)
        full = Signal(SEMAPHORES)
        m.d.comb += self.some.eq(~empty)
        down = self._grant(m, self.wait, empty, "wait")
        up = self._grant(m, self.signal, full, "signal")
        before = Signal(SEMAPHORE_VALUES)  # values without the last cycle
        raised = Signal(SEMAPHORES)  # in the last cycle
        lowered = Signal(SEMAPHORES)
        for i in range(SEMAPHORES):
            # A grant is the longest way: what it does to a value is left to the next cycle. Both directions come in
            # halves. What is empty is not taken and what is full is not given, so that a bound is one LUT behind them.
            value = self.values[i]
            # Bits below that are all one carry, or all zero borrow: fewer look-up tables than two carry chains.
            ripple = Cat((before[i][:bit] == raised[i].replicate(bit)) for bit in range(len(value)))
            m.d.comb += value.eq(before[i] ^ (ripple & (lowered[i] ^ raised[i]).replicate(len(value))))
            m.d.sync += [lowered[i].eq(down[0][i] | down[1][i]), raised[i].eq(up[0][i] | up[1][i])]
            can_empty = ~up[0][i] & (empty[i] | (value == 1))
            can_fill = ~down[0][i] & (full[i] | (value == SEMAPHORE_MAX - 1))
            m.d.sync += [
                empty[i].eq(can_empty & ~up[1][i] & ((empty[i] | down[0][i]) | down[1][i])),
                full[i].eq(can_fill & ~down[1][i] & ((full[i] | up[0][i]) | up[1][i])),
            ]
        m.d.sync += before.eq(self.values)
        with m.If(self.clear):
            m.d.sync += [before.eq(0), raised.eq(0), lowered.eq(0), empty.eq(-1), full.eq(0)]
        return m

    def _grant(self, m: Module, ports: list[stream.Interface], refuse: Signal, name: str) -> list[Signal]:
        """Accept sets without a semaphore in ``refuse`` by fixed priority; the semaphores of all accepted sets, in two
        halves.

        Which sets overlap is found beside, not behind, which are possible.
        """
        possible = Signal(len(ports), name=f"{name}_possible")
        passed: list[Value] = []
        for k, port in enumerate(ports):
            # By every possible set before, accepted or not: no port's chain is longer than another's.
            overlaps = Cat((other.payload & port.payload).any() for other in ports[:k])
            terms = Cat(possible[k], ~(overlaps & possible[:k]))
            m.d.comb += [
                possible[k].eq(port.valid & ~(port.payload & refuse).any()),
                port.ready.eq(terms.all()),
            ]
            # Two terms are one LUT, with which a set is masked before all of them are.
            parts = Signal(k // 2 + 1, name=f"{name}_{k}_parts")
            m.d.comb += parts.eq(Cat(terms[2 * n : 2 * n + 2].all() for n in range(len(parts))))
            passed.append(reduce(and_, (part.replicate(SEMAPHORES) for part in parts), port.payload))
        halves = []
        for half, chosen in (("early", passed[:3]), ("late", passed[3:])):
            halves.append(Signal(SEMAPHORES, name=f"{name}_{half}"))
            m.d.comb += halves[-1].eq(reduce(or_, chosen, Const(0)))
        return halves
