"""Arbiters: who is served, that packets stay whole, and how long somebody waits at most."""

from itertools import combinations
from typing import Any

import pytest
from amaranth.hdl import Array, Assert, Assume, Cat, Const, Module, Mux, Signal

from sley.abi.registers import PATIENCE, PRIORITY_BITS
from sley.hw.command.urgent import UrgentGrant
from sley.hw.stream.arbiter import PacketGrant
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove


class Fair(Property):
    """Somebody who asks is served, one at a time, a packet as a whole; of one requester: it waits at most for
    ``packets`` of others that begin while it asks."""

    def __init__(self, dut: Any, n: int, weights: tuple[int, ...] = ()) -> None:
        super().__init__(dut)
        self.n, self.weights = n, weights or (1,) * n

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut, n = self.dut, self.n
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        m.d.comb += Assume(~dut.moved | dut.grant.any())
        begins, unfinished, owner = Signal(), Signal(), Signal(n)
        m.d.comb += begins.eq(dut.moved & ~unfinished)
        with m.If(dut.moved):
            m.d.sync += [unfinished.eq(~dut.last), owner.eq(dut.grant)]
        m.d.comb += [
            Assert((dut.grant & (dut.grant - 1)) == 0),
            Assert((dut.grant & ~dut.requests) == 0),
            Assert(dut.grant.any() | ~dut.requests.any() | unfinished),
            Assert(~unfinished | (dut.grant == owner & dut.requests)),
        ]

        which = self.constant(range(n), "which")
        m.d.comb += Assume(which < n)
        bound = sum(self.weights)
        waited = Signal(range(bound + 2))
        asks, served = dut.requests.bit_select(which, 1), dut.grant.bit_select(which, 1)
        with m.If(~asks | (served & dut.moved)):
            m.d.sync += waited.eq(0)
        with m.Elif(begins):
            m.d.sync += waited.eq(waited + 1)
        for k, own in enumerate(self.weights):
            with m.If(which == k):
                m.d.comb += Assert(waited <= bound - own)

        m.d.comb += [
            Assert(~unfinished | (inner["owner"] == owner)),
            Assert(inner["eligible"] == Mux(unfinished, owner, (1 << n) - 1)),
        ]
        self.order(m, inner, owner, which, waited)
        return m

    def order(self, m: Module, inner: Any, owner: Any, which: Any, waited: Any) -> None:
        """Lemma: packets that go first, from the state of the round."""
        n, unfinished = self.n, ~inner["eligible"].all()
        keeps: Any = Const(0)  # turns
        if max(self.weights) > 1:
            keeps = Cat(owner[k] & (inner["count"] < weights) for k, weights in enumerate(self.weights)).any()
        above = Signal(n)
        with m.If(owner != 0):
            m.d.comb += above.eq(Mux(keeps | unfinished, ~(owner - 1)[:n], ~(owner | (owner - 1))[:n]))
        m.d.comb += [
            Assert((owner & (owner - 1)) == 0),
            *(Assert(inner[f"passed{j}_{k}"] == (above[k] & ~above[j])) for j, k in combinations(range(n), 2)),
        ]
        for w, own in enumerate(self.weights):
            left = Signal(8, name=f"left_{w}")
            m.d.comb += left.eq(sum(self.weights[:w]))
            for k, weights in enumerate(self.weights):
                between = sum(self.weights[j] for j in range(n) if 0 < (j - k) % n < (w - k) % n)
                others = sum(self.weights) - own
                with m.If(owner == 1 << k):
                    m.d.comb += left.eq(between if k != w else others)
                    if max(self.weights) > 1:
                        count = inner["count"]
                        m.d.comb += Assert((count != 0) & (count <= max(self.weights)))
                        with m.If(keeps):
                            m.d.comb += left.eq(between + weights - count if k != w else 0)
            with m.If(which == w):
                m.d.comb += Assert(waited + left <= sum(self.weights) - own)


CASES = [
    pytest.param(3, (), id="3"),
    pytest.param(4, (), id="4"),
    pytest.param(3, (2, 1, 3), id="weights"),
]


@pytest.mark.parametrize(("n", "weights"), CASES)
def test_packet_grant(n: int, weights: tuple[int, ...]) -> None:
    prove(Fair(PacketGrant(n, weights), n, weights), 3)


@planted(
    {
        "no turn": ("passed.eq(above[k] & ~above[j])", "passed.eq(0)", ()),
        "interleaved": ("eligible.eq(self.grant | self.last.replicate(n))", "eligible.eq(~0)", ()),
        "locked": ("eligible.eq(self.grant | self.last.replicate(n))", "eligible.eq(self.grant)", ()),
        "idle owner": (
            "self.grant.eq(self.requests & eligible & ~Cat(behind))",
            "self.grant.eq(eligible & ~Cat(behind))",
            (),
        ),
        "stays": ("above.eq(higher(self.grant) |", "above.eq(self.grant | higher(self.grant) |", ()),
        "owner not first": ("| ~self.last.replicate(n))))", ")))", ()),
        "all": ("& ~Cat(behind))", ")", ()),
        "one turn more": ("used < weights, weights > 1", "used <= weights, weights > 1", (2, 1, 3)),
        "turns not counted": ("(self.grant & owner).any(), used, 1", "(self.grant & owner).any(), 1, 1", (2, 1, 3)),
    },
    ("line", "bug", "weights"),
)
def test_packet_grant_finds(line: str, bug: str, weights: tuple[int, ...]) -> None:
    grant = mutated(PacketGrant, line, bug)
    with pytest.raises(Counterexample):
        prove(Fair(grant(3, weights), 3, weights), 12)


class Urgent(Property):
    """Somebody who asks is served, one at a time. Of two queues: an overdue one goes before one that is not, else that
    of higher priority; at one level, neither is served twice while the other asks. A queue that asks is served after
    at most PATIENCE + n - 1 others.

    Assumed: nobody is served in the first cycle or in two in a row, and priorities stay.
    """

    def __init__(self, dut: Any, n: int) -> None:
        super().__init__(dut)
        self.n = n

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut, n = self.dut, self.n
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        just_moved = Signal(init=1)
        m.d.sync += just_moved.eq(dut.moved)
        stay = [self.constant(PRIORITY_BITS, f"priority{k}") for k in range(n)]
        m.d.comb += [
            Assume(~dut.moved | (dut.grant.any() & ~just_moved)),
            *(Assume(now == then) for now, then in zip(dut.priorities, stay, strict=True)),
            Assert((dut.grant & (dut.grant - 1)) == 0),
            Assert((dut.grant & ~dut.requests) == 0),
            Assert(dut.grant.any() == dut.requests.any()),
        ]
        one, other = self.constant(range(n), "one"), self.constant(range(n), "other")
        m.d.comb += Assume((one < n) & (other < n) & (one != other))
        late, late_other = self.overdue(m, inner, one, "one"), self.overdue(m, inner, other, "other")
        served, asks = dut.grant.bit_select(one, 1), dut.requests.bit_select(other, 1)
        mine, theirs = Array(dut.priorities)[one], Array(dut.priorities)[other]
        with m.If(served & asks & ~just_moved):
            with m.If(late_other):
                m.d.comb += Assert(late)
            with m.Elif(~late):
                m.d.comb += Assert(mine >= theirs)
        for level in range(1 << PRIORITY_BITS):
            equal = ~late & ~late_other & (mine == level) & (theirs == level)
            self.in_turn(m, level, equal, served, asks, ~just_moved, inner[f"above{level}"], one, other)
        level = 1 << PRIORITY_BITS
        self.in_turn(m, level, late & late_other, served, asks, ~just_moved, inner[f"above{level}"], one, other)
        self.wait(m, inner, late_other, other)
        # Lemmas: which goes first is known a cycle late; these are in one order, also then.
        pairs = {(j, k): inner[f"first{j}_{k}"] for j, k in combinations(range(n), 2)}
        for (j, k), first in pairs.items():
            m.d.comb += Assert(just_moved | (first == (inner[f"rank{j}"] >= inner[f"rank{k}"])))
        for i, j, k in combinations(range(n), 3):
            m.d.comb += Assert((pairs[i, j] != pairs[j, k]) | (pairs[i, k] == pairs[i, j]))
        return m

    def overdue(self, m: Module, inner: Any, queue: Any, name: str) -> Any:
        """Whether the queue is overdue, by the words of the rule."""
        dut = self.dut
        passed = Signal(range(PATIENCE + 1), name=f"{name}_passed")
        late = Signal(name=f"{name}_late")
        m.d.comb += late.eq(passed == PATIENCE)
        with m.If(dut.moved & dut.grant.bit_select(queue, 1)):
            m.d.sync += passed.eq(0)
        with m.Elif(dut.moved & dut.requests.bit_select(queue, 1) & ~late):
            m.d.sync += passed.eq(passed + 1)
        held = Array(inner[f"passed{k}"] for k in range(self.n))[queue]
        m.d.comb += [
            Assert(passed <= PATIENCE),
            Assert(inner["overdue"].bit_select(queue, 1) == late),
            Assert(late | (held == passed)),
        ]
        return late

    def in_turn(
        self, m: Module, level: int, equal: Any, served: Any, asks: Any, current: Any, above: Any, one: Any, other: Any
    ) -> None:
        owed = Signal(name=f"owed_{level}")
        with m.If(~asks | ~equal):
            m.d.sync += owed.eq(0)
        with m.Elif(self.dut.moved):
            with m.If(served):
                m.d.sync += owed.eq(1)
            with m.If(self.dut.grant.bit_select(other, 1)):
                m.d.sync += owed.eq(0)
        with m.If(owed & equal & asks & current):
            m.d.comb += Assert(~served)
        # Lemma: the round comes to the other one first.
        here, there = above.bit_select(one, 1), above.bit_select(other, 1)
        m.d.comb += Assert(~owed | Mux(here == there, other < one, there))
        m.d.comb += self.round(above)

    def round(self, above: Any) -> Assert:
        """Lemma: a round is none at all, or all from one on."""
        return Assert((above == 0) | ((above | (above - 1)) == (1 << self.n) - 1))

    def wait(self, m: Module, inner: Any, late: Any, queue: Any) -> None:
        dut, n = self.dut, self.n
        waited = Signal(range(PATIENCE + n + 1))
        served, asks = dut.grant.bit_select(queue, 1), dut.requests.bit_select(queue, 1)
        with m.If(~asks | (served & dut.moved)):
            m.d.sync += waited.eq(0)
        with m.Elif(dut.moved):
            m.d.sync += waited.eq(waited + 1)
        m.d.comb += Assert(waited <= PATIENCE + n - 1)
        # Lemma: how many go first, of those that are overdue too.
        above = inner[f"above{1 << PRIORITY_BITS}"]
        for w in range(n):
            before = sum(above[j] for j in range(w))
            first = Mux(above[w], before, sum(above[j] for j in range(w, n)) + w)
            with m.If(queue == w):
                m.d.comb += Assert(waited + Mux(late, first, 0) <= Mux(late, PATIENCE + n - 1, inner[f"passed{w}"]))


@pytest.mark.parametrize("n", [2, 3])
def test_urgent_grant(n: int) -> None:
    prove(Urgent(UrgentGrant(n), n), 2)


@planted(
    {
        "highest first": ("(ranks[j] >= ranks[k])", "(ranks[j] > ranks[k])", 8),
        "patience last": ("Const(0, PRIORITY_BITS), 1)", "Const(0, PRIORITY_BITS), 0)", 36),
        "lowest first": ("[priority], priority, 0)", "[priority], ~priority, 0)", 6),
        "no round": ("(ranks[j] >= ranks[k])", "(ranks[j][1:] >= ranks[k][1:])", 8),
        "overdue for ever": ("passed[k].eq(0), overdue[k].eq(0)", "passed[k].eq(0)", 36),
        "no patience": ("passed[k] == PATIENCE - 1", "0", 36),
    },
    ("line", "bug", "depth"),
)
def test_urgent_grant_finds(line: str, bug: str, depth: int) -> None:
    with pytest.raises(Counterexample):
        prove(Urgent(mutated(UrgentGrant, line, bug)(3), 3), depth)
