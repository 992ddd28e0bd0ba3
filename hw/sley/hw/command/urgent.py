"""Who goes next: the rule by which queues share the executor, the cores and the copy engine."""

from itertools import combinations

from amaranth.hdl import Array, Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.registers import PATIENCE, PRIORITY_BITS
from sley.hw.stream.arbiter import higher


class UrgentGrant(wiring.Component):
    """Chooses one of ``n`` queues.

    Which queue goes before which is decided ahead, so a choice depends on the requests alone.

    Parameters
    ----------
    n : int
        Queues, at least 1.

    Members
    -------
    requests : In(n)
        One bit per queue.
    priorities : In(PRIORITY_BITS).array(n)
        Of each queue; take effect a cycle late.
    grant : Out(n)
        One-hot, combinational; 0 without a request.
    moved : In(1)
        The granted queue is served now; not in two cycles in a row.

    Raises
    ------
    ValueError
        If ``n`` is below 1.

    Rules
    -----
    1. A queue is *overdue* when it has requested while another was served ``PATIENCE`` times since it was served
       itself.
    2. Overdue queues come first, then the highest priority.
    3. Within a level it is round robin: the first one above the queue that was served last at this level, then the
       lowest.
    4. So a queue that requests is served after at most ``PATIENCE`` + n - 1 others.

    Cost
    ----
    15 flip-flops for each queue, one for each two queues.
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
        levels = 1 << PRIORITY_BITS
        above = [Signal(n, name=f"above{level}") for level in range(levels + 1)]  # numbered above the queue served last

        # The higher one goes first: overdue, priority, whether the round comes to it before it ends.
        ranks = []
        for k, priority in enumerate(self.priorities):
            rank = Signal(2 + PRIORITY_BITS, name=f"rank{k}")
            late = overdue[k]
            m.d.comb += rank.eq(Cat(above[levels][k], Const(0, PRIORITY_BITS), 1))
            with m.If(~late):
                m.d.comb += rank.eq(Cat(Array(mark[k] for mark in above[:levels])[priority], priority, 0))
            ranks.append(rank)
        behind: list[Value] = [Const(0, 1)] * n  # one that goes before it asks
        for j, k in combinations(range(n), 2):
            first = Signal(name=f"first{j}_{k}", init=1, reset_less=True)  # of the two, the lower number
            m.d.sync += first.eq(ranks[j] >= ranks[k])
            behind[k] = behind[k] | (self.requests[j] & first)
            behind[j] = behind[j] | (self.requests[k] & ~first)
        m.d.comb += self.grant.eq(self.requests & ~Cat(behind))

        # Whoever is granted is of the highest level that asks: as ahead of time as the order, this waits for no grant.
        higher_requests: Value = Const(0, 1)  # by a higher level
        for level, mark in reversed(list(enumerate(above))):
            members = Signal(n, name=f"members{level}", reset_less=True)
            m.d.sync += members.eq(overdue if level == levels else Cat(p == level for p in self.priorities) & ~overdue)
            requesting = (self.requests & members).any()
            with m.If(self.moved & requesting & ~higher_requests):
                m.d.sync += mark.eq(higher(self.grant))
            higher_requests = higher_requests | requesting
        with m.If(self.moved):
            for k in range(n):
                with m.If(self.grant[k]):
                    m.d.sync += [passed[k].eq(0), overdue[k].eq(0)]
                with m.Elif(self.requests[k]):
                    m.d.sync += passed[k].eq(passed[k] + 1)
                    with m.If(passed[k] == PATIENCE - 1):
                        m.d.sync += overdue[k].eq(1)
        return m
