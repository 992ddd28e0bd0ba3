"""Where cells of a placed ECP5 may lie: nextpnr's rules for a tile, moves, and the file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from placed_design import PlacedDesign

from sley.fpga.placement.placement import FIXED, Chain, Movable, Placement


def numbered(placement: Placement, lut: str | None, flip_flop: str | None = None) -> Movable:
    return Movable(*(placement.names.index(name) if name else None for name in (lut, flip_flop)))


def written(placement: Placement, path: Path) -> dict[str, Any]:
    placement.write(path)
    top: dict[str, Any] = json.loads(path.read_text())["modules"]["top"]
    return top


def places(top: dict[str, Any]) -> dict[str, str]:
    return {name: cell["attributes"]["NEXTPNR_BEL"] for name, cell in top["cells"].items()}


def full(design: PlacedDesign, x: int, y: int, but: tuple[str, ...] = ()) -> None:
    """A tile of LUTs."""
    for half in (f"{name}.K{k}" for name in "ABCD" for k in (0, 1)):
        if half not in but:
            design.lut(f"X{x}/Y{y}/SLICE{half}", f"full{x}_{y}_{half}", "a")


def test_what_may_be_moved() -> None:
    """LUTs alone, with the flip-flop that they feed, and flip-flops; nothing that is joined by wires of a tile."""
    design = PlacedDesign()
    design.lut("X1/Y1/SLICEA.K0", "alone", "q")
    design.lut("X1/Y1/SLICEA.K1", "front", "q")
    design.flip_flop("X1/Y1/SLICEA.FF1", "q", "front", fed=True)
    design.flip_flop("X1/Y1/SLICEB.FF1", "by_wire", "alone")
    design.lut("X1/Y1/SLICEB.K0", "named", "q")
    design.add("placed", "TRELLIS_COMB", "X1/Y1/SLICED.K1", attributes={"BEL": "X1/Y1/SLICED.K1"}, F="f", A="q")
    design.lut("X2/Y1/SLICEA.K0", "move_chain", "q", mode="CCU2", FCO="c")
    design.lut("X2/Y1/SLICEA.K1", "carried", "q", mode="CCU2", FCI="c")
    design.lut("X2/Y1/SLICEC.K0", "wide0", "q", F1="wide1", M="q", OFX="wide")
    design.lut("X2/Y1/SLICEC.K1", "wide1", "q")
    design.lut("X3/Y1/SLICEA.K0", "ram", "q", mode="DPRAM")
    design.flip_flop("X2/Y1/SLICEC.FF0", "behind_wide", "wide", fed=True)
    design.flip_flop("X2/Y1/SLICEA.FF0", "behind_carry", "move_chain", fed=True)
    placement = Placement(design.design)
    names = {tuple(placement.names[cell] for cell in movable.cells) for movable in placement.movables}
    assert names == {("alone",), ("front", "q"), ("by_wire",), ("named",)}
    (chain,) = placement.chains
    assert [placement.names[cell] for cell in chain.cells] == ["move_chain", "behind_carry", "carried"]
    assert chain.offsets == (0, 0, 0)


def test_a_chain_with_a_place_by_name_stays() -> None:
    design = PlacedDesign()
    design.lut("X2/Y1/SLICEA.K0", "move_chain", "q", mode="CCU2", FCO="c")
    place = "X2/Y1/SLICEA.K1"
    design.add("carried", "TRELLIS_COMB", place, {"MODE": "CCU2"}, {"BEL": place}, F="carried", FCI="c")
    assert Placement(design.design).chains == []


def chain_and(*others: tuple[str, dict[str, str]], mode: str | None = None) -> tuple[Placement, Chain]:
    """A chain over two tiles, from column 2 on, whose flip-flop has the reset r, and flip-flops and LUTs elsewhere."""
    design = PlacedDesign()
    design.carry_chain(2, 1, "sum", "a", 10, reset="r")
    for k, (place, rules) in enumerate(others):
        if "FF" in place:
            design.flip_flop(place, f"other{k}", "a", **rules)
        else:
            design.lut(place, f"other{k}", "a", mode=mode)
    for x in range(1, 12):
        design.lut(f"X{x}/Y3/SLICED.K1", f"row{x}", "a")
    placement = Placement(design.design)
    return placement, placement.chains[0]


def test_a_chain_moves_as_a_whole(tmp_path: Path) -> None:
    placement, chain = chain_and(("X6/Y3/SLICEB.K0", {}), ("X7/Y3/SLICEA.K1", {}), ("X7/Y3/SLICEC.FF0", {"reset": "r"}))
    before = placement.places()
    assert chain.offsets == (0,) * 8 + (1,) * 3
    assert placement.occupants(chain, 6, 3) is not None
    names = {placement.names[cell] for movable in placement.occupants(chain, 6, 3) or () for cell in movable.cells}
    assert names == {"other0", "other1", "row6"}  # not what is behind its end
    assert placement.occupants(chain, 9, 3) == [numbered(placement, "row9")]
    assert placement.occupants(chain, 2, 1) == []
    placement.move(numbered(placement, "row9"), 8, 3, ("A", 0))
    placement.move_chain(chain, 9, 3)
    found = places(written(placement, tmp_path / "out.json"))
    assert found["sum0"] == "X9/Y3/SLICEA.K0"
    assert found["sum9"] == "X10/Y3/SLICEA.K1"
    assert found["sum_q"] == "X10/Y3/SLICEA.FF1"
    assert placement.slot(numbered(placement, "other0"), 9, 3) is None
    assert placement.slot(numbered(placement, "other0"), 2, 1) == ("A", 0)
    placement.restore(before)
    assert places(written(placement, tmp_path / "out.json"))["sum9"] == "X3/Y1/SLICEA.K1"
    assert placement.slot(numbered(placement, "other0"), 9, 3) == ("A", 0)


@pytest.mark.parametrize(
    ("other", "mode", "leaves"),
    [
        (("X7/Y3/SLICEC.FF0", {"reset": "s"}), None, True),  # another reset in the tile of the chain's flip-flop
        (("X7/Y3/SLICEA.FF0", {"reset": "r", "enable": "e"}), None, True),
        (("X7/Y3/SLICEC.K0", {}), "DPRAM", None),
        (("X6/Y3/SLICEB.K0", {}), "DPRAM", None),
        (("X6/Y3/SLICEB.K0", {}), "CCU2", None),
        (("X7/Y3/SLICEC.K0", {}), "CCU2", False),
    ],
)
def test_what_is_in_the_way_of_a_chain(
    other: tuple[str, dict[str, str]], mode: str | None, leaves: bool | None
) -> None:
    placement, chain = chain_and(other, mode=mode)
    found = placement.occupants(chain, 6, 3)
    if leaves is None:
        assert found is None
    else:
        assert found is not None
        assert (placement.names.index("other0") in {cell for movable in found for cell in movable.cells}) == leaves


def test_a_chain_stays_on_logic() -> None:
    placement, chain = chain_and()
    assert placement.occupants(chain, 11, 3) is None  # its second tile would be column 12
    assert placement.occupants(chain, 6, 2) is None
    assert placement.occupants(chain, -1, 3) is None


@pytest.mark.parametrize("kind", ["lut", "pair", "flip_flop"])
def test_an_empty_tile(kind: str) -> None:
    design = PlacedDesign()
    design.lut("X1/Y1/SLICED.K1", "l", "a")
    design.flip_flop("X1/Y1/SLICED.FF1", "q", "l", fed=True)
    placement = Placement(design.design)
    movable = numbered(placement, "l" if kind != "flip_flop" else None, "q" if kind != "lut" else None)
    assert placement.slot(movable, 5, 5) == ("A", 0)


def test_a_full_tile_and_its_last_place() -> None:
    design = PlacedDesign()
    full(design, 2, 2, but=("C.K1",))
    full(design, 3, 3)
    design.lut("X1/Y1/SLICEA.K0", "l", "a")
    design.flip_flop("X1/Y1/SLICEA.FF0", "q", "l", fed=True)
    design.flip_flop("X2/Y2/SLICEC.FF1", "other", "a")
    placement = Placement(design.design)
    assert placement.slot(numbered(placement, "l"), 2, 2) == ("C", 1)
    assert placement.slot(numbered(placement, "l"), 3, 3) is None
    assert placement.slot(numbered(placement, "l", "q"), 2, 2) is None  # the flip-flop's place beside it is taken
    assert placement.slot(numbered(placement, None, "q"), 2, 2) == ("A", 0)


@pytest.mark.parametrize(
    ("theirs", "ours", "slot"),
    [
        ({}, {}, ("A", 1)),
        ({"enable": "e"}, {"enable": "e"}, ("A", 1)),
        ({"enable": "e"}, {"enable": "f"}, ("B", 0)),
        ({"enable": "e"}, {}, ("B", 0)),
        ({"CEMUX": "1"}, {"CEMUX": "CE"}, ("B", 0)),
        ({"GSR": "DISABLED"}, {"GSR": "ENABLED"}, ("B", 0)),
        ({"reset": "r"}, {"reset": "r"}, ("A", 1)),
        ({"reset": "r"}, {"reset": "s"}, None),
        ({"reset": "r"}, {}, None),
        ({"LSRMUX": "INV"}, {"LSRMUX": "LSR"}, None),
        ({"SRMODE": "ASYNC"}, {"SRMODE": "LSR_OVER_CE"}, None),
        ({"CLKMUX": "INV"}, {"CLKMUX": "CLK"}, None),
    ],
)
def test_flip_flops_share_enable_in_a_slice_and_reset_in_a_tile(
    theirs: dict[str, str], ours: dict[str, str], slot: tuple[str, int] | None
) -> None:
    design = PlacedDesign()
    design.flip_flop("X2/Y2/SLICEA.FF0", "theirs", "a", **theirs)
    design.flip_flop("X1/Y1/SLICEA.FF0", "ours", "a", **ours)
    placement = Placement(design.design)
    assert placement.slot(numbered(placement, None, "ours"), 2, 2) == slot


@pytest.mark.parametrize("mode", ["CCU2", "DPRAM", "RAMW_BLOCK"])
def test_carry_and_ram_have_a_slice_alone(mode: str) -> None:
    """RAM keeps flip-flops out of the whole tile."""
    design = PlacedDesign()
    design.lut("X2/Y2/SLICEA.K0", "theirs", "a", mode=mode)
    design.lut("X1/Y1/SLICEA.K0", "l", "a")
    design.flip_flop("X1/Y1/SLICEC.FF0", "q", "a")
    placement = Placement(design.design)
    assert placement.slot(numbered(placement, "l"), 2, 2) == ("B", 0)
    assert placement.slot(numbered(placement, None, "q"), 2, 2) == (("A", 0) if mode == "CCU2" else None)


def test_a_wire_to_one_flip_flop_or_to_a_multiplexer() -> None:
    design = PlacedDesign()
    design.lut("X2/Y2/SLICEA.K0", "wide", "a", M="b")
    design.flip_flop("X1/Y1/SLICEC.FF0", "q", "a")
    placement = Placement(design.design)
    assert placement.slot(numbered(placement, None, "q"), 2, 2) == ("A", 1)


def test_what_may_change_places() -> None:
    design = PlacedDesign()
    design.lut("X1/Y1/SLICEA.K0", "l", "a")
    design.lut("X1/Y1/SLICEB.K0", "m", "a")
    design.flip_flop("X1/Y1/SLICEB.FF0", "p", "m", fed=True, enable="e")
    design.lut("X2/Y2/SLICEA.K0", "other", "a")
    design.lut("X2/Y2/SLICEB.K1", "pair", "a")
    design.flip_flop("X2/Y2/SLICEB.FF1", "pair_q", "pair", fed=True, enable="e")
    design.lut("X2/Y2/SLICEC.K1", "differs", "a")
    design.flip_flop("X2/Y2/SLICEC.FF1", "differs_q", "differs", fed=True, enable="f")
    placement = Placement(design.design)
    assert list(placement.interchangeable(numbered(placement, "l"), 2, 2)) == [numbered(placement, "other")]
    assert list(placement.interchangeable(numbered(placement, "m", "p"), 2, 2)) == [
        numbered(placement, "pair", "pair_q")
    ]
    placement.exchange(numbered(placement, "m", "p"), numbered(placement, "pair", "pair_q"))
    assert placement.slot(numbered(placement, "other"), 1, 1) == ("A", 1)


def test_moves_are_written_and_taken_back(tmp_path: Path) -> None:
    design = PlacedDesign()
    design.lut("X1/Y1/SLICEA.K0", "l", "a")
    design.flip_flop("X1/Y1/SLICEA.FF0", "q", "l", fed=True)
    design.lut("X2/Y2/SLICED.K0", "m", "a")
    design.flip_flop("X2/Y2/SLICED.FF0", "p", "m", fed=True)
    design.add("block", "MULT18X18D", "X4/Y4/MULT18_0", A0="q", CLK0="clk", CE1="")
    start = design.design
    start["modules"]["top"]["settings"] |= {"target_freq": "12.0", "timing/allowFail": "1", "placer": "static"}
    (tmp_path / "placed.json").write_text(json.dumps(start))
    placement = Placement.read(tmp_path / "placed.json")
    pair = numbered(placement, "l", "q")
    before = placement.places()
    placement.move(pair, 7, 8, ("C", 1))
    placement.exchange(pair, numbered(placement, "m", "p"))
    top = written(placement, tmp_path / "moved.json")
    assert places(top) == {
        "global": "X0/Y0/DCC0",
        "l": "X2/Y2/SLICED.K0",
        "q": "X2/Y2/SLICED.FF0",
        "m": "X7/Y8/SLICEC.K1",
        "p": "X7/Y8/SLICEC.FF1",
        "block": "X4/Y4/MULT18_0",
    }
    assert {cell["attributes"]["BEL_STRENGTH"] for cell in top["cells"].values()} == {FIXED}
    block = top["cells"]["block"]["connections"]
    assert block["CLK0"] == start["modules"]["top"]["cells"]["block"]["connections"]["CLK0"]
    assert all(block[f"{signal}{k}"] == ["x"] for signal in ("CE", "RST") for k in range(4))
    assert top["settings"] == {"arch.type": "lfe5u_85f", "timing_driven": f"{1:032b}"}
    placement.restore(before)
    assert places(written(placement, tmp_path / "back.json")) == places(start["modules"]["top"])
    assert placement.slot(pair, 7, 8) == ("A", 0)
    assert np.array_equal(placement.x, before[0])
