"""How long paths of a placed ECP5 take: cell by cell, and what ends them."""

import pytest
from placed_design import PlacedDesign

from sley.fpga.placement.delays import ALONG_CARRY, CLOCK_TO, INTO_CARRY, PRODUCT, THROUGH, TILE, WIRE, Delays
from sley.fpga.placement.placement import FLIP_FLOP, Placement


def analysed(design: PlacedDesign) -> Delays:
    delays = Delays(Placement(design.design))
    delays.analyse()
    return delays


def test_luts_between_flip_flops() -> None:
    """A wire to each, and none to the flip-flop that a LUT feeds; from the longest of its inputs."""
    design = PlacedDesign()
    design.flip_flop("X1/Y1/SLICEA.FF0", "near", "end")
    design.flip_flop("X20/Y1/SLICEA.FF0", "far", "end")
    design.lut("X2/Y3/SLICEA.K0", "one", "near", "far")
    design.lut("X2/Y4/SLICEA.K0", "two", "one")
    design.flip_flop("X2/Y4/SLICEA.FF0", "end", "two", fed=True)
    delays = analysed(design)
    path = CLOCK_TO[FLIP_FLOP] + 2 * WIRE + TILE * (18 + 2 + 1) + 2 * THROUGH
    assert delays.critical == pytest.approx(path)
    names = ["global", "near", "far", "one", "two", "end"]
    assert delays.end == pytest.approx([0, *[CLOCK_TO[FLIP_FLOP] + WIRE + TILE * d for d in (4, 21)], 0, 0, path])
    assert delays.arrival[names.index("one")] == pytest.approx(CLOCK_TO[FLIP_FLOP] + WIRE + 20 * TILE + THROUGH)
    assert delays.departure[names.index("one")] == pytest.approx(WIRE + TILE + THROUGH)
    assert delays.departure[names.index("far")] == pytest.approx(path - CLOCK_TO[FLIP_FLOP])


def test_a_carry_chain() -> None:
    design = PlacedDesign()
    design.flip_flop("X1/Y1/SLICEA.FF0", "q", "s2")
    design.lut("X1/Y1/SLICEB.K0", "s0", "q", mode="CCU2", FCO="c0")
    design.lut("X1/Y1/SLICEB.K1", "s1", "q", mode="CCU2", FCI="c0", FCO="c1")
    design.lut("X1/Y1/SLICEC.K0", "s2", "", mode="CCU2", FCI="c1")
    assert analysed(design).critical == pytest.approx(CLOCK_TO[FLIP_FLOP] + 2 * WIRE + INTO_CARRY + 2 * ALONG_CARRY)


@pytest.mark.parametrize(
    ("port", "goes_on"), [("A", True), ("WRE", False), ("LSR", False), ("CE", False), ("M", False)]
)
def test_where_a_path_ends(port: str, goes_on: bool) -> None:
    """At a flip-flop's inputs and a RAM's write port, and not at its read address."""
    design = PlacedDesign()
    design.flip_flop("X1/Y1/SLICEA.FF0", "q", "")
    if port in ("A", "WRE"):
        design.lut("X1/Y3/SLICEA.K0", "read", "", mode="DPRAM", **{port: "q"})
    else:
        design.add("read", "TRELLIS_FF", "X1/Y3/SLICEA.FF0", Q="read", CLK="clk", **{port: "q"})
    design.flip_flop("X1/Y5/SLICEA.FF0", "end", "read")
    one = CLOCK_TO[FLIP_FLOP] + WIRE + 2 * TILE
    assert analysed(design).critical == pytest.approx(one + (THROUGH + WIRE + 2 * TILE if goes_on else 0))


@pytest.mark.parametrize("registers", [{}, {"REG_INPUTA_CLK": "NONE"}, {"REG_INPUTA_CLK": "CLK0"}])
def test_a_multiplier(registers: dict[str, str]) -> None:
    """One without registers is on the path; one with them ends it."""
    design = PlacedDesign()
    design.flip_flop("X1/Y1/SLICEA.FF0", "q", "")
    design.add("block", "MULT18X18D", "X1/Y10/MULT18_0", registers, A0="q", P0="p")
    design.flip_flop("X1/Y11/SLICEA.FF0", "end", "p")
    first, second = CLOCK_TO[FLIP_FLOP] + WIRE + 9 * TILE, WIRE + TILE
    whole = first + PRODUCT + second
    assert analysed(design).critical == pytest.approx(first if "CLK0" in registers.values() else whole)


def test_constants_clocks_and_loops_are_no_paths() -> None:
    design = PlacedDesign()
    design.lut("X90/Y90/SLICEA.K0", "constant")
    design.lut("X1/Y1/SLICEA.K0", "l", "constant", "q")
    design.flip_flop("X1/Y1/SLICEB.FF0", "q", "l", enable="constant")
    design.lut("X1/Y1/SLICEC.K0", "round", "about", "q")
    design.lut("X1/Y1/SLICEC.K1", "about", "round")
    assert analysed(design).critical == pytest.approx(CLOCK_TO[FLIP_FLOP] + 2 * WIRE + THROUGH)


def test_a_block_ram_answers_late() -> None:
    design = PlacedDesign()
    design.add("ram", "DP16KD", "X5/Y5/EBR0", DOA0="word", ADA0="end")
    design.flip_flop("X5/Y7/SLICEA.FF0", "end", "word")
    assert analysed(design).critical == pytest.approx(CLOCK_TO["DP16KD"] + WIRE + 2 * TILE)
