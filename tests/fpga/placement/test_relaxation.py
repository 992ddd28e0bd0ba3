"""The linear programme against places tried one by one, and against the paths that it promises."""

import random

import numpy as np
import pytest
from placed_design import PlacedDesign

from sley.fpga.placement.delays import CLOCK_TO, INTO_CARRY, THROUGH, TILE, WIRE, Delays
from sley.fpga.placement.placement import FLIP_FLOP, Movable, Placement
from sley.fpga.placement.relaxation import REACH, relax


def fixed(design: PlacedDesign, place: str, name: str, data: str = "") -> None:
    design.add(name, "TRELLIS_FF", place, {}, {"BEL": place}, Q=name, CLK="clk", M=data)


def read(design: PlacedDesign) -> tuple[Placement, Delays]:
    for x in (0, 60):  # the ends of the device
        design.lut(f"X{x}/Y{x}/SLICED.K1", f"corner{x}", "nothing")
    placement = Placement(design.design)
    delays = Delays(placement)
    delays.analyse()
    return placement, delays


def between(start: tuple[int, int]) -> tuple[Placement, Delays, list[Movable]]:
    """A LUT that lies there, between flip-flops in columns 5 and 9 of row 5."""
    design = PlacedDesign()
    fixed(design, "X5/Y5/SLICEA.FF0", "q")
    design.lut(f"X{start[0]}/Y{start[1]}/SLICEA.K0", "l", "q")
    fixed(design, "X9/Y5/SLICEA.FF0", "end", "l")
    placement, delays = read(design)
    return placement, delays, [m for m in placement.movables if placement.names[m.cells[0]] == "l"]


@pytest.mark.parametrize(("start", "nearest"), [(2, 5), (6, 6), (7, 7), (20, 9)])
def test_between_its_ends(start: int, nearest: int) -> None:
    """Anywhere there is as good; of these the nearest to where it lies."""
    found = relax(*between((start, 9)), 0)
    assert found.critical == pytest.approx(CLOCK_TO[FLIP_FLOP] + 2 * WIRE + THROUGH + 4 * TILE)
    assert (found.x[0], found.y[0]) == pytest.approx((nearest, 5))


def test_within_reach() -> None:
    assert relax(*between((50, 5)), 0).x[0] == pytest.approx(50 - REACH)


def test_a_chain_lies_where_its_far_end_is_wanted() -> None:
    """Its cells of the second tile lie a column behind the first."""
    design = PlacedDesign()
    fixed(design, "X5/Y5/SLICEA.FF0", "q")
    design.carry_chain(10, 5, "sum", "q", 9)
    fixed(design, "X3/Y5/SLICEA.FF0", "end", "sum8")
    placement, delays = read(design)
    found = relax(placement, delays, placement.chains, 0)
    # five columns at least on the way to its first cell and from its last one
    shortest = CLOCK_TO[FLIP_FLOP] + 2 * WIRE + INTO_CARRY + 8 * 0.04 + TILE * 3
    assert found.critical == pytest.approx(shortest, abs=1e-6)
    assert 2 - 1e-6 <= found.x[0] <= 5 + 1e-6


@pytest.mark.parametrize("seed", range(8))
def test_no_places_are_better_and_its_own_are_as_good(seed: int) -> None:
    """Of random designs: the paths that it promises are those at its places; no other places within reach, random ones
    near these and all of one cell, have a shorter critical path."""
    choose = random.Random(seed)
    design = PlacedDesign()
    outputs = [f"f{k}" for k in range(4)]
    for k in range(4):
        fixed(
            design,
            f"X{choose.randrange(10, 50)}/Y{choose.randrange(10, 50)}/SLICEA.FF0",
            f"f{k}",
            f"n{choose.randrange(4, 12)}",
        )
    for k in range(12):
        x, y = choose.randrange(15, 45), choose.randrange(15, 45)
        source = choose.sample(outputs, k=choose.randint(1, 3))
        if choose.random() < 0.3:
            design.flip_flop(f"X{x}/Y{y}/SLICEB.FF0", f"n{k}", source[0])
        else:
            design.lut(f"X{x}/Y{y}/SLICEC.K{k % 2}", f"n{k}", *source)
        outputs.append(f"n{k}")
    placement, delays = read(design)
    movables = [m for m in placement.movables if placement.names[m.cells[0]].startswith("n")]
    found = relax(placement, delays, movables, 0)
    cells = np.array([m.cells[0] for m in movables])
    start = placement.x[cells], placement.y[cells]
    before = delays.critical

    def longest(x: object, y: object) -> float:
        placement.x, placement.y = placement.x.astype(float), placement.y.astype(float)
        placement.x[cells], placement.y[cells] = x, y
        delays.analyse()
        return delays.critical

    assert longest(found.x, found.y) == pytest.approx(found.critical, abs=1e-5)
    assert found.critical <= before + 1e-6
    noise = np.random.default_rng(seed)
    for spread in (0.5, 2, 8) * 30:
        places = [
            np.clip(here + noise.normal(0, spread, len(cells)), old - REACH, old + REACH)
            for here, old in zip((found.x, found.y), start, strict=True)
        ]
        assert longest(*places) >= found.critical - 1e-5


def test_a_short_path_that_would_become_the_longest_counts() -> None:
    """A flip-flop far from what is before it, and near to what is behind it: shares are equal in the middle."""
    design = PlacedDesign()
    fixed(design, "X5/Y5/SLICEA.FF0", "first")
    design.flip_flop("X30/Y5/SLICEA.FF0", "q", "first")
    fixed(design, "X35/Y5/SLICEA.FF0", "end", "q")
    placement, delays = read(design)
    (movable,) = (m for m in placement.movables if placement.names[m.cells[0]] == "q")
    found = relax(placement, delays, [movable], 0.9 * delays.critical)
    assert found.critical == pytest.approx(CLOCK_TO[FLIP_FLOP] + WIRE + TILE * 15)
    assert found.x[0] == pytest.approx(20)


def test_a_chain_ends_on_the_device() -> None:
    design = PlacedDesign()
    fixed(design, "X60/Y5/SLICEA.FF0", "q")
    design.carry_chain(45, 5, "sum", "q", 17)
    placement, delays = read(design)
    assert max(placement.chains[0].offsets) == 2
    assert relax(placement, delays, placement.chains, 0).x[0] == pytest.approx(58)


def test_nothing_to_move() -> None:
    design = PlacedDesign()
    fixed(design, "X5/Y5/SLICEA.FF0", "q")
    fixed(design, "X9/Y5/SLICEA.FF0", "end", "q")
    placement, delays = read(design)
    found = relax(placement, delays, [], 0)
    assert (found.critical, len(found.x), len(found.y)) == (delays.critical, 0, 0)
