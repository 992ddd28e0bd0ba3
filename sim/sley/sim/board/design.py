"""Designs that ``sley fpga simulate`` can run: entry points of the group ``sley.boards``."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from sley.abi.config import ChipConfig
from sley.abi.transport import EngineError
from sley.hw.rtlil import component_rtlil
from sley.sim.board.board import SimulatedBoard
from sley.sim.board.host_uart import HostedDesign
from sley.sim.build.sources import Sources
from sley.sim.engines.design_text import GATEWARE_PACKAGES, cached_text, sources_of

GROUP = "sley.boards"
DEFAULT = "system"


def boards() -> dict[str, EntryPoint]:
    """Boards that can be simulated, by name.

    An entry point loads an object with ``config``, the board's ``ChipConfig``, and ``design``, a function of a
    ``ChipConfig``, the clock cycles of a bit on the serial line, and the bytes of device memory (``None``: as the
    board has them), which returns a component with one clock domain and the members ``uart_rx`` and ``uart_tx``.
    """
    return {point.name: point for point in entry_points(group=GROUP)}


def board_rtlil(board: str, config: ChipConfig, clocks_per_bit: int, memory_bytes: int | None) -> str:
    """RTLIL of a board with a host at its line."""
    design: Any = boards()[board].load().design(config, clocks_per_bit, memory_bytes)
    return component_rtlil(HostedDesign(design, clocks_per_bit), "board")


def open_board(
    config: ChipConfig | None, clocks_per_bit: int = 4, memory_bytes: int | None = None, board: str = DEFAULT
) -> SimulatedBoard:
    """A board that comes out of reset, compiled on first use; with the chip that it has, or with ``config``."""
    if board not in boards():
        raise EngineError(f"no board {board!r}; there are {', '.join(sorted(boards())) or 'none'}")
    config = config or boards()[board].load().config
    package = boards()[board].module.rpartition(".")[0]
    sources = Sources(lambda: sources_of(*GATEWARE_PACKAGES, package, __package__ or ""))
    arguments = (clocks_per_bit, memory_bytes)
    text = cached_text("rtlil", "il", _generate, config, board, *arguments, sources=sources)
    return SimulatedBoard(text)


def _generate(config: ChipConfig, board: str, clocks_per_bit: int, memory_bytes: int | None) -> str:
    try:
        return board_rtlil(board, config, clocks_per_bit, memory_bytes)
    except ValueError as error:
        raise EngineError(f"board {board} of {config.name}: {error}") from error
