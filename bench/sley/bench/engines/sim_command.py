"""The command ``sley bench sim``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.abi.config import PRESETS
from sley.abi.outputs import check_output

if TYPE_CHECKING:
    from sley.bench.engines.figures import Figure
    from sley.bench.engines.parts import Profile


def sim(
    presets: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(PRESETS)}; default base.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All presets.")] = False,
    size: Annotated[int, typer.Option("--size", min=1, help="Rows and columns of the matrices to multiply.")] = 256,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds, of which the best counts.")] = 5,
    flags: Annotated[
        list[str] | None,
        typer.Option("--flags", help="CXXFLAGS to build rtl with besides its own; default '-O3 -march=native'."),
    ] = None,
    build: Annotated[bool, typer.Option(help="Build the engines in an empty cache, and measure that too.")] = True,
    parts: Annotated[bool, typer.Option("--parts", help="Also what the parts of the chip cost on fast.")] = False,
    output: Annotated[Path | None, typer.Option("--csv", help="File for all numbers.", dir_okay=False)] = None,
) -> None:
    """Compare the engines fast and rtl on one chip with one work: speed, builds, register writes, snapshots."""
    from sley.bench.engines.contenders import BEST_FLAGS
    from sley.bench.engines.figures import write_csv
    from sley.bench.engines.parts import profile
    from sley.bench.engines.speed import busy, compare
    from sley.bench.gemm.measure import bench_problem
    from sley.runtime.kernels.gemm.limits import check_problem

    chosen = list(PRESETS) if every else presets or ["base"]
    unknown = [name for name in chosen if name not in PRESETS]
    if unknown:
        raise typer.BadParameter(f"no preset {unknown[0]!r}; there are {', '.join(PRESETS)}")
    check_output(output)
    for name in chosen:
        check_problem(PRESETS[name], bench_problem((size,) * 3))
    console = Console(width=max(120, Console().width))
    figures: list[Figure] = []
    for name in chosen:
        variants = [BEST_FLAGS] if flags is None else flags
        found = compare(name, (size,) * 3, rounds, variants, build, lambda text: typer.echo(text, err=True))
        console.print(_comparison(name, found, size))
        figures += found
        if parts:
            costs = profile(name, lambda device: busy(device, (size,) * 3))
            console.print(_part_table(name, costs))
            figures += costs.figures()
    if output is not None:
        write_csv(output, figures)


def _comparison(preset: str, figures: "list[Figure]", size: int) -> Table:
    from sley.bench.engines.figures import speedups

    names = list(dict.fromkeys(figure.contender for figure in figures))
    found = {(figure.quantity, figure.contender): figure.value for figure in figures}
    ratios = {quantity: ratio for _, quantity, ratio in speedups(figures)}
    table = Table("", *names, "fast is better by", title=f"{preset}, gemm {size} x {size} x {size}")
    for quantity in dict.fromkeys(figure.quantity for figure in figures):
        values = [_number(found.get((quantity, name))) for name in names]
        ratio = ratios.get(quantity)
        table.add_row(quantity, *values, "" if ratio is None else f"{ratio:.2f}")
    return table


def _part_table(preset: str, profile: "Profile") -> Table:
    title = f"{preset} on fast: {profile.cycle:,.0f} ns a cycle, {profile.inside:,.0f} of them in fragments, of which"
    table = Table("part", "number", "runs a cycle", "ns a cycle", "ns of one", title=title)
    for part in profile.parts:
        cells = (
            f"{part.count:,}",
            f"{part.runs:.2f}",
            f"{part.nanoseconds:.1f}",
            f"{part.nanoseconds / part.count:.2f}",
        )
        table.add_row(part.name, *cells)
    return table


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
