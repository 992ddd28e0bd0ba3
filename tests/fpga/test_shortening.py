"""Wires become shorter, and less crowded, by legal moves alone."""

from collections import defaultdict

import numpy as np
import pytest
from placed_design import PlacedDesign, check_moves, halves, logic_row, random_design

from sley.fpga import shortening
from sley.fpga.placement import Placement
from sley.fpga.shortening import CELLS, REACH, SQUARE, TREE, crowding, shorten


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


@pytest.mark.parametrize("seed", range(6))
def test_random_designs_stay_legal_and_have_less_wire(seed: int) -> None:
    before, after = (Placement(random_design(seed).design) for _ in range(2))
    made = shorten(after)
    check_moves(before, after)
    assert (made.before, made.after) == (length(before), length(after))
    assert made.after < 0.85 * made.before
    assert made.moves > 0


def test_the_same_placement_gives_the_same_result() -> None:
    one, other = (Placement(random_design(3).design) for _ in range(2))
    assert shorten(one) == shorten(other)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.y, other.y)


def test_a_lut_goes_between_what_it_is_joined_to() -> None:
    """To the middle one of three, in columns and in rows."""
    design = PlacedDesign()
    for y in range(1, 30):
        logic_row(design, range(1, 40), y)
    for name, x, y in (("a", 3, 4), ("b", 20, 9), ("c", 38, 28)):
        fixed(design, name, f"X{x}/Y{y}/SLICEA.FF0")
    design.lut("X39/Y29/SLICEA.K0", "l", "a", "b", "c")
    placement = Placement(design.design)
    shorten(placement)
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
    shorten(after)
    check_moves(before, after)
    assert 3 <= after.x[after.names.index("q")] <= 4


def test_in_full_tiles_two_change_places() -> None:
    """Each of two LUTs lies where the other one should; what else is there leads nowhere."""
    design = PlacedDesign()
    for x in (5, 30):
        for half in halves()[1:]:
            design.lut(f"X{x}/Y5/SLICE{half.format('K')}", f"idle{x}{half}")
    for name, own, other in (("west", 5, 30), ("east", 30, 5)):
        fixed(design, f"{name}_from", f"X{own}/Y5/SLICEA.FF0")
        fixed(design, f"{name}_to", f"X{own}/Y5/SLICEA.FF1", name)
        design.lut(f"X{other}/Y5/SLICEA.K0", name, f"{name}_from")
    before, after = (Placement(design.design) for _ in range(2))
    made = shorten(after)
    check_moves(before, after)
    assert [after.x[after.names.index(name)] for name in ("west", "east")] == [5, 30]
    assert (made.before, made.after) == (100, 0)


def test_what_would_gain_less_than_another_loses_stays() -> None:
    """All LUTs where it should lie have the wires to both of their ends straight there, and twice as far from it."""
    design = PlacedDesign()
    fixed(design, "a", "X5/Y5/SLICEA.FF0")
    fixed(design, "b", "X5/Y5/SLICEA.FF1")
    for half in halves():
        design.lut(f"X5/Y5/SLICE{half.format('K')}", f"near{half}", "b")
        fixed(design, f"end{half}", f"X1/Y5/SLICE{half.format('FF')}", f"near{half}")
    design.lut("X9/Y5/SLICEA.K0", "far", "a")
    placement = Placement(design.design)
    made = shorten(placement)
    assert made.moves == 0
    assert made.after == 4 + 8 * 4


def test_two_that_are_joined_gain_nothing_by_changing_places() -> None:
    """Nothing else may move, and no slot is free."""
    design = PlacedDesign()
    for x in (5, 9):
        for half in halves()[1:]:
            place = f"X{x}/Y5/SLICE{half.format('K')}"
            design.add(f"fixed{x}{half}", "TRELLIS_COMB", place, {}, {"BEL": place}, F=f"fixed{x}{half}")
    design.lut("X5/Y5/SLICEA.K0", "one")
    design.lut("X9/Y5/SLICEA.K0", "other", "one")
    made = shorten(Placement(design.design))
    assert (made.before, made.after, made.moves) == (4, 4, 0)


def test_no_place_is_looked_for_beyond_its_reach() -> None:
    """All tiles near where the wires would be shortest are full of what cannot leave."""
    design = PlacedDesign()
    logic_row(design, range(1, 40), 5)
    fixed(design, "a", "X5/Y5/SLICED.FF0")
    for x in range(1, 5 + REACH + 1):
        for half in halves():
            place = f"X{x}/Y5/SLICE{half.format('K')}"
            if half != "D.{}1":
                design.add(f"fixed{x}{half}", "TRELLIS_COMB", place, {}, {"BEL": place}, F=f"fixed{x}{half}")
    for x in range(1, 40):
        design.add(f"rest{x}", "TRELLIS_COMB", f"X{x}/Y5/SLICED.K1", {}, {"BEL": "there"}, F=f"rest{x}")
    design.lut("X39/Y5/SLICEA.K0", "l", "a")
    placement = Placement(design.design)
    assert shorten(placement).moves == 0


def test_crowding_is_the_wire_of_each_net_spread_over_its_box() -> None:
    placement = Placement(random_design(1).design)
    tiles = np.zeros(placement.logic.shape)
    for cells in nets(placement):
        box = tiles[spans(placement, cells)]
        box += (sum(box.shape) - 2) * np.interp(len(cells), CELLS, TREE) / box.size
    around = np.pad(tiles, SQUARE // 2)
    made = crowding(placement)
    assert made.shape == tiles.shape
    for x, y in np.ndindex(*made.shape):
        assert made[x, y] == pytest.approx(around[x : x + SQUARE, y : y + SQUARE].mean())


@pytest.mark.parametrize("seed", range(3))
def test_wires_avoid_tiles_that_are_crowded(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    careless, careful = (Placement(random_design(seed).design) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(shortening, "CROWDED", 0.0)
        shorten(careless)
    monkeypatch.setattr(shortening, "ROOM", 0.6 * crowding(careless).max())
    shorten(careful)
    assert crowding(careful).max() < 0.95 * crowding(careless).max()
    assert length(careful) < 1.25 * length(careless)
