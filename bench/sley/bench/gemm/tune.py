"""The command ``sley tune``."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.bench.options import Batch, DType, OperandName, ResultType, TransA, TransB
from sley.runtime.options import Engine


def tune(
    m: Annotated[int, typer.Argument(min=1, help="Rows of A and C.")],
    n: Annotated[int, typer.Argument(min=1, help="Columns of B and C.")],
    k: Annotated[int, typer.Argument(min=1, help="Columns of A, rows of B.")],
    engine: Engine = "model:base?cycles=on",
    dtype: DType = OperandName.INT8,
    result: ResultType = None,
    trans_a: TransA = False,
    trans_b: TransB = False,
    batch: Batch = 1,
    count: Annotated[
        int, typer.Option("--candidates", "-c", min=1, help="Tilings to measure, the likeliest first.")
    ] = 8,
) -> None:
    """Measure tilings of a matrix product; the fastest is kept, and used for it on such chips from then on."""
    from sley.bench.gemm.measure import bench_problem, measure_gemm, require_cycles
    from sley.runtime import Device
    from sley.runtime.kernels.gemm.limits import check_problem
    from sley.runtime.kernels.gemm.plan import candidates
    from sley.runtime.kernels.gemm.tiling import tiling_text
    from sley.runtime.kernels.gemm.tuned import keep, tuned_file

    problem = bench_problem((m, n, k), dtype.value, result and result.value, trans_a, trans_b, batch)
    with Device.open(engine) as device:
        require_cycles(device)
        check_problem(device.config, problem)
        plans = candidates(device.config, problem, count)
        measured = []
        for number, found in enumerate(plans, 1):
            typer.echo(f"{number} of {len(plans)}: {tiling_text(found)}", err=True)
            measured.append(measure_gemm(device, problem, found).cycles)
        best = min(range(len(plans)), key=lambda index: measured[index])
        keep(device.config, problem, plans[best])
        file = tuned_file(device.config)
    table = Table("tiling", "predicted", "measured", "", title=f"gemm {m} x {n} x {k} on {engine}")
    for index, found in enumerate(plans):
        marks = ["planned"] * (index == 0) + ["kept"] * (index == best)
        cells = f"{found.estimate:,}", f"{measured[index]:,}", ", ".join(marks)
        table.add_row(("swapped, " if found.problem != problem else "") + tiling_text(found), *cells)
    Console().print(table)
    typer.echo(f"kept in {file}")
