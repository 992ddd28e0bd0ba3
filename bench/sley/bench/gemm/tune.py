"""The command ``sley tune``."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.bench.options import CANDIDATES, Batch, Count, DType, OperandName, ResultType, TransA, TransB
from sley.runtime.options import Engine


def tune(
    m: Annotated[int, typer.Argument(min=1, help="Rows of A and C.")],
    n: Annotated[int, typer.Argument(min=1, help="Columns of B and C.")],
    k: Annotated[int, typer.Argument(min=1, help="Columns of A, rows of B.")],
    engine: Engine = "model:base?cycles=on&values=off",
    dtype: DType = OperandName.INT8,
    result: ResultType = None,
    trans_a: TransA = False,
    trans_b: TransB = False,
    batch: Batch = 1,
    count: Count = CANDIDATES,
) -> None:
    """Measure tilings of a matrix product; the fastest is kept, and used for it on such chips from then on."""
    from sley.bench.gemm.measure import bench_problem, require_cycles
    from sley.bench.gemm.tilings import measure_tilings
    from sley.runtime import Device
    from sley.runtime.kernels.gemm.limits import check_problem
    from sley.runtime.kernels.gemm.tiling import tiling_text
    from sley.runtime.kernels.gemm.tuned import keep, tuned_file

    problem = bench_problem((m, n, k), dtype.value, result and result.value, trans_a, trans_b, batch)
    with Device.open(engine) as device:
        require_cycles(device)
        check_problem(device.config, problem)
        found = measure_tilings(device, problem, count, lambda text: typer.echo(text, err=True))
        keep(device.config, problem, found.plans[found.best])
        file = tuned_file(device.config)
    table = Table("tiling", "predicted", "measured", "", title=f"gemm {m} x {n} x {k} on {engine}")
    for index, (plan, cycles) in enumerate(zip(found.plans, found.cycles, strict=True)):
        marks = ["planned"] * (index == 0) + ["kept"] * (index == found.best)
        cells = f"{plan.estimate:,}", f"{cycles:,}", ", ".join(marks)
        table.add_row(("swapped, " if plan.problem != problem else "") + tiling_text(plan), *cells)
    Console().print(table)
    typer.echo(f"kept in {file}")
