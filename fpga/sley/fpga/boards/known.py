"""The boards that ``sley fpga build`` knows."""

from collections.abc import Callable
from typing import Any

from sley.abi.config import preset
from sley.fpga.boards.board import Board
from sley.fpga.memory.sdram.part import COMMON_32M

ULX3S_DEVICES = {f"ecp5-{size.lower()}": size for size in ("25F", "45F", "85F")}
"""The board's FPGA: names as in reports, and as ``amaranth-boards`` knows them."""


def ulx3s(size: str) -> Any:
    """The platform of a ULX3S with this FPGA, to be used once."""
    from amaranth_boards import ulx3s as platforms

    return getattr(platforms, f"ULX3S_{size}_Platform")()


def _ulx3s(size: str) -> Callable[[], Any]:
    return lambda: ulx3s(size)


BOARDS = {
    board.name: board
    for board in (
        Board(
            "ulx3s", "ULX3S with an ECP5-85F", _ulx3s("85F"), preset("nano"), 25_000_000, 1 << 18, 1_000_000, COMMON_32M
        ),
    )
}
