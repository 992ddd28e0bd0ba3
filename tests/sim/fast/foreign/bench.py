"""A design of someone else on the fast engine and in Amaranth's own simulator (pysim), in lock-step."""

import random
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Const, Fragment, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.sim import Simulator
from dice import random_bits
from found_ports import found_ports
from pysim_names import PysimNames
from pysim_registers import Registers

from sley.sim.fast.run.simulation import Simulation

RESET_PROBABILITY = 0.002
"""Of a pulse to begin, for each reset and cycle."""

RATES = (0, 0.03, 0.3, 1, 1)
"""How often an input may change, of which each phase has one."""

HIGH = (0.03, 0.5, 0.97, 0.97)
"""How often a bit that changes may be high."""

Words = Mapping[str, Sequence[int]]
"""What inputs of a protocol have to see now and then, by their names: packet identifiers, symbols."""

Packet = Sequence[Mapping[str, int]]
"""Values of inputs, cycle by cycle."""


def cases(slow: Iterable[str], campaign: Iterable[str]) -> list[Any]:
    """Names of designs as parameters of a test that is slow for some, and for the others a campaign."""
    marks = ((slow, pytest.mark.slow), (campaign, pytest.mark.campaign))
    return [pytest.param(name, marks=mark) for names, mark in marks for name in names]


def lockstep(
    make: Callable[[], Any],
    cycles: int = 1500,
    ports: Callable[[Any], dict[str, Any]] | None = None,
    words: Words | None = None,
    packets: Sequence[Packet] = ((),),
) -> None:
    """Runs two instances that ``make`` makes. ``ports`` names inputs and outputs of one; those found by default."""
    with quiet():
        bench = Lockstep(make, ports, words or {}, packets)
        bench.run(cycles)
    still = [name for name, values in bench.values.items() if len(values) < 2]
    assert len(still) < len(bench.values) or bench.moved, "nothing ever changed"


@contextmanager
def quiet() -> Iterator[None]:
    """Amaranth warns of what the packages do in old ways, and of modules that a failed elaboration left behind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def ports_of(design: Any) -> dict[str, Signal]:
    """Ports that are signals, named as ``Simulation.of`` names those of a component."""
    if not isinstance(getattr(design, "signature", None), wiring.Signature):
        return found_ports(design)
    flat = design.signature.flatten(design)
    values = {"__".join(map(str, path)): Value.cast(value) for path, _, value in flat}
    return {name: value for name, value in values.items() if isinstance(value, Signal)}


@dataclass(frozen=True)
class Habit:
    """How often an input changes for a while, how often it is then high if it is a bit, and words that it prefers."""

    name: str
    width: int
    rate: float
    high: float
    words: Sequence[int]

    def next(self, source: random.Random) -> int:
        if self.words and source.random() < 0.8:
            return source.choice(self.words) & ((1 << self.width) - 1)
        return int(source.random() < self.high) if self.width == 1 else random_bits(source, self.width)


class Lockstep:
    """Random inputs with idle phases and reset pulses; clocks of several domains tick in any mixture.

    Compared are all outputs before every edge, and after it all registers that both sides have by name.
    ``values``: what each output has been; ``moved``: whether a register changed.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        ports: Callable[[Any], dict[str, Any]] | None,
        words: Words,
        packets: Sequence[Packet],
    ) -> None:
        self._words, self._packets = words, packets
        design = make()
        component = ports is None and isinstance(getattr(design, "signature", None), wiring.Signature)
        find = ports or ports_of
        self.simulation = Simulation.of(design, None if component else find(design))
        manifest = self.simulation.manifest
        reference = make()
        known = find(reference)
        # A clock that is no port of the design belongs to a domain that it does not create.
        clocks = {clock.name for clock in manifest.clocks}
        names = [name for name in manifest.inputs if name not in known]
        domains = {re.sub("_?clk$", "", name) or "sync": name for name in names if name.endswith("clk")}
        top = Module()
        for domain, name in domains.items():
            reset = f"{name[:-3]}rst"
            created = ClockDomain(domain, reset_less=reset not in names)
            top.domains += created
            known[name] = created.clk
            if created.rst is not None:
                known[reset] = created.rst
        top.submodules.design = reference
        self._clocks = {name: known[name] for name in sorted(clocks)}
        self._resets = {name: known[name] for name in names if name.endswith("rst")}
        others = clocks | set(domains.values()) | self._resets.keys()
        self._inputs = {name: known[name] for name in manifest.inputs if name not in others}
        fragment = Fragment.get(top, None)
        _keep_read_data(fragment)
        self._simulator = Simulator(fragment)
        self._state = self._simulator._engine._state
        self._outputs = {name: self._slot(known[name]) for name in manifest.outputs if len(known[name])}
        self._widths = {name: manifest.outputs[name].width for name in self._outputs}
        self.values: dict[str, set[int]] = {name: set() for name in self._outputs}
        self.moved = False
        self._bind()

    def _slot(self, signal: Signal) -> Any:
        return self._state.slots[self._state.get_signal(signal)]

    def _bind(self) -> None:
        names = PysimNames(self._simulator._design, "top", 1)
        wanted = self.simulation.manifest.registers
        every = dict(names.signals())
        # Amaranth numbers signals of one name anew for each use; which of them is which is not known here.
        numbered = {name.partition("$")[0] for name in (*wanted, *every) if "$" in name.rpartition(".")[2]}
        both = {
            name: place for name, place in wanted.items() if name in every and name.partition("$")[0] not in numbered
        }
        both = {name: place for name, place in both.items() if all(piece.size <= 8 for piece in place.pieces)}
        slots = [self._slot(every[name]) for name in both]
        self._registers = Registers(both, slots, self.simulation._view) if both else None

    def run(self, cycles: int) -> None:
        async def bench(ctx: Any) -> None:
            self._bench(cycles)

        self._simulator.add_testbench(bench)
        self._simulator.run()

    def _bench(self, cycles: int) -> None:
        source = random.Random(cycles)
        phase: list[Habit] = []
        left, packet = 0, iter(())
        for cycle in range(cycles):
            if not left:
                left, phase = source.randint(1, 80), self._habits(source)
                packet = iter(source.choice(self._packets) if source.random() < 0.8 else ())
            left -= 1
            values = {habit.name: habit.next(source) for habit in phase if source.random() < habit.rate}
            values |= {name: value for name, value in next(packet, {}).items() if name in self._inputs}
            for name in self._resets:
                values[name] = int(source.random() < RESET_PROBABILITY)
            self._drive(values)
            self._compare_outputs(cycle)
            clocks = [name for name in self._clocks if source.random() < 0.8] or list(self._clocks)
            if clocks:
                self._tick(clocks)
                self._compare_registers(cycle)

    def _habits(self, source: random.Random) -> list["Habit"]:
        """What each input does until the next phase; none is an idle one."""
        if source.random() < 0.1:
            return []
        return [
            Habit(name, len(signal), source.choice(RATES), source.choice(HIGH), self._words.get(name, ()))
            for name, signal in self._inputs.items()
        ]

    def _drive(self, values: dict[str, int]) -> None:
        for name, value in values.items():
            self.simulation.poke(name, value)
        self._set({**self._inputs, **self._resets}, values)

    def _tick(self, clocks: list[str]) -> None:
        self._set(self._clocks, dict.fromkeys(clocks, 1))
        self._set(self._clocks, dict.fromkeys(clocks, 0))
        self.simulation.tick(*clocks)

    def _set(self, signals: dict[str, Signal], values: dict[str, int]) -> None:
        """What ``set`` of a test bench does, for many signals at once."""
        for name, value in values.items():
            self._slot(signals[name]).update(Const(value, signals[name].shape()).value)
        self._simulator._engine.step_design()

    def _compare_outputs(self, cycle: int) -> None:
        wrong = []
        for name, slot in self._outputs.items():
            expected, got = slot.curr & ((1 << self._widths[name]) - 1), self.simulation.peek(name)
            self.values[name].add(got)
            if expected != got:
                wrong.append(f"{name} is {got:#x}, {expected:#x} in pysim")
        assert not wrong, f"before the edge of cycle {cycle}: {'; '.join(wrong[:20])}"

    def _compare_registers(self, cycle: int) -> None:
        if self._registers is not None:
            wrong = self._registers.differences()
            self.moved |= self._registers.moved
            assert not wrong, f"after the edge of cycle {cycle}: {'; '.join(wrong[:20])}"


def _keep_read_data(fragment: Fragment) -> None:
    """In RTLIL the data of a read port has no reset; pysim is told to reset none either."""
    for port in getattr(fragment, "_read_ports", ()):
        port._data._reset_less = True
    for part, *_ in fragment.subfragments:
        _keep_read_data(part)
