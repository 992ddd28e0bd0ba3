"""The command ``sley bench products``."""

from typing import Annotated

import typer

from sley.runtime.options import Engine

MODEL = "model:base?cycles=on&memory=64M"


def products(
    engine: Engine = MODEL, count: Annotated[int, typer.Option(min=0, help="Random products, of each type.")] = 10
) -> None:
    """Products of a page in the tile language against those of the hand-written plan."""
    from rich.console import Console
    from rich.table import Table

    from sley.bench.gemm.measure import require_cycles
    from sley.bench.tile.products import compare, mean
    from sley.runtime import Device

    with Device.open(engine) as device:
        require_cycles(device)
        found = compare(device, count)
        table = Table("m x k x n", "type", "by hand", "compiled", "share", title=f"Products, {device.config.name}")
        for each in found:
            name = " x ".join(map(str, each.sizes))
            table.add_row(name, each.dtype.name.lower(), f"{each.by_hand:,}", f"{each.compiled:,}", f"{each.share:.3f}")
        Console().print(table)
        least = min(each.share for each in found)
        typer.echo(f"geometric mean {mean(found):.3f}, least {least:.3f}")
        wrong = [each for each in found if not each.equal]
        if wrong:
            typer.echo(f"{len(wrong)} results differ, the first {wrong[0].sizes} of {wrong[0].dtype.name}", err=True)
            raise typer.Exit(1)
