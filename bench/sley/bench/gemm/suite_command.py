"""The command ``sley bench suite``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sley.abi import install
from sley.abi.outputs import check_output
from sley.bench.options import DType, Families, Limit, MaxMacs, OperandName, ResultType, Shapes
from sley.runtime.options import ENGINE_NAMES

TABLE_WIDTH = 170
"""The tables' width where the terminal does not say, or is narrower: numbers must not be cut."""


def suite(
    engine: Annotated[
        str, typer.Option(*ENGINE_NAMES, help="Engine URL, with memory for the largest product.")
    ] = "fast:base?memory=256M",
    family: Families = None,
    limit: Limit = None,
    shapes: Shapes = None,
    max_macs: MaxMacs = 1 << 32,
    dtype: DType = OperandName.INT8,
    result: ResultType = None,
    scalesim: Annotated[bool, typer.Option(help="Compare with SCALE-Sim on the same products.")] = True,
    scalesim_python: Annotated[
        Path | None, typer.Option("--scalesim-python", help="A Python that has SCALE-Sim; default: one in the cache.")
    ] = None,
    scalesim_cycles: Annotated[
        int, typer.Option("--scalesim-cycles", min=0, help="Longest run of SCALE-Sim; beyond it, its formula.")
    ] = 100_000,
    output: Annotated[Path | None, typer.Option("--csv", help="File for all numbers.", dir_okay=False)] = None,
    picture: Annotated[
        Path | None, typer.Option("--roofline", help="File for a picture, for example .png or .svg.", dir_okay=False)
    ] = None,
) -> None:
    """Multiply matrices of many shapes, also the layers of networks: against the lower bound and SCALE-Sim."""
    from sley.bench.gemm.measure import require_cycles
    from sley.bench.gemm.scalesim import environment, peers
    from sley.bench.gemm.shapes import choose, families, load_layers
    from sley.bench.gemm.suite import Result, arrays_to_compare, measure, problems, write_csv
    from sley.bench.gemm.suite_tables import layer_table, summary_table
    from sley.runtime import Device

    def say(text: str) -> None:
        typer.echo(text, err=True)

    if picture is not None:
        try:
            from sley.bench.gemm.roofline import FORMATS, draw
        except ImportError:
            raise typer.BadParameter(f"--roofline needs matplotlib: {install.extra('bench')}") from None
        if picture.suffix[1:] not in FORMATS:
            raise typer.BadParameter(f"--roofline {picture}: a picture is a file named *.{', *.'.join(FORMATS)}")
    check_output(output, picture)
    layers = list(choose(load_layers(shapes), family or (), limit))
    with Device.open(engine) as device:
        require_cycles(device)
        config = device.config
        sizes = problems(device, layers, max_macs, dtype.value, result and result.value, say)
        if not sizes:
            raise typer.BadParameter("no shape is left to run")
        arrays = arrays_to_compare(config, next(iter(sizes.values())).dtype) if scalesim else []
        if scalesim and not arrays:
            say(f"SCALE-Sim simulates one array, {config.name} has {config.cores}: not compared")
        found = {}
        if arrays:
            python = environment(scalesim_python, say)
            found = {
                array: peers(python, array, [(p.m, p.n, p.k) for p in sizes.values()], scalesim_cycles, say)
                for array in arrays
            }
        measured = measure(device, sizes.values(), say)
    results = [
        Result(layer, measured[p], {array: found[array][p.m, p.n, p.k] for array in arrays})
        for layer, p in sizes.items()
    ]
    console = Console()
    console.width = max(console.width, TABLE_WIDTH)
    for name in families(sizes):
        console.print(layer_table(name, [result for result in results if result.layer.family == name]))
    console.print(summary_table(results))
    if output is not None:
        write_csv(output, engine, results)
    if picture is not None:
        types = f"{dtype.value} to {results[0].measured.problem.epilogue.result.info.numpy}"
        draw(picture, f"{types} on {engine}", config, results)
