"""The commands ``sley fpga``; found through the entry points ``sley.commands``.

Commands of other parts of the system join through the entry points ``sley.fpga``.
"""

from importlib.metadata import entry_points

import typer

app = typer.Typer(help="Sley on an FPGA board, real or simulated.", no_args_is_help=True)


@app.callback()
def fpga() -> None:
    """Sley on an FPGA board, real or simulated."""


def _join() -> None:
    for point in sorted(entry_points(group="sley.fpga"), key=lambda point: point.name):
        try:
            app.command(point.name)(point.load())
        except ImportError as error:  # a part of the system that is not installed on this machine
            typer.echo(f"warning: command fpga {point.name} is missing: {error}", err=True)


_join()
