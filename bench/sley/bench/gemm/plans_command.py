"""The command ``sley bench plans``."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.bench.options import (
    CANDIDATES,
    Count,
    DType,
    Families,
    Limit,
    MaxMacs,
    OperandName,
    ResultType,
    Shapes,
)
from sley.runtime.options import Engine


def plans(
    engine: Engine = "model:base?cycles=on&values=off&memory=256M",
    family: Families = None,
    limit: Limit = None,
    shapes: Shapes = None,
    max_macs: MaxMacs = 1 << 26,
    dtype: DType = OperandName.INT8,
    result: ResultType = None,
    count: Count = CANDIDATES,
    kept: Annotated[bool, typer.Option("--keep", help="Keep the fastest of each product, as sley tune does.")] = False,
) -> None:
    """Products of many shapes: the planner's choice against the fastest of the tilings it likes best."""
    from sley.bench.gemm.measure import require_cycles
    from sley.bench.gemm.shapes import choose, load_layers
    from sley.bench.gemm.suite import geometric_mean, problems
    from sley.bench.gemm.tilings import measure_tilings
    from sley.runtime import Device
    from sley.runtime.kernels.gemm.tuned import keep

    table = Table("layer", "M", "N", "K", "estimate", "planned", "fastest", "number", "saved", title=engine)
    found = {}
    with Device.open(engine) as device:
        require_cycles(device)
        chosen = choose(load_layers(shapes), family or (), limit)
        sizes = problems(
            device, chosen, max_macs, dtype.value, result and result.value, lambda text: typer.echo(text, err=True)
        )
        for layer, p in sizes.items():
            if p in found:
                continue
            typer.echo(f"{layer.family} {layer.name}: {p.m} x {p.n} x {p.k}", err=True)
            found[p] = t = measure_tilings(device, p, count, lambda text: None)
            if kept:
                keep(device.config, p, t.plans[t.best])
            numbers = p.m, p.n, p.k, t.plans[0].estimate, t.cycles[0], t.cycles[t.best], t.best + 1
            table.add_row(f"{layer.family} {layer.name}", *(f"{number:,}" for number in numbers), f"{t.saved:.2%}")
    if not found:
        raise typer.BadParameter("no shape is left to run")
    every = found.values()
    console = Console()
    console.print(table)
    first = sum(not t.best for t in every)
    error = geometric_mean([max(t.plans[0].estimate / t.cycles[0], t.cycles[0] / t.plans[0].estimate) for t in every])
    faster = 1 - geometric_mean([t.cycles[t.best] / t.cycles[0] for t in every])
    console.print(
        f"{len(found)} products: the planner's choice is the fastest of {first}; the fastest take {faster:.2%} fewer "
        f"cycles in the geometric mean, at most {max(t.saved for t in every):.2%}; estimates are off by {error - 1:.2%}"
    )
