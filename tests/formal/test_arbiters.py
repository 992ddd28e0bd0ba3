"""Arbiters: who is served, that packets stay whole, and how long somebody waits at most."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Module, Signal

from sley.hw.stream.arbiter import PacketGrant
from sley.hw.testing.mutation import mutated
from sley.hw.testing.proof import Counterexample, Property, prove


class Fair(Property):
    """Somebody who asks is served, one at a time, a packet as a whole; of one requester: it waits at most for
    ``packets`` of others that begin while it asks.

    ``steady``: whoever asks does so until it is served, and so do grants stay.
    """

    def __init__(self, dut: Any, n: int, turns: tuple[int, ...] = (), *, steady: bool = False) -> None:
        super().__init__(dut)
        self.n, self.turns, self.steady = n, turns or (1,) * n, steady

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
        bound = sum(self.turns)
        waited = Signal(range(bound + 2))
        asks, served = dut.requests.bit_select(which, 1), dut.grant.bit_select(which, 1)
        with m.If(~asks | (served & dut.moved)):
            m.d.sync += waited.eq(0)
        with m.Elif(begins):
            m.d.sync += waited.eq(waited + 1)
        for k, own in enumerate(self.turns):
            with m.If(which == k):
                m.d.comb += Assert(waited <= bound - own)

        if self.steady:
            offered = Signal(n)
            asked = Signal(n)
            m.d.sync += [offered.eq(0), asked.eq(dut.requests)]
            with m.If(dut.moved):
                m.d.sync += asked.eq(dut.requests & ~dut.grant)
            with m.Else():
                m.d.sync += offered.eq(dut.grant)
            m.d.comb += [Assume((asked & ~dut.requests) == 0), Assert((offered == 0) | (dut.grant == offered))]
            m.d.comb += Assert((offered == 0) | (inner["locked"] & (inner["owner"] == offered)))
            m.d.comb += Assert(inner["locked"] == (unfinished | offered.any()))
        else:
            m.d.comb += Assert(inner["locked"] == unfinished)
        m.d.comb += Assert(~unfinished | (inner["owner"] == owner))
        return m


CASES = [
    pytest.param(3, (), False, id="3"),
    pytest.param(4, (), False, id="4"),
    pytest.param(3, (2, 1, 3), False, id="turns"),
    pytest.param(3, (), True, id="steady"),
]


@pytest.mark.parametrize(("n", "turns", "steady"), CASES)
def test_packet_grant(n: int, turns: tuple[int, ...], steady: bool) -> None:
    prove(Fair(PacketGrant(n, turns, steady=steady), n, turns, steady=steady), 10)


@pytest.mark.parametrize(
    ("line", "bug", "turns", "steady"),
    [
        ("locked.eq(~self.last)", "locked.eq(0)", (), False),
        ("self.grant.eq(owner & self.requests)", "self.grant.eq(owner)", (), False),
        ("above.eq(~(self.grant | (self.grant - 1)))", "above.eq(~(self.grant - 1))", (), False),
        ("preferred.eq(self.requests & above)", "preferred.eq(0)", (), False),
        ("Mux(preferred.any(), lowest(preferred), lowest(self.requests))", "self.requests", (), False),
        ("[locked.eq(1), owner.eq(self.grant)]", "[]", (), True),
        ("again.eq(used < turns)", "again.eq(used <= turns)", (2, 1, 3), False),
        ("count.eq(used)", "count.eq(1)", (2, 1, 3), False),
    ],
    ids=["interleaved", "idle owner", "stays", "no turn", "all", "not steady", "one turn more", "turns not counted"],
)
def test_packet_grant_finds(line: str, bug: str, turns: tuple[int, ...], steady: bool) -> None:
    grant = mutated(PacketGrant, line, bug)
    with pytest.raises(Counterexample):
        prove(Fair(grant(3, turns, steady=steady), 3, turns, steady=steady), 12)
