"""The command ``sley fpga simulate``; found through the entry points ``sley.fpga``."""

import signal
from types import FrameType
from typing import Annotated

import typer

from sley.abi.config import PRESETS, configuration
from sley.abi.sizes import parse_size
from sley.sim.board.design import DEFAULT, boards, open_board
from sley.sim.board.terminal import Terminal


def simulate(
    board: Annotated[
        str, typer.Argument(metavar="BOARD-OR-CONFIG", help=f"A board, or a preset: {', '.join(PRESETS)}.")
    ] = "nano",
    config: Annotated[
        str | None, typer.Option("--config", help="Preset, or a JSON file like sley.json; default: the board's chip.")
    ] = None,
    clocks_per_bit: Annotated[
        int, typer.Option("--clocks-per-bit", min=4, help="Clock cycles of a bit on the serial line.")
    ] = 4,
    memory: Annotated[
        str | None, typer.Option("--memory", help="Device memory, such as 256K; the board's own when absent.")
    ] = None,
) -> None:
    """Run a board in simulation and print the serial port at which it can be reached, until interrupted."""
    if board in PRESETS and board not in boards():
        if config is not None:
            raise typer.BadParameter(
                f"{board} is a preset already; name a board, or leave it out", param_hint="--config"
            )
        board, config = DEFAULT, board
    try:
        memory_bytes = None if memory is None else parse_size(memory)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--memory") from None
    if memory_bytes == 0:
        raise typer.BadParameter("a board without memory runs no program; leave it out", param_hint="--memory")
    simulated = open_board(configuration(config) if config else None, clocks_per_bit, memory_bytes, board)
    terminal = Terminal(simulated)
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        what = f"{board} of {config}" if config else board
        typer.echo(f"{what} is at {terminal.name}; try: sley demo --device fpga:{terminal.name} -n 5")
        while not stopped:
            terminal.serve_once()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        terminal.close()
        typer.echo(f"{simulated.cycles:,} cycles")
        simulated.close()
