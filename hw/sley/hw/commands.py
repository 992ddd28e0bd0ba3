# amaranth: UnusedElaboratable=no
"""Commands of the command line that need the gateware; found through the entry points ``sley.commands``."""

from pathlib import Path
from typing import Annotated

import typer

from sley.abi.config import PRESETS, ConfigError, configuration
from sley.hw.ip.export import check_folder, ip_files, write_export
from sley.hw.verilog import chip_verilog


def verilog(
    config: Annotated[str, typer.Option("--config", help=f"Configuration: {', '.join(PRESETS)}.")] = "base",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; standard output when absent.", dir_okay=False)
    ] = None,
) -> None:
    """Write the chip as one Verilog file (top module sley, AXI4-Lite target, AXI4 manager, interrupt)."""
    try:
        text = chip_verilog(configuration(config))
        if output is None:
            typer.echo(text, nl=False)
        else:
            output.write_text(text)
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="--config") from None


def ip(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to make; it must not exist, or be empty.")],
    config: Annotated[
        str, typer.Option("--config", help=f"Configuration: {', '.join(PRESETS)}, or a JSON file like sley.json.")
    ] = "base",
) -> None:
    """Export the chip for an integrator: Verilog, IP-XACT, registers, file list, lint rules, a cocotb bench."""
    try:
        chosen = configuration(config)
        check_folder(output)
        files = ip_files(chosen, chip_verilog(chosen))
        write_export(files, output)
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="--config") from None
    size = sum(map(len, files.values()))
    typer.echo(f"{output}: {len(files)} files, {size:,} bytes, configuration {chosen.name}, hash {chosen.hash:#010x}")
