"""The commands ``sley fpga``; found through the entry points ``sley.commands``.

Commands of other parts of the system join through the entry points ``sley.fpga``.
"""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from sley.abi.config import ChipConfig, preset

app = typer.Typer(help="Sley on an FPGA board, real or simulated.", no_args_is_help=True)


@app.callback()
def fpga() -> None:
    """Sley on an FPGA board, real or simulated."""


@app.command()
def build(
    board: Annotated[str, typer.Argument(help="Board; sley fpga boards lists them.")],
    config: Annotated[
        str | None, typer.Option("--config", help="Preset; default: the one that fits the board.")
    ] = None,
    clock: Annotated[float | None, typer.Option("--clock", help="MHz; default: what that chip reaches.")] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="Device memory: sdram or on-chip; default: SDRAM if the board has it."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the bitstream, reports and logs.", file_okay=False)
    ] = Path("build"),
) -> None:
    """Build the bitstream of a board: chip, host bridge and memory. A clock that is missed is an error."""
    from sley.fpga.boards.board import BoardTop
    from sley.fpga.boards.known import BOARDS
    from sley.fpga.implementation import implement

    if board not in BOARDS:
        raise typer.BadParameter(f"no board {board!r}; there are {', '.join(BOARDS)}", param_hint="BOARD")
    target = BOARDS[board]
    chip: ChipConfig = preset(config) if config else target.config
    clock_hz = round(1e6 * clock) if clock else target.clock_hz
    try:
        top = BoardTop(target.system(chip, clock_hz, memory), clock_hz)
    except ValueError as error:
        hint = "--memory" if str(error).startswith("memory") else "--clock"
        raise typer.BadParameter(str(error), param_hint=hint) from None
    typer.echo(f"{chip.name} at {clock_hz / 1e6:g} MHz for {target.about}: this takes minutes; logs are in {output}")
    made = implement(target.platform(), top, output)
    typer.echo(f"bitstream {output / 'sley.bit'}; clock {made.fmax:.1f} MHz, {made.constraint:.1f} MHz needed")
    for kind, used in made.used.items():
        if used:
            typer.echo(f"  {kind:16} {used:7,} of {made.available[kind]:7,}")


@app.command()
def boards() -> None:
    """List the boards that a bitstream can be built for."""
    from sley.fpga.boards.known import BOARDS

    for board in BOARDS.values():
        memory = " or ".join(f"{size >> 10:,} KiB of {kind} memory" for kind, size in board.memory_kinds.items())
        typer.echo(f"{board.name:10} {board.about}: {board.config.name} at {board.clock_hz / 1e6:g} MHz, {memory}")


@app.command()
def report(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for bitstreams, reports and logs.", file_okay=False)
    ] = Path("build"),
    page: Annotated[
        Path | None, typer.Option("--page", help="Markdown file to write the table to; standard output when absent.")
    ] = None,
    only: Annotated[str, typer.Option("--only", help="Designs whose name has this in it.")] = "",
) -> None:
    """Implement the matrix of designs and devices, and print size and speed of each. Takes hours for all of it."""
    from sley.fpga.report import MATRIX, cells, implement_row, markdown

    rows = [row for row in MATRIX if only in f"{row.name} {row.device}"]
    if not rows:
        names = "; ".join(f"{row.name} {row.device}" for row in MATRIX)
        raise typer.BadParameter(f"no design has {only!r} in its name; there are {names}", param_hint="--only")
    done = []
    for row in rows:
        typer.echo(f"{row.name} on {row.device} ...", err=True)
        done.append(cells(row, implement_row(row, output)))
    text = markdown(done)
    if page is None:
        typer.echo(text, nl=False)
    else:
        page.write_text(text)


def _join() -> None:
    for point in sorted(entry_points(group="sley.fpga"), key=lambda point: point.name):
        try:
            app.command(point.name)(point.load())
        except ImportError as error:  # a part of the system that is not installed on this machine
            typer.echo(f"warning: command fpga {point.name} is missing: {error}", err=True)


_join()
