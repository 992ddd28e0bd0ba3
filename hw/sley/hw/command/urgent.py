"""Who goes next: the rule by which queues share the executor, the cores and the copy engine."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.registers import PATIENCE, PRIORITY_BITS
from sley.hw.stream.arbiter import lowest


class UrgentGrant(wiring.Component):
    """Chooses one of ``n`` queues.

    Rule: a queue is overdue when it has asked while another was served ``PATIENCE`` times since it was served itself.
    Overdue queues come first, then the highest priority. Within a level it is round robin: the first one above the
    queue that was served last at this level, then the lowest. So a queue that asks is served after at most
    ``PATIENCE`` + n - 1 others.

    Members: ``requests``; ``priorities``: of each queue; ``grant``: one-hot, combinational, 0 when nobody asks;
    ``moved``: the granted queue is served now.
    Cost: 10 flip-flops for each queue.
    """

    requests: Signal
    priorities: list[Signal]
    grant: Signal
    moved: Signal

    def __init__(self, n: int) -> None:
        if n < 1:
            raise ValueError(f"n is {n}; there must be at least 1 queue")
        self._n = n
        super().__init__({"requests": In(n), "priorities": In(PRIORITY_BITS).array(n), "grant": Out(n), "moved": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self._n
        passed = [Signal(range(PATIENCE), name=f"passed{k}") for k in range(n)]
        overdue = Signal(n)
        levels = [Cat(p == level for p in self.priorities) for level in range(1 << PRIORITY_BITS)]
        higher: Value = Const(0, 1)  # somebody asks at a level above
        for level, members in reversed(list(enumerate([*levels, overdue]))):
            above = Signal(n, name=f"above{level}")  # the queues numbered above the one served last
            asking = Signal(n, name=f"asking{level}")
            preferred = Signal(n, name=f"preferred{level}")
            m.d.comb += [asking.eq(self.requests & members), preferred.eq(asking & above)]
            with m.If(~higher & asking.any()):
                m.d.comb += self.grant.eq(Mux(preferred.any(), lowest(preferred), lowest(asking)))
                with m.If(self.moved):
                    m.d.sync += above.eq(~(self.grant | (self.grant - 1)))
            higher = higher | asking.any()
        with m.If(self.moved):
            for k in range(n):
                with m.If(self.grant[k]):
                    m.d.sync += [passed[k].eq(0), overdue[k].eq(0)]
                with m.Elif(self.requests[k]):
                    m.d.sync += passed[k].eq(passed[k] + 1)
                    with m.If(passed[k] == PATIENCE - 1):
                        m.d.sync += overdue[k].eq(1)
        return m
