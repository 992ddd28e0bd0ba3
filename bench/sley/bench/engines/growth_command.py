"""The command ``sley bench growth``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.abi.outputs import check_output

if TYPE_CHECKING:
    from sley.bench.engines.growth import Growth


def growth(
    largest: Annotated[int, typer.Option("--largest", min=4, help="Leave out arrays of more rows and columns.")] = 32,
    most: Annotated[int, typer.Option("--most", min=1, help="Leave out chips of more cores.")] = 16,
    size: Annotated[int, typer.Option("--size", min=1, help="Rows and columns of the matrices to multiply.")] = 128,
    plot: Annotated[Path | None, typer.Option("--plot", help="File for a picture.", dir_okay=False)] = None,
) -> None:
    """What building and running engine fast costs as the array and the number of cores grow."""
    from sley.bench.engines.growth import arrays, cores, grow

    check_output(plot)
    chosen = [config for config in arrays() if config.array <= largest]
    chosen += [config for config in cores() if config.cores <= most]
    found = list(grow(chosen, size, lambda text: typer.echo(text, err=True)))
    table = Table(*("chip", "array", "cores", "text, s", "passes, s", "C, s", "wall, s", "library, MB", "cycles/s"))
    for row in found:
        seconds = (f"{value:.1f}" for value in (row.text, row.passes, row.code, row.wall))
        table.add_row(
            row.name, f"{row.array}", f"{row.cores}", *seconds, f"{row.library / 1e6:.1f}", f"{row.speed:,.0f}"
        )
    Console(width=max(100, Console().width)).print(table)
    if plot is not None:
        _draw(found, plot)


def _draw(found: "list[Growth]", path: Path) -> None:
    """Processor seconds of a build and nanoseconds of a cycle, against elements of all arrays."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for title, rows in (
        ("one core", [r for r in found if r.cores == 1]),
        ("cores of 4 x 4", [r for r in found if r.array == 4]),
    ):
        rows.sort(key=lambda row: row.cores * row.array**2)
        elements = [row.cores * row.array**2 for row in rows]
        left.loglog(elements, [row.text + row.passes + row.code for row in rows], "o-", label=title)
        right.loglog(elements, [1e9 / row.speed for row in rows], "o-", label=title)
    left.set(xlabel="elements", ylabel="build, processor s")
    right.set(xlabel="elements", ylabel="ns a simulated cycle, busy")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path)
