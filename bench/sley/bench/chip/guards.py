"""The commands ``sley bench`` that guard what the chip has reached: each prints a table and fails when a promise is
missed.

A guard is a file of this folder. Its ``measure`` prints the table and returns a line for every missed promise; it is
imported when it is run, since most need an engine or a board in simulation.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated

import typer

GUARDS = {
    "shares": "GEMM from memory to memory as a share of peak MACs, for several shapes.",
    "attention": "Attention of 1,024 queries and keys as a share of peak MACs, plain and causal.",
    "launch": "A warm launch: doorbell to the first instruction and to the first MAC.",
    "on-chip": "Products whose operands are in the local memories, against the array's own bound.",
    "rows": "Softmax, norms and activations of bf16 rows: cycles and bytes.",
    "tile": "Kernels of the tile language against the bounds of memory and array.",
    "triton": "Triton kernels against the same ones in the tile language.",
    "compile": "Host time: tile kernels against the plan of a GEMM, launches against calls of blas.gemm.",
    "address-spaces": "Translated against untranslated streams, a miss, and a change of context.",
    "host-bridge": "Bytes of memory against bits on the serial line of a simulated board.",
    "sdram": "Words on the data bus of a simulated SDRAM against cycles.",
    "two-chips": "Two chips in two threads against one: how much of two cores they use.",
}
"""Those without arguments: name and help. ``quad`` has one."""


def quad(
    largest: Annotated[int, typer.Argument(min=1, help="Largest M = N = K.")] = 1024,
) -> None:
    """Four cores against one: cycles of the same products on base and on quad."""
    _run("quad", largest)


def add_guards(app: typer.Typer) -> None:
    """Adds a command for every guard."""
    for name, text in GUARDS.items():
        app.command(name, help=text)(_guard(name))
    app.command()(quad)


def _guard(name: str) -> Callable[[], None]:
    return lambda: _run(name)


def _run(name: str, *arguments: int) -> None:
    missed = import_module(f"sley.bench.chip.{name.replace('-', '_')}").measure(*arguments)
    if missed:
        typer.echo("\n".join(missed), err=True)
        raise typer.Exit(1)
