"""``sley bench networks``: whole networks on int8, in cycles of the chip."""

from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from sley.abi.install import extra
from sley.runtime.options import ENGINE_NAMES

PROMISED = 0.92
"""Of the bound of ResNet-50's products, on ``base``: with pooling, residuals and the last layer."""


def networks(
    engine: Annotated[
        str, typer.Option(*ENGINE_NAMES, help="Engine URL, of an engine with cycles.")
    ] = "model:base?memory=1G&cycles=on&values=off",
) -> None:
    """ResNet-50 quantised to int8, one graph from the image to probabilities: cycles against the bound of its MACs."""
    from sley.bench.gemm.measure import require_cycles
    from sley.runtime import Device

    try:
        from sley.bench.networks.resnet import measure_resnet

        with Device.open(engine) as device:
            require_cycles(device)
            found, base = measure_resnet(device), device.config.name == "base"
    except ImportError as error:
        raise typer.BadParameter(f"{error}: {extra('onnx')}") from None
    table = Table(title=engine, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("network")
    for heading in ("operators", "launches", "MACs", "of int8", "cycles", "bound of\nMACs", "bound /\ncycles"):
        table.add_column(heading, justify="right", no_wrap=True)
    share = found.bound / found.cycles
    numbers = f"{found.products:,}", f"{found.share:.0%}", f"{found.cycles:,}", f"{found.bound:,}", f"{share:.1%}"
    table.add_row(found.name, f"{found.operators}", f"{found.launches}", *numbers)
    console = Console()
    console.width = max(console.width, 110)
    console.print(table)
    if base and share < PROMISED:
        typer.echo(f"{found.name}: {share:.1%} of its bound, promised {PROMISED:.0%}", err=True)
        raise typer.Exit(1)
