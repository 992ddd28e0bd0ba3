"""The command ``sley bench gemm``."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.bench.options import Batch, DType, OperandName, ResultType, TransA, TransB
from sley.runtime.options import Engine


def gemm(
    engine: Engine = "fast:base",
    m: Annotated[int, typer.Option("-m", min=1, help="Rows of A and C.")] = 256,
    n: Annotated[int, typer.Option("-n", min=1, help="Columns of B and C.")] = 256,
    k: Annotated[int, typer.Option("-k", min=1, help="Columns of A, rows of B.")] = 256,
    dtype: DType = OperandName.INT8,
    result: ResultType = None,
    trans_a: TransA = False,
    trans_b: TransB = False,
    batch: Batch = 1,
) -> None:
    """Multiply matrices from DRAM; cycles from doorbell to fence, and where they went."""
    from sley.bench.gemm.counter_tables import bus_table, cycle_table, work_table
    from sley.bench.gemm.measure import bench_problem, measure_gemm
    from sley.runtime import Device
    from sley.runtime.kernels.gemm.tiling import tiling_text

    problem = bench_problem((m, n, k), dtype.value, result and result.value, trans_a, trans_b, batch)
    with Device.open(engine) as device:
        r = measure_gemm(device, problem, counted=True)
    assert r.count is not None
    counters = r.count.counters
    types = f"{dtype.value} to {problem.epilogue.result.info.numpy}"
    table = Table("", "value", title=f"gemm {m} x {n} x {k}, {types}, {engine}")
    if counters.has_cycles:
        table.add_row("cycles, doorbell to fence", f"{r.cycles:,}")
    table.add_row("estimate of the planner, cycles", f"{r.plan.estimate:,}")
    limits = f"compute {r.bound.compute:,}, read {r.bound.read:,}, write {r.bound.write:,}"
    table.add_row("lower bound, cycles", f"{r.bound.cycles:,} ({limits})")
    if counters.has_cycles:
        table.add_row("cycles / lower bound", f"{r.cycles / r.bound.cycles:.3f}")
        table.add_row("share of peak MACs", f"{r.share_of_peak:.1%} of {r.peak_macs:,} per cycle")
    table.add_row("tiling", tiling_text(r.plan))
    console = Console()
    console.print(table)
    console.print(work_table(counters, r.needed))
    if not counters.has_cycles:
        typer.echo("The result is right. This engine counts work and no cycles; take fast, rtl or pysim.", err=True)
        return
    console.print(cycle_table(r.count))
    console.print(bus_table(r.count))
