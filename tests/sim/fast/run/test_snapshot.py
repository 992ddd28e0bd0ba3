"""Snapshots and saved states: what comes after them is what came before."""

import random
import weakref
import zlib
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from lockstep import without_garbage_collection
from small_designs import Machine

from sley.sim.errors import FastError
from sley.sim.fast.run.simulation import Simulation


def machine() -> Simulation:
    design = Machine()
    return Simulation.of(design, design.ports)


def run(simulation: Simulation, seed: int, cycles: int = 20) -> list[int]:
    source = random.Random(seed)
    seen = []
    for _ in range(cycles):
        simulation.poke("a", source.getrandbits(100))
        simulation.poke("write", source.getrandbits(1))
        simulation.tick()
        seen += [simulation.peek(name) for name in ("now", "later", "count", "top.adder.product")]
    return seen + [simulation.peek_memory("top.table", row) for row in range(12)]


def test_restore_comes_back() -> None:
    simulation = machine()
    run(simulation, 1)
    snapshot = simulation.snapshot()
    assert snapshot.cycle == simulation.cycle == 20
    expected = run(simulation, 2)
    for _ in range(2):
        run(simulation, 3)
        simulation.restore(snapshot)
        assert simulation.cycle == 20
        assert run(simulation, 2) == expected


def test_a_snapshot_serves_another_instance() -> None:
    first, second = machine(), machine()
    run(first, 1)
    second.restore(first.snapshot())
    assert run(first, 2) == run(second, 2)


def test_buffers_are_used_again() -> None:
    simulation = machine()
    kept = [simulation.snapshot() for _ in range(3)]
    buffers = {id(snapshot.buffer) for snapshot in kept}
    assert len(buffers) == 3
    del kept
    assert id(simulation.snapshot().buffer) in buffers


def test_an_instance_goes_with_its_last_name() -> None:
    simulation = machine()
    simulation.record(3)
    simulation.tick()
    simulation.recording()
    kept, gone = simulation.snapshot(), weakref.ref(simulation)
    with without_garbage_collection():
        del simulation
        assert gone() is None
    assert kept.cycle == 1


def test_a_file_comes_back(tmp_path: Path) -> None:
    simulation = machine()
    run(simulation, 1)
    simulation.save(tmp_path / "state")
    expected = run(simulation, 2)
    other = machine()
    other.load(tmp_path / "state")
    assert other.cycle == 20
    assert run(other, 2) == expected


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    simulation = machine()
    path = tmp_path / "state"
    simulation.save(path)
    m = Module()
    count = Signal(3)
    m.d.sync += count.eq(count + 1)
    other = Simulation.of(m, {"count": count})
    with pytest.raises(FastError, match="is the state of another design"):
        other.load(path)
    with pytest.raises(FastError, match="the snapshot is of another design"):
        other.restore(simulation.snapshot())
    raw = path.read_bytes()
    path.write_bytes(raw[:-3])
    with pytest.raises(FastError, match="is damaged"):
        simulation.load(path)
    state = raw.index(b"}") + 1
    path.write_bytes(raw[:state] + zlib.compress(zlib.decompress(raw[state:])[:-8]))
    with pytest.raises(FastError, match=r"is damaged \(the state is not complete\)"):
        simulation.load(path)
    path.write_bytes(raw.replace(simulation.manifest.layout.encode(), b"0" * 32))
    with pytest.raises(FastError, match="another version of the engine"):
        simulation.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(FastError, match="is no saved state"):
        simulation.load(path)
