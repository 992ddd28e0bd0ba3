"""The counting semaphores of a core: how its units wait for each other."""

from functools import reduce
from operator import xor

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

    Rules: a set is taken or given as a whole in one cycle, or not at all. Of the sets that could be accepted, a set
    passes unless it shares a semaphore with one of lower index; waits and signals are judged apart, both by the values
    before the cycle. So a semaphore goes down by at most one and up by at most one in a cycle, never wraps and never
    saturates. An empty set is accepted at once.

    ``ready`` depends on ``valid`` and ``payload`` in the same cycle. A request may be taken back.
    Latency: a value is seen one cycle after it was given. Throughput: every disjoint set in every cycle.
    From a request to a semaphore's bounds are seven LUTs, to ``ready`` five.
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
            # halves, and a LUT takes all four.
            value = self.values[i]
            given = up[0][i] ^ up[1][i]
            taken = down[0][i] ^ down[1][i]
            # Bits below that are all one carry, or all zero borrow: fewer look-up tables than two carry chains.
            ripple = Cat((before[i][:bit] == raised[i].replicate(bit)) for bit in range(len(value)))
            m.d.comb += value.eq(before[i] ^ (ripple & (lowered[i] ^ raised[i]).replicate(len(value))))
            m.d.sync += [lowered[i].eq(taken), raised[i].eq(given)]
            with m.If(given ^ taken):
                m.d.sync += [
                    empty[i].eq(~given & (value == 1)),
                    full[i].eq(given & (value == SEMAPHORE_MAX - 1)),
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
            m.d.comb += [
                possible[k].eq(port.valid & ~(port.payload & refuse).any()),
                port.ready.eq(possible[k] & ~(overlaps & possible[:k]).any()),
            ]
            passed.append(port.payload & port.ready.replicate(SEMAPHORES))
        # The later a port is ready, the fewer LUTs are behind it.
        early = Signal(SEMAPHORES, name=f"{name}_early")
        late = Signal(SEMAPHORES, name=f"{name}_late")
        m.d.comb += [early.eq(reduce(xor, passed[:-2], Const(0))), late.eq(reduce(xor, passed[-2:]))]
        return [early, late]
