"""Tiers of the fast engine: which library is built and taken, and that all compute the same."""

import time
from pathlib import Path
from typing import Any

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.transport import EngineError
from sley.driver.hardware.engines import open_transport
from sley.sim.build.toolchain import CCompiler
from sley.sim.fast.run import build
from sley.sim.fast.run.convert import design_ports, design_rtlil
from sley.sim.fast.run.simulation import Simulation
from sley.sim.fast.run.tier import AUTO, BEST, FIRST, VARIABLE, chosen


class Mixer(wiring.Component):
    i: In(16)
    o: Out(16)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.o.eq((self.o.rotate_left(3) + self.i) ^ (self.i * 5)[:16])
        return m


@pytest.fixture
def rtlil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A design, an empty cache, no design that counts as small, and a compiler for which tiers pay."""
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(build, "SMALL", 0)
    monkeypatch.setattr(CCompiler, "is_clang", False)
    mixer = Mixer()
    return design_rtlil(mixer, design_ports(mixer, None), "top")


def outputs(simulation: Simulation) -> list[int]:
    found = []
    for cycle in range(50):
        simulation.poke("i", cycle * 0x9E37 & 0xFFFF)
        simulation.tick()
        found.append(simulation.peek("o"))
    return found


def libraries(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "cache" / "fast").glob("*.so") if path.is_file()}


def test_pinned_tiers_compute_the_same(rtlil: str, tmp_path: Path) -> None:
    """Each tier is a library of its own, made from one translation; none is built that was not asked for."""
    first = outputs(Simulation(rtlil, tier=FIRST))
    assert len(libraries(tmp_path)) == 1
    assert outputs(Simulation(rtlil, tier=BEST)) == first
    assert len(libraries(tmp_path)) == 2
    assert len(list((tmp_path / "cache" / "code").glob("*.zip"))) == 1


def test_the_best_is_taken_once_it_is_there(rtlil: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Path] = []
    built = build.Library.build
    monkeypatch.setattr(build.Library, "build", lambda library, tier: taken.append(built(library, tier)) or taken[-1])
    started: list[Any] = []
    monkeypatch.setattr(build, "in_background", lambda log, function, *arguments: started.append((function, arguments)))
    build.build_library(rtlil)
    assert [arguments for _, arguments in started] == [(BEST,)]
    ((function, arguments),) = started
    function(*arguments)
    build.build_library(rtlil)
    assert len(started) == 1
    assert taken[0] != taken[1] == taken[2]


def test_the_background_process_builds_it(rtlil: str, tmp_path: Path) -> None:
    """It is another process, and its library appears under its name when it is complete."""
    build.build_library(rtlil)
    end = time.monotonic() + 120
    while len(libraries(tmp_path)) < 2:
        assert time.monotonic() < end, "the best library did not appear"
        time.sleep(0.05)
    library = build.Library(build.design_code(rtlil, None, None), build.HOST, (), ())
    assert library.built(BEST)


def test_small_designs_are_compiled_well_at_once(rtlil: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "SMALL", 1 << 20)
    monkeypatch.setattr(build, "in_background", lambda *arguments: pytest.fail("nothing is left to be built"))
    build.build_library(rtlil)
    assert len(libraries(tmp_path)) == 1


def test_clang_compiles_well_at_once(rtlil: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CCompiler, "is_clang", True)
    monkeypatch.setattr(build, "in_background", lambda *arguments: pytest.fail("nothing is left to be built"))
    path = build.build_library(rtlil)
    assert path == build.Library(build.design_code(rtlil, None, None), build.HOST, (), ()).build(BEST)
    assert len(libraries(tmp_path)) == 1


def test_which_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for goes before the environment."""
    monkeypatch.setenv(VARIABLE, FIRST)
    assert [chosen(tier) for tier in (AUTO, FIRST, BEST)] == [FIRST, FIRST, BEST]
    monkeypatch.delenv(VARIABLE)
    assert [chosen(tier) for tier in (AUTO, FIRST, BEST)] == [AUTO, FIRST, BEST]


def test_tiers_that_do_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="tier=second: the tiers are auto, first, best"):
        open_transport("fast:nano?tier=second")
    monkeypatch.setenv(VARIABLE, "fast")
    with pytest.raises(EngineError, match="SLEY_TIER=fast: the tiers are"):
        chosen(BEST)


def test_a_background_process_that_fails_says_why(rtlil: str, tmp_path: Path) -> None:
    """In a file of the cache; the first library is there all the same."""
    first = build.build_library(rtlil, tier=FIRST)
    log = tmp_path / "cache" / build.LOG
    build.in_background(log, build.Library(tmp_path / "absent.zip", build.HOST, (), ()).build, BEST)
    end = time.monotonic() + 60
    while "absent.zip" not in log.read_text():
        assert time.monotonic() < end, "the reason did not appear"
        time.sleep(0.05)
    assert first.exists()
