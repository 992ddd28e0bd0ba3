"""The read combiner: each read of each core goes on once, in order, alone or with an equal one of the other core."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Mux, Signal, Value

from sley.abi.config import preset
from sley.abi.instructions import Share
from sley.abi.network import AccessError
from sley.abi.placement import core_node
from sley.hw.memory.combine import ReadCombiner
from sley.hw.testing.in_order import InOrder
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, prove

CONFIG = preset("nano").replace(cores_x=2)
LEFT, RIGHT = core_node(CONFIG, 0), core_node(CONFIG, 1)
QUEUED = 2
"""Depth of each core's queue, in this proof."""


class Joined(InOrder):
    """Two cores in a row. The reads of any one of them go on in their order, each once, for it alone or for both, with
    the address and length that it asked for: nobody gets what it did not ask for. A read that is shared goes on
    for both, or is lost: answered with BUS to its core alone, when each core either waits with a shared read or has
    ended, and the reads differ. One that is not shared is never lost. What is offered stays until it is taken.

    Assumed: reads are of these cores; one that has ended has no read inside and asks for nothing more.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        i, o, head = dut.i, dut.o, dut.i.payload
        of = [self.at(head.src, node) for node in (LEFT, RIGHT)]
        m.d.comb += Assume(~i.valid | of[0] | of[1])
        covers = [self.at(o.payload.near, LEFT), self.at(o.payload.far, RIGHT)]
        inside = [Signal(4, name=f"inside{k}") for k in range(2)]
        comes = [i.valid & i.ready & of[k] for k in range(2)]
        goes = [o.valid & o.ready & covers[k] for k in range(2)]
        for k in range(2):
            m.d.sync += inside[k].eq(inside[k] + comes[k] - goes[k])
            m.d.comb += Assume(~dut.ended[k] | ((inside[k] == 0) & ~(i.valid & of[k])))
            m.d.comb += Assert(~(o.valid & covers[k]) | (inside[k] != 0))

        which = self.constant(1, "which")
        count, come, go = Signal(4), Signal(), Signal()
        m.d.comb += [count.eq(Mux(which, *inside[::-1])), come.eq(Mux(which, *comes[::-1]))]
        m.d.comb += go.eq(Mux(which, *goes[::-1]))
        share, error = Signal(head.share.shape()), Signal(head.error.shape())
        chosen, ahead, item = self.follow(
            m,
            count,
            come,
            Cat(head.addr, head.beats, head.share, head.error),
            go,
            Cat(o.payload.addr, o.payload.beats, share, error),
        )
        # What becomes of these is not to leave unchanged.
        m.d.comb += Cat(share, error).eq(item[len(head.addr) + len(head.beats) :])
        shared = (share == Share.ROW) | (share == Share.ALL)
        both, lost = covers[0] & covers[1], o.payload.error == AccessError.BUS
        with m.If(go & chosen & (ahead == 0)):
            m.d.comb += [
                Assert(~both | shared),
                Assert(~shared | both | lost),
                Assert((o.payload.error == error) | (shared & ~both)),
            ]

        waits, offered = Signal(), Signal.like(Value.cast(o.payload))
        m.d.sync += [waits.eq(o.valid & ~o.ready), offered.eq(o.payload)]
        m.d.comb += Assert(~waits | (o.valid & (Value.cast(o.payload) == offered)))
        self.given_up(m, inner)
        return m

    def at(self, place: Any, node: tuple[int, int]) -> Any:
        return (place.x == node[0]) & (place.y == node[1])

    def given_up(self, m: Module, inner: Any) -> None:
        """A read is lost when nothing that is still to come could save it, as the oldest reads of the queues show."""
        heads = [(inner[f"head{k}.o__valid"], Value.cast(inner[f"head{k}.payload"])) for k in range(2)]
        (left, a), (right, b) = heads
        ended = Signal(2)  # when it was decided
        m.d.sync += ended.eq(self.dut.ended)
        with m.If(inner["deadlocked"] & inner["grant.grant"].any() & ~inner["out.spare_valid"]):
            m.d.comb += Assert(~(left & right & (a == b)))
            for k, (asks, _) in enumerate(heads):
                m.d.comb += Assert(asks | ended[k])


def combiner(component: Any = None) -> Joined:
    """The combiner, or one with a planted bug, with short queues."""
    component = component or mutated(ReadCombiner, "class ReadCombiner", "class ReadCombiner")
    component.elaborate.__globals__.update(BEATS=QUEUED)  # those of a copy
    return Joined(component(CONFIG))


@pytest.mark.parametrize("depth", [8, pytest.param(11, marks=pytest.mark.campaign)])
def test_read_combiner(depth: int) -> None:
    prove(combiner(), depth, induction=False)


@planted(
    {
        "at once": ("(waits | (self.ended & ~waiting_read)).all()", "1"),
        "unequal": (
            "waiting_read[b] & (heads[a].payload.as_value() == heads[b].payload.as_value())",
            "waiting_read[b]",
        ),
        "ended or not": ("(waits | (self.ended & ~waiting_read)).all()", "(waits | ~waiting_read).all()"),
        "not told": (
            "granted_read.error.eq(Mux(deadlocked, AccessError.BUS, heads[k].payload.error))",
            "granted_read.error.eq(heads[k].payload.error)",
        ),
        "alone": ("grant.requests.eq(Mux(deadlocked, waiting_read, ready))", "grant.requests.eq(waiting_read)"),
        "answered twice": (
            "together = (share == kind) & (heads[first_core].payload.share == kind) & ~deadlocked",
            "together = 0",
        ),
        "taken with another": (
            "together = (share == kind) & (heads[first_core].payload.share == kind) & ~deadlocked",
            "together = share == kind",
        ),
        "lost for both": ("with m.If(share[0] & ~deadlocked):", "with m.If(share[0]):"),
        "no room": (
            "heads[k].ready.eq(out.i.ready & waiting_read[k] & taken)",
            "heads[k].ready.eq(waiting_read[k] & taken)",
        ),
    }
)
def test_read_combiner_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(combiner(mutated(ReadCombiner, line, bug)), 12, induction=False)
