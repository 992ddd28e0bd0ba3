"""The command ``sley bench ports``."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.bench.ports.ports import PARTS, QUAD, study, workloads


def ports(
    size: Annotated[int, typer.Argument(min=64, help="M = N = K of the products; a multiple of 64.")] = 512,
    bandwidth: Annotated[
        int, typer.Option("--bandwidth", min=0, max=1024, help="Bytes a cycle of each port's memory; 0: the bus's.")
    ] = 0,
) -> None:
    """What a second memory port, and four, would bring to quad: cycles by the exact model, time alone."""
    if size % 64:
        raise typer.BadParameter(f"size is {size}; a multiple of 64 divides into all parts", param_hint="size")
    each = bandwidth or QUAD.bus_bytes
    table = Table("work", *(f"{n} port{'s' * (n > 1)}" for n in PARTS), "2 ports", "4 ports", title=f"{each} B a cycle")
    for work, found in study(workloads(size), bandwidth):
        gains = [f"{found[0] / more:.2f} times" for more in found[1:]]
        table.add_row(work.name, *(f"{cycles:,}" for cycles in found), *gains)
    Console().print(table)
