"""``sley fpga build`` and ``sley fpga boards``: bitstreams, and what they can be built for."""

import math
from pathlib import Path
from typing import Annotated

import typer

from sley.abi.types import ElementType
from sley.fpga.commands.configuration import chosen_configuration
from sley.fpga.flow.toolchain import require_tools


def build(
    board: Annotated[str, typer.Argument(help="Board; sley fpga boards lists them.")],
    config: Annotated[
        str | None, typer.Option("--config", help="Preset, or a JSON file like sley.json; default: the board's.")
    ] = None,
    clock: Annotated[float | None, typer.Option("--clock", help="MHz; default: the board's.")] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="Device memory: sdram or on-chip; default: SDRAM if the board has it."),
    ] = None,
    chip: Annotated[
        bool, typer.Option("--chip/--without-chip", help="Without a chip bridge and memory are left, to try the line.")
    ] = True,
    array_blocks: Annotated[
        int | None,
        typer.Option(
            "--array-blocks",
            min=0,
            help="DSP blocks for arrays of int8: with fewer than elements, two share one on an ECP5, or multiply in "
            "logic; default: as many as leave some to other units.",
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", min=1, help="Placements to try; the one with the highest clock by nextpnr's estimate is routed."
        ),
    ] = 1,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the bitstream, reports and logs.", file_okay=False)
    ] = Path("build"),
) -> None:
    """Build the bitstream of a board: chip, host bridge and memory. A design too large or too slow is an error.

    For families that are not placed and routed here it ends with the netlist and what that takes of the FPGA.
    """
    require_tools()
    from sley.fpga.boards.board import BoardTop
    from sley.fpga.boards.clock import PLLS, pll_dividers
    from sley.fpga.boards.known import BOARDS
    from sley.fpga.devices.device import device_of
    from sley.fpga.flow.implementation import implement, netlist

    if board not in BOARDS:
        raise typer.BadParameter(f"no board {board!r}; there are {', '.join(BOARDS)}", param_hint="BOARD")
    target = BOARDS[board]
    if chip and not (target.fits or config):
        raise typer.BadParameter(
            f"no preset fits {target.about}; take --without-chip, a --config of your own, or another board "
            "(sley fpga boards)",
            param_hint="BOARD",
        )
    chosen = chosen_configuration(config) if config else target.config
    if array_blocks is not None and chip and chosen.has(ElementType.BF16):
        raise typer.BadParameter(
            f"{chosen.name} has bf16, whose elements have DSP blocks of their own; it is for arrays of int8 alone",
            param_hint="--array-blocks",
        )
    if clock is not None and not 0 < clock < math.inf:
        raise typer.BadParameter(f"a clock of {clock:g} MHz; it must be above 0", param_hint="--clock")
    clock_hz = target.clock_hz if clock is None else round(1e6 * clock)
    platform = target.platform()
    device = device_of(platform)
    if seeds > 1 and not device.family.bitstream:
        raise typer.BadParameter(f"{device.family.about} is not placed here; leave it out", param_hint="--seeds")
    try:
        pll_dividers(PLLS[device.family.name], int(platform.default_clk_frequency), clock_hz)
        design = target.system(chosen, clock_hz, memory) if chip else target.line(clock_hz, memory)
    except ValueError as error:
        hint = "--memory" if str(error).startswith("memory") else "--clock"
        raise typer.BadParameter(str(error), param_hint=hint) from None
    what = chosen.name if chip else "bridge and memory"
    typer.echo(f"{what} at {clock_hz / 1e6:g} MHz for {target.about}: this takes minutes; logs are in {output}")
    top = BoardTop(design, clock_hz)
    if not device.family.bitstream:
        made = netlist(platform, top, output, array_blocks=array_blocks)
        typer.echo(f"netlist {output / 'sley.json'}, {output / 'sley.edif'}; {device.usage(made.top.total)}")
        typer.echo(f"{device.family.about} is not placed and routed here: neither clock nor bitstream is known")
        return
    placed = implement(platform, top, output, dense=chip, array_blocks=array_blocks, seeds=seeds)
    typer.echo(f"bitstream {placed.bitstream}; clock {placed.fmax:.1f} MHz, {placed.constraint:.1f} MHz needed")
    for kind, used in placed.used.items():
        if used:
            typer.echo(f"  {kind:16} {used:7,} of {placed.available[kind]:7,}")


def boards() -> None:
    """List the boards that a bitstream can be built for."""
    from sley.fpga.boards.known import BOARDS

    for board in BOARDS.values():
        chip = board.config.name if board.fits else "no chip, --without-chip"
        memory = " or ".join(f"{size >> 10:,} KiB of {kind} memory" for kind, size in board.memory_kinds.items())
        typer.echo(f"{board.name:16} {board.about}: {chip} at {board.clock_hz / 1e6:g} MHz, {memory}")
