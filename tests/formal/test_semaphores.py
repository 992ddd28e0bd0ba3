"""Counting semaphores: a value never wraps, and every set that passes is counted once."""

from typing import Any

import pytest
from amaranth.hdl import Assert, Module, Signal

from sley.abi.instructions import SEMAPHORE_MAX, SEMAPHORES
from sley.hw.core.semaphores import Semaphores
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

PORTS = 2


class Counted(Property):
    """Of any one semaphore: its value is what was given minus what was taken, between 0 and SEMAPHORE_MAX; nothing is
    taken at 0 or given at SEMAPHORE_MAX, nor by two ports in a cycle; a port that could be served alone is."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = self.dut
        inner = self.inner(m, dut)
        self.free_inputs(m, dut)
        which = self.constant(range(SEMAPHORES), "which")
        value = Signal(8)
        count = Signal(8)
        m.d.comb += value.eq(dut.values[which])
        taken, given = self.passing(m, dut.wait, which), self.passing(m, dut.signal, which)
        m.d.sync += count.eq(count + sum(given) - sum(taken))
        with m.If(dut.clear):
            m.d.sync += count.eq(0)
        m.d.comb += [
            Assert(value == count),
            *(Assert(inner["empty"][i] == (dut.values[i] == 0)) for i in range(SEMAPHORES)),
            *(Assert(inner["full"][i] == (dut.values[i] == SEMAPHORE_MAX)) for i in range(SEMAPHORES)),
            Assert(count <= SEMAPHORE_MAX),
            Assert(sum(given) <= 1),
            Assert(sum(taken) <= 1),
            Assert((count != 0) | (sum(taken) == 0)),
            Assert((count != SEMAPHORE_MAX) | (sum(given) == 0)),
        ]
        for ports, bound in ((dut.wait, 0), (dut.signal, SEMAPHORE_MAX)):
            # Whoever is the first of its side and asks for this semaphore alone is stalled by its bound only.
            with m.If(ports[0].valid & (ports[0].payload == 1 << which)):
                m.d.comb += Assert(ports[0].ready == (count != bound))
        return m

    def passing(self, m: Module, ports: Any, which: Any) -> list[Any]:
        return [port.valid & port.ready & port.payload.bit_select(which, 1) for port in ports]


def test_counted() -> None:
    prove(Counted(Semaphores(PORTS, PORTS)), 2)


@planted(
    {
        "masked": ("terms[2 * n : 2 * n + 2].all()", "terms[2 * n]"),
        "full": ("value == SEMAPHORE_MAX - 1)", "value == SEMAPHORE_MAX)"),
        "empty": ("empty[i].eq(can_empty & ", "empty[i].eq(0 & "),
        "init": ("empty = Signal(SEMAPHORES, init=-1)", "empty = Signal(SEMAPHORES)"),
        "cleared": ("lowered.eq(0), empty.eq(-1), full.eq(0)]", "lowered.eq(0), full.eq(0)]"),
        "overlap": ("port.ready.eq(terms.all())", "port.ready.eq(possible[k])"),
        "clear": ("[before.eq(0), raised.eq(0),", "[before.eq(0),"),
        "both": ("(lowered[i] ^ raised[i])", "(lowered[i] | raised[i])"),
        "before": ("m.d.sync += before.eq(self.values)", "m.d.sync += before.eq(before)"),
    }
)
def test_counted_finds(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Counted(mutated(Semaphores, line, bug)(PORTS, PORTS)), SEMAPHORE_MAX + 3)
