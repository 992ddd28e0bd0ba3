"""Rows of the report and the command line, without a tool."""

import re
from functools import partial
from pathlib import Path

from amaranth.hdl import Fragment
from typer.testing import CliRunner

from sley.abi.config import preset
from sley.fpga.boards.known import BOARDS, SMALL
from sley.fpga.commands.app import app
from sley.fpga.devices.family import Resources
from sley.fpga.flow.implementation import CriticalPath, Implementation
from sley.fpga.flow.synthesis import Block, Synthesis
from sley.fpga.report.report import COLUMNS, cells, matrix

RUNNER = CliRunner()
PAGE = Path(__file__).parents[3] / "docs/reference/fpga.md"
TAKEN = Resources(1234, 567, 16, 8)


def test_row_of_a_placed_design() -> None:
    row = next(row for row in matrix() if row.name == "array 4x4, int8" and row.device.name == "ecp5-85f")
    path = CriticalPath(5.0, 3.0, ("a", "b"))
    made = Implementation(Path("sley.bit"), TAKEN, 200.0, 250.0, {}, {}, path, 90.0)
    assert not made.met
    found = dict(zip(COLUMNS, cells(row, made), strict=True))
    assert found == {
        "design": "array 4x4, int8",
        "device": "ecp5-85f",
        "LUT": "1,234",
        "FF": "567",
        "DSP": "16",
        "BRAM": "8",
        "asked MHz": "250",
        "Fmax MHz": "200.0",
        "GOP/s": "6.40",
        "MAC/DSP": "1.00",
        "MMAC/s/DSP": "200",
        "critical path": "5.0 ns, 60% routing: a → b",
        "min": "1.5",
    }


def test_row_of_a_netlist_has_no_speed() -> None:
    row = next(row for row in matrix() if row.name == "chip nano" and row.board is None)
    found = dict(zip(COLUMNS, cells(row, Synthesis(Block("sley", TAKEN, ()), {}, 60.0)), strict=True))
    assert (found["asked MHz"], found["Fmax MHz"], found["GOP/s"]) == ("-", "-", "-")
    assert (found["LUT"], found["MAC/DSP"], found["critical path"]) == ("1,234", "1.00", "synthesis only")
    assert found["MMAC/s/DSP"] == "-"
    large = Synthesis(Block("sley", row.device.capacity + Resources(ff=1), ()), {}, 60.0)
    assert cells(row, large)[-2] == "synthesis only, does not fit"


def test_the_page_has_all_chips_of_the_matrix_and_what_they_are() -> None:
    page = PAGE.read_text()
    chips = [row for row in matrix() if row.dense]
    for row in chips:
        assert f"| {row.name} | {row.device.name} |" in page
    written = {eval(expression, {"preset": preset}) for expression in re.findall(r"`(preset\(.*\))`", page)}
    assert written == {row.design.args[0] for row in chips if isinstance(row.design, partial)} - {SMALL}


def test_every_device_of_a_family_is_in_the_report() -> None:
    assert {row.device.family.name for row in matrix()} == {"ecp5", "ice40", "gowin", "xc7", "xcu"}
    for row in matrix():
        assert (row.board is None) or row.device.family.bitstream
        if not row.name.startswith("chip"):  # those take seconds; test_boards.py has them
            Fragment.get(row.design(), None)


def test_boards_says_where_no_chip_fits() -> None:
    lines = RUNNER.invoke(app, ["boards"]).output.splitlines()
    assert [line.split()[0] for line in lines] == list(BOARDS)
    for line, board in zip(lines, BOARDS.values(), strict=True):
        assert ("no chip, --without-chip" in line) == (not board.fits)


def said(*arguments: str) -> str:
    result = RUNNER.invoke(app, [*arguments])
    assert result.exit_code == 2
    return re.sub(r"[\s│]+", " ", result.output)


def test_errors_name_value_and_choice() -> None:
    assert "no board 'ulx4'; there are ulx3s" in said("build", "ulx4")
    clock = said("build", "icebreaker", "--without-chip", "--clock", "47.3")
    assert "the clock is 47.3 MHz; from 12 MHz the PLL makes" in clock
    for board in (board for board in BOARDS.values() if not board.fits):
        assert f"no preset fits {board.about}; take --without-chip" in said("build", board.name)
    assert "no family 'spartan'; there are ecp5, ice40" in said("area", "nano", "--family", "spartan")
    assert "no design 'core'; there are system, accumulators, arbiter" in said("area", "nano", "--design", "core")
    assert "micro" in said("area", "micro")
    assert "no design has 'zzz' in its name; there are array" in said("report", "--only", "zzz")
