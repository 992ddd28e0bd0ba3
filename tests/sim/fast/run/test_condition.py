"""Breakpoints on signals that the state holds, and on signals that are computed."""

import random

import pytest
from design_batch import Batch
from random_designs import design_source
from small_designs import Machine

from sley.sim.errors import FastError
from sley.sim.fast.run.condition import Test, computed_condition
from sley.sim.fast.run.simulation import Simulation


def machine() -> Simulation:
    design = Machine()
    simulation = Simulation.of(design, design.ports)
    simulation.poke("a", (1 << 93) + 12345678901234567890)
    simulation.poke("write", 1)
    return simulation


NAMES = ("count", "top.step", "top.adder.total", "top.adder.product", "top.odd", "now", "later", "top.adder.packet")
"""An output, registers narrow and wide, and computed signals."""


@pytest.mark.parametrize("name", [*NAMES, "top.adder.packet.length"])
def test_it_stops_where_single_steps_find_it(name: str) -> None:
    watched = machine()
    source = random.Random(name)
    values = []
    for _ in range(40):
        values.append(watched.peek(name))
        watched.tick()
    width = max(value.bit_length() for value in values)
    for _ in range(4):
        at = source.randrange(1, 40)
        mask = source.getrandbits(width) | 1
        simulation = machine()
        simulation.tick(count=1)
        want = values[at] & mask
        expected = next(index for index in range(1, 40) if values[index] & mask == want) - 1
        assert simulation.run_until(name, want, limit=50, mask=mask) == expected
        assert simulation.peek(name) & mask == want
        simulation.restore(simulation.snapshot())
        here = values[expected + 1]
        later = [index for index in range(expected + 1, 40) if values[index] != here]
        if later:
            assert simulation.run_until(name, here, limit=50, equal=False) == later[0] - expected - 1


def test_what_is_computed_from_rows_of_a_memory() -> None:
    """From the state alone, also of signals that the state holds: in every cycle what the design computes."""
    simulation = machine()
    netlist = simulation.signals.netlist
    values = simulation.signals.values(["top.now", "top.adder.product"])
    state = simulation._library.fast_state(simulation._handle)
    for _ in range(12):
        simulation.tick()
        simulation.settle()
        for name, value in values.items():
            now, mask = simulation.peek(name), (1 << netlist.width[value]) - 1
            for wanted in (now, now ^ 1):
                condition = computed_condition(netlist, value, simulation.manifest, Test(wanted, mask, True))
                assert bool(condition._function(state)) is (wanted == now), name


def test_limits_and_wrong_conditions() -> None:
    simulation = machine()
    simulation.tick()
    before = simulation.cycle
    simulation.poke("top.step", 5)
    with pytest.raises(FastError, match=r"top\.step & 0x1 == 0x0 did not hold within 0 cycles, it is 0x5"):
        simulation.run_until("top.step", 0, mask=1, limit=0)
    assert simulation.cycle == before
    with pytest.raises(FastError, match=r"top\.adder\.total == 0x1 did not hold within 25 cycles"):
        simulation.run_until("top.adder.total", 1, limit=25)
    assert simulation.cycle == before + 25
    with pytest.raises(FastError, match=r"can never be 0x3; set the mask"):
        simulation.run_until("top.step", 3, mask=1, limit=1)
    with pytest.raises(FastError, match=r"it takes 0\.\.255"):
        simulation.run_until("top.step", 256, limit=1)
    with pytest.raises(FastError, match="there is no signal"):
        simulation.run_until("top.stop", 1, limit=1)


def test_the_clocks_named_tick() -> None:
    simulation = machine()
    assert simulation.run_until("top.step", 6, "clk", limit=9) == 1
    with pytest.raises(FastError, match="there is no clock 'clock'"):
        simulation.run_until("top.step", 6, "clock", limit=9)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_conditions_on_random_designs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs of random designs, computed once by the compiled condition and once by the design."""
    monkeypatch.setenv("CFLAGS", "-O0")
    batch = Batch({f"d{number}": design_source(number) for number in range(8 * seed, 8 * seed + 8)})
    simulation = Simulation.of(batch, batch.ports)
    simulation.on_print = lambda text: None
    source = random.Random(seed)
    for name, signal in batch.inputs.items():
        simulation.poke(name, source.getrandbits(len(signal)))
    simulation.tick(count=2)
    simulation.settle()
    values = simulation.signals.values([f"top.{name}" for name in batch.outputs])
    netlist, state = simulation.signals.netlist, simulation._library.fast_state(simulation._handle)
    outputs = {name: len(signal) for name, signal in batch.outputs.items() if len(signal)}
    for name in source.sample(sorted(outputs), 8):
        now, width = simulation.peek(name), outputs[name]
        for value, holds in ((now, True), (now ^ 1 << source.randrange(width), False)):
            test = Test(value, (1 << width) - 1, True)
            condition = computed_condition(netlist, values[f"top.{name}"], simulation.manifest, test)
            assert bool(condition._function(state)) is holds, name
