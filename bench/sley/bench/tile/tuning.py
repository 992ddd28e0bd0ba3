"""Kernels of the tile language and operators of nn, tuned: what is measured, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rich.table import Table

from sley.bench.gemm.tilings import Tilings, measure_tilings
from sley.bench.tile.calls import Arguments, grid_of
from sley.driver import BadRequest
from sley.runtime import Device, tile
from sley.runtime.kernels.gemm.plan import planned_products
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.gemm.tiling import tiling_text
from sley.runtime.kernels.gemm.tuned import keep


def tuned_kernel(kernel: tile.Kernel, arguments: Arguments, grid: str | None) -> Table:
    """Measures the likeliest choices of a kernel and keeps the best. Raises ``BadRequest``, ``TileError``,
    ``NoCycleCounts``."""
    if grid is None:
        raise BadRequest(f"{kernel.name} is a kernel: say how many blocks, as --grid 'cdiv(512, rows)'")
    measured = kernel.tune[grid_of(grid)](*arguments.positional, **arguments.named)
    if not measured[0].choices:
        raise BadRequest(f"{kernel.name} has no choice with these constants: tile.choice in its signature makes one")
    table = Table(*measured[0].choices, "predicted", "measured", "")
    likeliest = min(measured, key=lambda one: one.estimate)
    for one in measured:
        marks = ["planned"] * (one is likeliest) + ["kept"] * (one is measured[0])
        cells = f"{one.estimate:,}", f"{one.cycles:,}", ", ".join(marks)
        table.add_row(*map(str, one.choices.values()), *cells)
    return table


def tuned_products(
    device: Device,
    name: str,
    operator: Callable[..., Any],
    arguments: Arguments,
    count: int,
    say: Callable[[str], None],
) -> list[Table]:
    """Measures tilings of all products that a call of an operator makes, and keeps the best of each. Raises
    ``BadRequest`` if it makes none."""
    with planned_products() as problems:
        operator(*arguments.positional, **arguments.named)
    device.stream.synchronize()
    products = dict.fromkeys(problem for problem in problems if _measurable(problem))
    if not products:
        raise BadRequest(f"{name} makes no product that could be tuned with these arguments, and has no choices")
    tables = []
    for problem in products:
        made = measure_tilings(device, problem, count, say)
        keep(device.config, problem, made.plans[made.best])
        tables.append(tilings_table(made, problem))
    return tables


def _measurable(problem: Problem) -> bool:
    """Whether the bench makes its operands: dense ones, of which none is added to."""
    return problem.strides is None and not problem.epilogue.beta and not (problem.share_a or problem.share_b)


def tilings_table(found: Tilings, problem: Problem) -> Table:
    """Tilings of a product, with what was predicted and what was measured."""
    p = replace(problem, strides=None)
    table = Table("tiling", "predicted", "measured", "", title=f"gemm {p.m} x {p.n} x {p.k}, {p.dtype.info.numpy}")
    for index, (plan, cycles) in enumerate(zip(found.plans, found.cycles, strict=True)):
        marks = ["planned"] * (index == 0) + ["kept"] * (index == found.best)
        cells = f"{plan.estimate:,}", f"{cycles:,}", ", ".join(marks)
        table.add_row(("swapped, " if plan.problem != problem else "") + tiling_text(plan), *cells)
    return table
