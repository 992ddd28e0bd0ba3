"""``sley bench validation``: the exact model beside SCALE-Sim and ZigZag."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sley.abi.install import extra
from sley.abi.outputs import check_output


def validation(
    arrays: Annotated[
        list[int] | None, typer.Option("--array", "-a", help="Rows and columns; 8, 16 and 32 if not given.")
    ] = None,
    layer: Annotated[
        list[str] | None, typer.Option("--layer", "-l", help="A layer of ResNet-50, some if not given; repeatable.")
    ] = None,
    scalesim_python: Annotated[
        Path | None, typer.Option("--scalesim-python", help="A Python that has SCALE-Sim; default: one in the cache.")
    ] = None,
    write: Annotated[Path | None, typer.Option(help="A file for the page; without it, it is printed.")] = None,
) -> None:
    """Cycles of Sley, SCALE-Sim and ZigZag for the same products on the same arrays, side by side."""
    from importlib.metadata import PackageNotFoundError, version

    from sley.bench.gemm.scalesim import environment
    from sley.bench.validation.cases import ARRAYS, LAYERS, measure_cases
    from sley.bench.validation.page import validation_page

    def say(text: str) -> None:
        typer.echo(text, err=True)

    check_output(write)
    try:
        zigzag = version("zigzag-dse")
    except PackageNotFoundError:
        raise typer.BadParameter(f"ZigZag is not installed: {extra('validation')}") from None
    cases = measure_cases(environment(scalesim_python, say), say, arrays or ARRAYS, names=layer or LAYERS)
    page = validation_page(cases, zigzag)
    if write is None:
        typer.echo(page, nl=False)
    else:
        write.write_text(page, "utf-8")
