"""The command ``sley fpga selftest``; found through the entry points ``sley.fpga``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sley.abi.outputs import check_output
from sley.bench.selftest.run import MARCH_SECONDS, selftest
from sley.driver.hardware.engines import open_transport


def selftest_command(
    url: Annotated[str, typer.Argument(metavar="URL", help="The device, such as fpga:/dev/ttyUSB0 or fast:nano.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="JSON file with the whole report, to send back.", dir_okay=False)
    ] = Path("sley-selftest.json"),
    seconds: Annotated[
        float, typer.Option("--march-seconds", min=0, help="Longest march over memory; two windows in any case.")
    ] = MARCH_SECONDS,
) -> None:
    """Test a board: memory, link, every operation of every unit, interrupts, timing. Its memory is overwritten."""
    check_output(output)
    console = Console()
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("opening", total=1.0)
        report = selftest(
            open_transport(url),
            url,
            seconds,
            notify=lambda name: bar.update(task, description=name),
            advance=lambda share: bar.update(task, completed=share),
        )
    report.print(console)
    output.write_text(report.to_json() + "\n")
    failed = len(report.failures)
    console.print(f"{failed} of {len(report.checks)} checks failed; the report is in {output}", highlight=False)
    raise typer.Exit(1 if failed else 0)
