"""What a placement is as arrays, and back: the rules of tiles in both are the same."""

import numpy as np
import pytest
from placed_design import PlacedDesign, check_moves, halves, logic_row, random_design

from sley.fpga.placement.arrangement import Arrangement
from sley.fpga.placement.exchanges import DRAWS, EMPTY, SLOTS, exchange, pulls
from sley.fpga.placement.placement import LUT, RAM, RAM_WRITE, WRITE_PORT, Placement


def mixed() -> PlacedDesign:
    """LUTs and flip-flops between RAM, a wide LUT and a carry chain, none of which they may get in the way of."""
    design = PlacedDesign()
    for x in range(1, 6):
        logic_row(design, range(1, 6), x)
    for k, half in enumerate(("A.K0", "A.K1", "B.K0", "B.K1")):
        design.lut(f"X2/Y2/SLICE{half}", f"ram{k}", "n0", mode=RAM)
    for half in ("C.K0", "C.K1"):
        design.add(f"write{half}", LUT, f"X2/Y2/SLICE{half}", {"MODE": RAM_WRITE})
    design.add("write", WRITE_PORT, "X2/Y2/SLICEC.RAMW", WDO0="w")
    design.lut("X4/Y4/SLICEB.K0", "wide0", "n1", F1="wide1", M="n2", OFX="wide")
    design.lut("X4/Y4/SLICEB.K1", "wide1", "n3")
    design.carry_chain(3, 3, "sum", "n4", 5)
    for k in range(12):
        design.lut(f"X1/Y{1 + k // 6}/SLICE{halves()[k % 6].format('K')}", f"n{k}", f"n{(k + 5) % 12}")
        design.flip_flop(f"X5/Y{1 + k // 6}/SLICE{halves()[k % 6].format('FF')}", f"q{k}", f"n{k}")
    return design


def shaken(placement: Placement, seed: int) -> Arrangement:
    """With every exchange made that is legal."""
    arrangement = Arrangement(placement)
    parts, slots, nets = arrangement.parts, arrangement.slots, arrangement.nets
    none = pulls(len(parts.x), np.zeros((2, 0), np.int64), np.zeros(0))
    draws = np.random.default_rng(seed).random((20_000, DRAWS), np.float32)
    exchange(parts, slots, nets, none, np.zeros((64, 64)), 1e9, 5, draws)
    arrangement.finish()
    return arrangement


def test_what_may_lie_where() -> None:
    placement = Placement(mixed().design)
    arrangement = Arrangement(placement)

    def slot(x: int, y: int, name: str) -> int:
        return int(arrangement.slots.first[x, y]) + halves().index(name)

    accepts_lut, accepts_flip_flop = arrangement.slots.accepts_lut, arrangement.slots.accepts_flip_flop
    assert {slot // SLOTS for slot in np.nonzero(~accepts_flip_flop)[0]} == {
        slot(2, 2, "A.{}0") // SLOTS,
        slot(4, 4, "B.{}0") // SLOTS,
    }
    assert sum(~accepts_flip_flop) == SLOTS + 1
    carry = [slot(3, 3, half) for half in halves()[:6]]  # five cells, and what is left of the last slice
    ram = [slot(2, 2, half) for half in halves()[:6]]
    assert sorted(np.nonzero(~accepts_lut)[0]) == sorted([*carry, *ram])
    assert arrangement.slots.first[0, 0] == EMPTY


@pytest.mark.some(6)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mix", [True, False])
def test_each_part_lies_where_the_placement_would_let_it(seed: int, mix: bool) -> None:
    design = mixed() if mix else random_design(seed)
    before, after = Placement(design.design), Placement(design.design)
    shaken(after, seed)
    check_moves(before, after)
    moved = 0
    for movable in after.movables:
        cell = movable.cells[0]
        x, y = int(after.x[cell]), int(after.y[cell])
        assert (after.slot_of(cell), []) in list(after.slots_of(movable, x, y))
        moved += (x, y) != (before.x[cell], before.y[cell])
    assert moved > 0.8 * len(after.movables)


def test_parts_are_what_moves_and_then_each_other_cell() -> None:
    placement = Placement(random_design(2).design)
    arrangement = Arrangement(placement)
    parts, of_cell = arrangement.parts, arrangement.of_cell
    assert parts.movable == len(placement.movables)
    for number, movable in enumerate(placement.movables):
        assert set(of_cell[list(movable.cells)]) == {number}
        assert parts.lut[number] == (movable.lut is not None)
        assert parts.flip_flop[number] == (movable.flip_flop is not None)
    rest = [number for number in of_cell if number >= parts.movable]
    assert sorted(rest) == list(range(parts.movable, len(parts.x)))
    assert np.array_equal(parts.x[of_cell], placement.x)
    assert np.array_equal(parts.y[of_cell], placement.y)


def test_nets_join_parts() -> None:
    """A clock, and the wire between a LUT and its flip-flop, are none."""
    design = PlacedDesign()
    logic_row(design, range(1, 4), 1)
    design.lut("X1/Y1/SLICEA.K0", "d", "q")
    design.flip_flop("X1/Y1/SLICEA.FF0", "q", "d", fed=True)
    design.lut("X3/Y1/SLICEA.K0", "l", "q")
    arrangement = Arrangement(Placement(design.design))
    assert arrangement.sizes.tolist() == [3]  # q: its flip-flop, and two LUTs, of which one is of the same part
    assert arrangement.nets.box.tolist() == [[1, 3, 1, 1]]
    assert arrangement.nets.first.tolist() == [0, 2]
    assert arrangement.length == 2
