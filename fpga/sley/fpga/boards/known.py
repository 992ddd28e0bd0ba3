"""The boards that ``sley fpga build`` knows."""

from typing import Any

from sley.abi.config import preset
from sley.fpga.boards.board import Board


def _ulx3s_85f() -> Any:
    from amaranth_boards.ulx3s import ULX3S_85F_Platform

    return ULX3S_85F_Platform()


BOARDS = {
    board.name: board
    for board in (
        Board("ulx3s", "ULX3S with an ECP5-85F", _ulx3s_85f, preset("nano"), 25_000_000, 1 << 18, 1_000_000),
    )
}
