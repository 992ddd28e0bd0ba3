"""Commands of the command line that need the gateware; found through the entry points ``sley.commands``."""

from pathlib import Path
from typing import Annotated

import typer

from sley.abi.config import PRESETS, ConfigError, preset
from sley.hw.verilog import VerilogError, chip_verilog


def verilog(
    config: Annotated[str, typer.Option("--config", help=f"Configuration: {', '.join(PRESETS)}.")] = "base",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; standard output when absent.", dir_okay=False)
    ] = None,
) -> None:
    """Write the chip as one Verilog file (top module sley, AXI4-Lite target, AXI4 manager, interrupt)."""
    try:
        text = chip_verilog(preset(config))
        if output is None:
            typer.echo(text, nl=False)
        else:
            output.write_text(text)
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="--config") from None
    except (VerilogError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
