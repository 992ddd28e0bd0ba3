"""The command ``sley tune``."""

from typing import Annotated

import typer
from rich.console import Console

from sley.bench.options import CANDIDATES, Batch, Count, DType, OperandName, ResultType, TransA, TransB
from sley.runtime.options import Engine

MODEL = "model:base?cycles=on&values=off"


def _checked(context: typer.Context, rest: list[str]) -> list[str]:
    """Raises ``typer.BadParameter`` if there are neither three sizes nor module:name."""
    what = context.params["what"]
    if ":" not in what:
        texts = [what, *rest]
        if len(texts) != 3 or not all(text.isdecimal() and int(text) for text in texts):
            raise typer.BadParameter(f"{' '.join(texts)}: give M N K, each 1 or more; or module:name and its arguments")
    return rest


What = Annotated[str, typer.Argument(help="Rows of A and C; or module:name of a kernel, or nn:name of an operator.")]
Rest = Annotated[
    list[str],
    typer.Argument(
        help="N and K; or arguments: arrays as bf16[512,256], constants, by name if name=...", callback=_checked
    ),
]
Grid = Annotated[str | None, typer.Option(help="Blocks of a kernel, by its constants: 'cdiv(512, rows)'.")]


def tune(
    what: What,
    rest: Rest,
    engine: Engine = MODEL,
    grid: Grid = None,
    dtype: DType = OperandName.INT8,
    result: ResultType = None,
    trans_a: TransA = False,
    trans_b: TransB = False,
    batch: Batch = 1,
    count: Count = CANDIDATES,
) -> None:
    """Measure tilings of a matrix product M N K, or of all products of an operator of nn, or the choices of a tile
    kernel; the fastest is kept, and used for it on such chips from then on."""
    from sley.bench.gemm.measure import bench_problem, require_cycles
    from sley.bench.gemm.tilings import measure_tilings
    from sley.bench.tile.calls import Arguments, found
    from sley.bench.tile.tuning import tilings_table, tuned_kernel, tuned_products
    from sley.runtime import Device, tile
    from sley.runtime.kernels.gemm.limits import check_problem
    from sley.runtime.kernels.gemm.tuned import keep, tuned_file

    def say(text: str) -> None:
        typer.echo(text, err=True)

    with Device.open(engine) as device:
        if ":" in what:
            target = found(what)
            require_cycles(device)
            arguments = Arguments.of(device, rest)
            if isinstance(target, tile.Kernel):
                Console().print(tuned_kernel(target, arguments, grid))
                return
            tables = tuned_products(device, what, target, arguments, count, say)
        else:
            m, n, k = int(what), int(rest[0]), int(rest[1])
            problem = bench_problem((m, n, k), dtype.value, result and result.value, trans_a, trans_b, batch)
            require_cycles(device)
            check_problem(device.config, problem)
            made = measure_tilings(device, problem, count, say)
            keep(device.config, problem, made.plans[made.best])
            tables = [tilings_table(made, problem)]
        for table in tables:
            Console().print(table)
        typer.echo(f"kept in {tuned_file(device.config)}")
