"""The boards that ``sley fpga build`` knows."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sley.abi.config import ChipConfig, preset
from sley.fpga.boards.board import Board
from sley.fpga.memory.sdram.part import COMMON_32M


def _platform(module: str, name: str) -> Callable[[], Any]:
    """Makes a platform of ``amaranth-boards``, to be used once."""
    return lambda: getattr(import_module(f"amaranth_boards.{module}"), name)()


def _board(
    name: str, about: str, platform: tuple[str, str], clock_mhz: int, memory_kib: int, fits: bool = True
) -> Board:
    clock_hz, memory_bytes, baud = 1_000_000 * clock_mhz, memory_kib << 10, 1_000_000
    return Board(name, about, _platform(*platform), preset("nano"), clock_hz, memory_bytes, baud, fits=fits)


NANO1 = preset("nano").replace(name="nano1", vector_lanes=1)
"""``nano`` with one fp32 lane."""
SMALL = ChipConfig(
    name="small",
    vector_lanes=1,
    scratchpad_banks=1,
    accumulator_banks=1,
    unit_queue=2,
    queues=1,
    contexts=1,
    tlb_entries=1,
    addr_bits=25,
)
"""The smallest chip: an array of 4 x 4 and one of everything that can be one. It runs what ``nano`` runs."""

BOARDS = {
    board.name: board
    for board in (
        Board(
            "ulx3s",
            "ULX3S with an ECP5-85F",
            _platform("ulx3s", "ULX3S_85F_Platform"),
            NANO1,
            25_000_000,
            1 << 18,
            1_000_000,
            COMMON_32M,
        ),
        Board(
            "ecpix5",
            "ECPIX-5 with an ECP5-5G-85F",
            _platform("ecpix5", "ECPIX585Platform"),
            NANO1,
            100_000_000,
            1 << 17,
            1_000_000,
        ),
        Board(
            "ulx3s_25f",
            "ULX3S with an ECP5-25F",
            _platform("ulx3s", "ULX3S_25F_Platform"),
            SMALL,
            40_000_000,
            1 << 15,
            1_000_000,
            COMMON_32M,
        ),
        _board("icebreaker", "iCEBreaker with an iCE40UP5K", ("icebreaker", "ICEBreakerPlatform"), 18, 8, fits=False),
        _board(
            "tang_primer_20k",
            "Tang Primer 20K on its dock with a GW2A-18",
            ("tang_primer_20k", "TangPrimer20kDockPlatform"),
            27,
            32,
            fits=False,
        ),
        _board("arty_a7", "Arty A7-35T with an XC7A35T", ("arty_a7", "ArtyA7_35Platform"), 50, 64, fits=False),
        _board("arty_a7_100", "Arty A7-100T with an XC7A100T", ("arty_a7", "ArtyA7_100Platform"), 50, 256),
    )
}
