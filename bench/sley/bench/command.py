"""The commands ``sley bench``: what a device needs in its own cycles, and engines in the time of the host."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.abi.config import PRESETS
from sley.bench.chip.command import COMMANDS
from sley.bench.engines.command import array
from sley.bench.gemm.suite_command import suite
from sley.bench.options import DType, OperandName, ResultType
from sley.runtime.kernels.gemm.tiling import tiling_text
from sley.runtime.options import Engine

if TYPE_CHECKING:
    from sley.bench.engines.speed import Figure, Profile

bench_app = typer.Typer(help="Measure on a device, in its own cycles, and engines in host time.", no_args_is_help=True)
bench_app.command("suite")(suite)
bench_app.command("array")(array)
for chip_bench in COMMANDS:
    bench_app.command()(chip_bench)


@bench_app.command("gemm")
def bench_gemm(
    engine: Engine = "fast:base",
    m: Annotated[int, typer.Option("-m", min=1, help="Rows of A and C.")] = 256,
    n: Annotated[int, typer.Option("-n", min=1, help="Columns of B and C.")] = 256,
    k: Annotated[int, typer.Option("-k", min=1, help="Columns of A, rows of B.")] = 256,
    dtype: DType = OperandName.INT8,
    result: ResultType = None,
    trans_a: Annotated[bool, typer.Option("--trans-a", help="A is stored as K x M.")] = False,
    trans_b: Annotated[bool, typer.Option("--trans-b", help="B is stored as N x K.")] = False,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Products in one call.")] = 1,
) -> None:
    """Multiply matrices from DRAM; cycles from doorbell to fence, and where they went."""
    from sley.bench.gemm.counter_tables import bus_table, cycle_table, work_table
    from sley.bench.gemm.measure import bench_problem, measure_gemm
    from sley.runtime import Device

    problem = bench_problem((m, n, k), dtype.value, result and result.value, trans_a, trans_b, batch)
    with Device.open(engine) as device:
        r = measure_gemm(device, problem, counted=True)
    types = f"{dtype.value} to {problem.epilogue.result.value}"
    table = Table("", "value", title=f"gemm {m} x {n} x {k}, {types}, {engine}")
    table.add_row("cycles, doorbell to fence", f"{r.cycles:,}")
    table.add_row("estimate of the planner", f"{r.plan.estimate:,}")
    limits = f"compute {r.bound.compute:,}, read {r.bound.read:,}, write {r.bound.write:,}"
    table.add_row("lower bound, cycles", f"{r.bound.cycles:,} ({limits})")
    table.add_row("cycles / lower bound", f"{r.cycles / r.bound.cycles:.3f}")
    table.add_row("share of peak MACs", f"{r.share_of_peak:.1%} of {r.peak_macs:,} per cycle")
    table.add_row("tiling", tiling_text(r.plan))
    console = Console()
    console.print(table)
    assert r.count is not None
    console.print(work_table(r.count.counters, r.needed))
    if engine.startswith("model"):
        typer.echo("The engine model counts steps, not cycles: only the table of work means something here.", err=True)
        return
    console.print(cycle_table(r.count))
    console.print(bus_table(r.count))


@bench_app.command("sim")
def bench_sim(
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
    from sley.bench.engines.speed import BEST_FLAGS, compare, profile, write_csv

    chosen = list(PRESETS) if every else presets or ["base"]
    unknown = [name for name in chosen if name not in PRESETS]
    if unknown:
        raise typer.BadParameter(f"no preset {unknown[0]!r}; there are {', '.join(PRESETS)}")
    console = Console()
    figures: list[Figure] = []
    for name in chosen:
        variants = [BEST_FLAGS] if flags is None else flags
        found = compare(name, (size,) * 3, rounds, variants, build, lambda text: typer.echo(text, err=True))
        console.print(_comparison(name, found, size))
        figures += found
        if parts:
            costs = profile(name, (size,) * 3)
            console.print(_part_table(name, costs))
            figures += costs.figures()
    if output is not None:
        write_csv(output, figures)


def _comparison(preset: str, figures: "list[Figure]", size: int) -> Table:
    from sley.bench.engines.speed import speedups

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
