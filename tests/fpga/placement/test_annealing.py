"""Wires become shorter, and less crowded, and long paths less long, by legal moves alone."""

from collections import defaultdict

import numpy as np
import pytest
from placed_design import PlacedDesign, check_moves, halves, logic_row, random_design

from sley.fpga.placement import annealing
from sley.fpga.placement.annealing import CELLS, SQUARE, TREE, anneal, crowding, excess, tight
from sley.fpga.placement.arrangement import Arrangement
from sley.fpga.placement.delays import critical_path_ns
from sley.fpga.placement.placement import Placement

SEEDS = pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])


def nets(placement: Placement) -> list[list[int]]:
    """The cells of each net but the clock, which counts for none."""
    cells = defaultdict(list)
    for number, cell in enumerate(placement.cells):
        for port, joined in cell["connections"].items():
            if joined and port not in ("CLK", "CLKO") and number not in cells[joined[0]]:
                cells[joined[0]].append(number)
    return [found for net, found in cells.items() if net in placement.drivers and len(found) > 1]


def spans(placement: Placement, cells: list[int]) -> tuple[slice, slice]:
    """Columns and rows of the box about them."""
    x, y = (range(axis[cells].min(), axis[cells].max() + 1) for axis in (placement.x, placement.y))
    return slice(x.start, x.stop), slice(y.start, y.stop)


def length(placement: Placement) -> int:
    return sum(len(range(*span.indices(999))) - 1 for cells in nets(placement) for span in spans(placement, cells))


def fixed(design: PlacedDesign, name: str, place: str, data: str = "") -> None:
    """A flip-flop that does not move."""
    design.add(name, "TRELLIS_FF", place, {}, {"BEL": place}, Q=name, CLK="clk", M=data)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_random_designs_stay_legal_and_have_less_wire(seed: int) -> None:
    before, after = (Placement(random_design(seed).design) for _ in range(2))
    made = anneal(after)
    check_moves(before, after)
    assert (made.before, made.after) == (length(before), length(after))
    assert made.after < 0.7 * made.before


def test_the_same_placement_gives_the_same_result() -> None:
    one, other = (Placement(random_design(3).design) for _ in range(2))
    assert anneal(one) == anneal(other)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.y, other.y)


def test_a_lut_goes_between_what_it_is_joined_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the middle one of three, in columns and in rows, but for the critical path, which would pull it further."""
    monkeypatch.setattr(annealing, "PULL", 0.0)
    design = PlacedDesign()
    for y in range(1, 30):
        logic_row(design, range(1, 40), y)
    for name, x, y in (("a", 3, 4), ("b", 20, 9), ("c", 38, 28)):
        fixed(design, name, f"X{x}/Y{y}/SLICEA.FF0")
    design.lut("X39/Y29/SLICEA.K0", "l", "a", "b", "c")
    placement = Placement(design.design)
    anneal(placement)
    lut = placement.names.index("l")
    assert (placement.x[lut], placement.y[lut]) == (20, 9)


def test_a_lut_takes_its_flip_flop_along() -> None:
    design = PlacedDesign()
    logic_row(design, range(1, 40), 5)
    fixed(design, "a", "X3/Y5/SLICEA.FF0")
    fixed(design, "end", "X4/Y5/SLICEA.FF0", "q")
    design.lut("X39/Y5/SLICEB.K0", "d", "a")
    design.flip_flop("X39/Y5/SLICEB.FF0", "q", "d", fed=True)
    before, after = (Placement(design.design) for _ in range(2))
    anneal(after)
    check_moves(before, after)
    assert 3 <= after.x[after.names.index("q")] <= 4


def test_in_full_tiles_two_change_places() -> None:
    """Each of two LUTs lies where the other one should; what else is there leads nowhere."""
    design = PlacedDesign()
    for x in (5, 12):
        for half in halves()[1:]:
            design.lut(f"X{x}/Y5/SLICE{half.format('K')}", f"idle{x}{half}")
    for name, own, other in (("west", 5, 12), ("east", 12, 5)):
        fixed(design, f"{name}_from", f"X{own}/Y5/SLICEA.FF0")
        fixed(design, f"{name}_to", f"X{own}/Y5/SLICEA.FF1", name)
        design.lut(f"X{other}/Y5/SLICEA.K0", name, f"{name}_from")
    before, after = (Placement(design.design) for _ in range(2))
    made = anneal(after)
    check_moves(before, after)
    assert [after.x[after.names.index(name)] for name in ("west", "east")] == [5, 12]
    assert (made.before, made.after) == (28, 0)


def test_others_make_room_that_gain_nothing_by_it() -> None:
    """All LUTs where one should lie lead to where they may lie as well, and as far: there is room when all have gone,
    and then even their common wire is shorter."""
    design = PlacedDesign()
    fixed(design, "a", "X5/Y5/SLICEA.FF0")
    fixed(design, "b", "X5/Y5/SLICEA.FF1")
    for half in halves():
        design.lut(f"X5/Y5/SLICE{half.format('K')}", f"near{half}", "b")
        fixed(design, f"end{half}", f"X1/Y5/SLICE{half.format('FF')}", f"near{half}")
    design.lut("X9/Y5/SLICEA.K0", "far", "a")
    made = anneal(Placement(design.design))
    assert (made.before, made.after) == (4 + 8 * 4, 4)


def test_two_that_are_joined_gain_nothing_by_changing_places() -> None:
    """Nothing else may move, and no slot is free."""
    design = PlacedDesign()
    for x in (5, 9):
        for half in halves()[1:]:
            place = f"X{x}/Y5/SLICE{half.format('K')}"
            design.add(f"fixed{x}{half}", "TRELLIS_COMB", place, {}, {"BEL": place}, F=f"fixed{x}{half}")
    design.lut("X5/Y5/SLICEA.K0", "one")
    design.lut("X9/Y5/SLICEA.K0", "other", "one")
    made = anneal(Placement(design.design))
    assert (made.before, made.after) == (4, 4)


def test_crowding_is_the_wire_of_each_net_spread_over_its_box() -> None:
    placement = Placement(random_design(1).design)
    tiles = np.zeros(placement.logic.shape)
    for cells in nets(placement):
        box = tiles[spans(placement, cells)]
        box += (sum(box.shape) - 2) * np.interp(len(cells), CELLS, TREE) / box.size
    around = np.pad(tiles, SQUARE // 2)
    made = crowding(Arrangement(placement))
    assert made.shape == tiles.shape
    for x, y in np.ndindex(*made.shape):
        assert made[x, y] == pytest.approx(around[x : x + SQUARE, y : y + SQUARE].mean())


@pytest.mark.parametrize("room", [0.01, 2.0, 1e9])
def test_excess_is_the_share_of_wires_for_which_there_is_no_room(room: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annealing, "ROOM", room)
    arrangement = Arrangement(Placement(random_design(1).design))
    tiles = crowding(arrangement).ravel()
    assert excess(arrangement) == pytest.approx(sum(wires - room for wires in tiles if wires > room) / sum(tiles))


@pytest.mark.parametrize(("more", "expected"), [(-1e-6, True), (1e-6, False)])
def test_wires_are_tight_if_a_share_of_them_has_no_room(
    more: float, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = Placement(random_design(1).design)
    assert not tight(placement)
    monkeypatch.setattr(annealing, "ROOM", 2.0)
    monkeypatch.setattr(annealing, "TIGHT", excess(Arrangement(placement)) + more)
    assert tight(placement) == expected


@pytest.mark.slow
def test_where_wires_are_scarce_it_cools_again_and_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    once, again = (Placement(random_design(1).design) for _ in range(2))
    made = anneal(once)
    assert not made.scarce
    monkeypatch.setattr(annealing, "SCARCE", -1.0)
    slowly = anneal(again)
    assert slowly.scarce
    assert slowly.before == made.before
    assert slowly.after == length(again) < made.after


@SEEDS
def test_wires_avoid_tiles_that_are_crowded(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    careless, careful = (Placement(random_design(seed).design) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(annealing, "CROWDED", 0.0)
        anneal(careless)
    monkeypatch.setattr(annealing, "ROOM", 0.6 * crowding(Arrangement(careless)).max())
    monkeypatch.setattr(annealing, "SCARCE", 1.0)
    anneal(careful)
    assert crowding(Arrangement(careful)).max() < 0.85 * crowding(Arrangement(careless)).max()
    assert length(careful) < 1.5 * length(careless)


@SEEDS
def test_long_paths_are_pulled_together(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pulled, loose = (Placement(random_design(seed).design) for _ in range(2))
    anneal(pulled)
    monkeypatch.setattr(annealing, "PULL", 0.0)
    anneal(loose)
    assert critical_path_ns(pulled) < critical_path_ns(loose)
