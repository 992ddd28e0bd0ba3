"""Recordings: the last cycles of a run, for every signal, and the files they become."""

import random
import stat
from itertools import pairwise
from pathlib import Path

import pytest
from amaranth.hdl import Assert, ClockDomain, Module, Signal
from design_batch import Batch
from random_designs import design_source
from small_designs import Machine
from vcd.reader import TokenKind, tokenize

from sley.sim.errors import FastError
from sley.sim.fast.run.evaluate import evaluate
from sley.sim.fast.run.simulation import Simulation


def machine() -> Simulation:
    design = Machine()
    return Simulation.of(design, design.ports)


def recorded(simulation: Simulation, names: list[str]) -> tuple[list[int], dict[str, list[int]]]:
    """Cycles, and the values of signals then."""
    values = simulation.signals.values(names)
    cycles: list[int] = []
    result: dict[str, list[int]] = {name: [] for name in names}
    for block in simulation.recording().blocks(simulation.signals.netlist, values.values()):
        cycles += block.when.cycle.tolist()
        found = evaluate(simulation.signals.netlist, values.values(), block)
        for name, value in values.items():
            result[name] += found[value].tolist()
    return cycles, result


NAMES = ["top.now", "top.later", "top.adder.product", "top.adder.total", "top.odd", "top.a", "top.adder.packet.kind"]


@pytest.mark.parametrize("depth", [1, 7, 20, 100])
def test_it_shows_what_was(depth: int) -> None:
    simulation = machine()
    source = random.Random(depth)
    shown: dict[str, list[int]] = {name: [] for name in NAMES}
    simulation.tick(count=3)
    simulation.record(depth)
    for cycle in range(60):
        simulation.poke("a", source.getrandbits(100))
        simulation.poke("write", source.getrandbits(1))
        if cycle % 9 == 4:  # a write from outside is part of what happened
            simulation.poke("top.step", source.getrandbits(8))
            simulation.poke_memory("top.table", source.randrange(12), source.getrandbits(24))
        for name in NAMES:
            shown[name].append(simulation.peek(name))
        simulation.tick()
    for name in NAMES:
        shown[name].append(simulation.peek(name))
    cycles, values = recorded(simulation, NAMES)
    kept = len(cycles)
    assert kept == min(depth, 60) + 1
    assert cycles == list(range(64 - kept, 64))
    assert values == {name: shown[name][-kept:] for name in NAMES}


def test_long_recordings_come_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = machine()
    simulation.poke("write", 1)
    simulation.poke("a", 1 << 91)
    simulation.record(1000)
    simulation.tick(count=500)
    whole, toggles = recorded(simulation, NAMES), simulation.toggles()
    monkeypatch.setattr("sley.sim.fast.run.recording.BLOCK", 64)
    assert recorded(simulation, NAMES) == whole
    assert simulation.toggles() == toggles
    assert len(whole[0]) == 501


@pytest.mark.parametrize("seed", range(4))
def test_random_designs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kinds of clock edges, asynchronous resets, memories: outputs recorded are those seen while it ran."""
    monkeypatch.setenv("CFLAGS", "-O0")
    batch = Batch({f"d{number}": design_source(number) for number in range(8 * seed, 8 * seed + 8)})
    simulation = Simulation.of(batch, batch.ports)
    simulation.on_print = lambda text: None
    simulation.record(64)
    source = random.Random(seed)
    shown: dict[str, list[int]] = {name: [] for name in batch.outputs}
    for step in range(21):
        for name, signal in (batch.inputs | batch.resets).items():
            if name in batch.inputs or source.random() < 0.2:
                simulation.poke(name, source.getrandbits(len(signal)))
        for name in batch.outputs:
            shown[name].append(simulation.peek(name))
        if step == 20:
            break
        for name in batch.resets:
            simulation.poke(name, 0)
        for name in batch.outputs:
            shown[name][-1] = simulation.peek(name)
        simulation.tick(*(source.sample(list(batch.clocks), 2)))
    names = [f"top.{name}" for name in batch.outputs]
    values = simulation.signals.values(names)
    for block in simulation.recording().blocks(simulation.signals.netlist, values.values()):
        found = evaluate(simulation.signals.netlist, values.values(), block)
        before_edges = block.when.half == 0
        for name, signal in batch.outputs.items():
            if len(signal):
                assert found[values[f"top.{name}"]][before_edges].tolist() == shown[name], name


def read_vcd(path: Path) -> tuple[dict[str, list[tuple[int, int]]], int]:
    """Changes (time, value) of all variables by name, and the last time."""
    names: dict[str, list[str]] = {}
    scope: list[str] = []
    changes: dict[str, list[tuple[int, int]]] = {}
    time = 0
    with path.open("rb") as file:
        for token in tokenize(file):
            if token.kind is TokenKind.SCOPE:
                scope.append(token.scope.ident)
            elif token.kind is TokenKind.UPSCOPE:
                scope.pop()
            elif token.kind is TokenKind.VAR:
                name = ".".join([*scope, token.var.ref_str.removeprefix("\\")])
                names.setdefault(token.var.id_code, []).append(name)
            elif token.kind is TokenKind.CHANGE_TIME:
                time = token.time_change
            elif token.kind in (TokenKind.CHANGE_SCALAR, TokenKind.CHANGE_VECTOR):
                change = token.scalar_change if token.kind is TokenKind.CHANGE_SCALAR else token.vector_change
                number = int(change.value, 2) if isinstance(change.value, str) else change.value
                for name in names[change.id_code]:
                    changes.setdefault(name, []).append((time, number))
    return changes, time


def test_a_waveform_has_every_signal(tmp_path: Path) -> None:
    simulation = machine()
    simulation.record(30)
    simulation.poke("write", 1)
    simulation.poke("a", (1 << 93) + 77)
    seen = []
    for _ in range(50):
        simulation.tick()
        seen.append({name: simulation.peek(name) for name in NAMES})
    path = tmp_path / "all.vcd"
    simulation.write_vcd(path)
    changes, end = read_vcd(path)
    assert set(changes) == {name for name, width in simulation.signals.widths.items() if width}
    assert end == 500
    for cycle in range(21, 51):
        for name in NAMES:
            at = [value for time, value in changes[name] if time <= 10 * cycle - 5]
            assert at[-1] == seen[cycle - 1][name], (name, cycle)
    assert changes["top.adder.clk"] == changes["top.clk"]
    edges = [(10 * cycle - 5 * (1 - low), 1 - low) for cycle in range(21, 51) for low in (0, 1)]
    assert changes["top.clk"] == [(195, 0), *edges]


def test_chosen_signals(tmp_path: Path) -> None:
    simulation = machine()
    simulation.record(5)
    simulation.tick(count=3)
    path = tmp_path / "some.vcd"
    simulation.write_vcd(path, ["count", "top.adder"])
    changes, _ = read_vcd(path)
    assert {"top.count", "top.adder.total", "top.adder.packet.kind"} <= set(changes)
    assert not {"top.odd", "top.now"} & set(changes)
    with pytest.raises(FastError, match=r"there is no signal 'top\.ader'"):
        simulation.write_vcd(path, ["top.ader"])


def test_both_edges_are_shown(tmp_path: Path) -> None:
    m = Module()
    rising, falling = ClockDomain("rising", reset_less=True), ClockDomain("falling", clk_edge="neg", reset_less=True)
    falling.clk = rising.clk
    m.domains += [rising, falling]
    up, down = Signal(4), Signal(4)
    m.d.rising += up.eq(up + 1)
    m.d.falling += down.eq(up)
    simulation = Simulation.of(m, {"clk": rising.clk, "up": up, "down": down})
    simulation.record(10)
    simulation.tick(count=3)
    simulation.write_vcd(tmp_path / "both.vcd")
    changes, _ = read_vcd(tmp_path / "both.vcd")
    assert changes["top.up"] == [(0, 0), (5, 1), (15, 2), (25, 3)]
    assert changes["top.down"] == [(0, 0), (10, 1), (20, 2), (30, 3)]
    assert changes["top.clk"] == [(0, 0), (5, 1), (10, 0), (15, 1), (20, 0), (25, 1), (30, 0)]


def test_a_failure_writes_its_file(tmp_path: Path) -> None:
    m = Module()
    count = Signal(8)
    m.d.sync += count.eq(count + 1)
    m.d.sync += Assert(count != 40)
    simulation = Simulation.of(m, {"count": count})
    path = tmp_path / "failure.vcd"
    simulation.record(16, on_failure=path)
    with pytest.raises(FastError, match=f"did not hold within 5 cycles.*; the last 5 cycles are in {path}"):
        simulation.run_until("count", 200, limit=5)
    path.unlink()
    with pytest.raises(AssertionError, match=rf"cycle 40\]; the last 16 cycles are in {path}"):
        simulation.tick(count=100)
    changes, end = read_vcd(path)
    assert changes["top.count"] == [(10 * value - 5, value) for value in range(24, 41)]
    assert end == 400


def test_a_jump_begins_again() -> None:
    simulation = machine()
    simulation.record(10)
    simulation.tick(count=4)
    snapshot = simulation.snapshot()
    simulation.tick(count=4)
    simulation.restore(snapshot)
    assert recorded(simulation, ["top.step"])[0] == [4]
    simulation.tick(count=2)
    assert recorded(simulation, ["top.step"])[0] == [4, 5, 6]


def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = machine()
    with pytest.raises(FastError, match="call record"):
        simulation.write_vcd(tmp_path / "none.vcd")
    with pytest.raises(FastError, match="a recording of -1 cycles"):
        simulation.record(-1)
    simulation.record(3)
    simulation.tick()
    with pytest.raises(FastError, match=r"files named \*\.vcd or \*\.fst"):
        simulation.write_vcd(tmp_path / "trace.txt")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FastError, match="vcd2fst, which is not installed: install gtkwave"):
        simulation.write_vcd(tmp_path / "trace.fst")


def test_fst_is_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "vcd2fst"
    program.write_text('#!/bin/sh\n/bin/cp "$1" "$2"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    simulation = machine()
    monkeypatch.setenv("PATH", str(tmp_path))
    simulation.record(3)
    simulation.tick()
    simulation.write_vcd(tmp_path / "trace.fst")
    assert "top.step" in read_vcd(tmp_path / "trace.fst")[0]


def test_toggles_and_activity() -> None:
    simulation = machine()
    simulation.record(10)
    simulation.tick(count=10)
    _, values = recorded(simulation, ["top.step", "top.adder.total", "top.later"])
    bits = {name: sum((a ^ b).bit_count() for a, b in pairwise(v)) for name, v in values.items()}
    toggles = simulation.toggles()
    assert toggles["top.adder"] == bits["top.adder.total"] == 0
    assert sum(toggles.values()) == sum(bits.values())
    assert toggles["top"] >= bits["top.step"] > 0
    activity = simulation.activity()
    assert set(activity) == set(simulation.manifest.fragments)
    assert max(activity.values()) >= 10
    before = sum(activity.values())
    simulation.tick()
    assert sum(simulation.activity().values()) > before
