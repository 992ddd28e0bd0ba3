"""The commands ``sley fpga``; found through the entry points ``sley.commands``.

Commands of other parts of the system join through the entry points ``sley.fpga``.
"""

from importlib.metadata import entry_points

import typer

from sley.fpga.commands.build import boards, build
from sley.fpga.commands.measure import area, report

app = typer.Typer(help="Sley on an FPGA board, real or simulated.", no_args_is_help=True)


@app.callback()
def fpga() -> None:
    """Sley on an FPGA board, real or simulated."""


for command in (build, boards, area, report):
    app.command()(command)


def _join() -> None:
    for point in sorted(entry_points(group="sley.fpga"), key=lambda point: point.name):
        try:
            app.command(point.name)(point.load())
        except ImportError as error:  # a part of the system that is not installed on this machine
            typer.echo(f"warning: command fpga {point.name} is missing: {error}", err=True)


_join()
