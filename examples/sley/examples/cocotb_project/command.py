"""The commands ``sley cocotb``; found through the entry points ``sley.commands``."""

from pathlib import Path
from typing import Annotated

import typer

from sley.abi.config import PRESETS, ConfigError, configuration
from sley.examples.cocotb_project.project import project_files
from sley.hw.ip.export import check_folder, write_export

cocotb_app = typer.Typer(help="Benches of your own around the chip.", no_args_is_help=True)


@cocotb_app.callback()
def cocotb() -> None:
    """Benches of your own around the chip."""


@cocotb_app.command()
def new(
    directory: Annotated[Path, typer.Argument(help="Folder to make; it must not exist, or be empty.")],
    config: Annotated[
        str, typer.Option("--config", help=f"Configuration: {', '.join(PRESETS)}, or a JSON file like sley.json.")
    ] = "nano",
) -> None:
    """Make a project: a block of your own beside Sley on one AXI interconnect, with tests in cocotb."""
    try:
        chosen = configuration(config)
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="--config") from None
    check_folder(directory)
    files = project_files(chosen)
    write_export(files, directory)
    typer.echo(f"{directory}: {len(files)} files, configuration {chosen.name}; next: cd {directory}; python run.py")
