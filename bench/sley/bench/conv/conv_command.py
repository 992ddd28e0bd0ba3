"""The command ``sley bench conv``."""

import csv
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from sley.abi.outputs import check_output
from sley.runtime.options import ENGINE_NAMES

TABLE_WIDTH = 110
PROMISED = {"resnet50": 7_982_688 * 100 // 97, "mobilenetv1": 1_120_000}
"""Cycles of all layers of a network on ``base``."""


def conv(
    engine: Annotated[
        str, typer.Option(*ENGINE_NAMES, help="Engine URL, with memory for the largest layer.")
    ] = "fast:base?memory=64M",
    network: Annotated[list[str] | None, typer.Option("--network", "-n", help="Only this one; repeatable.")] = None,
    layers: Annotated[list[str] | None, typer.Option("--layers", "-l", help="Only this layer; repeatable.")] = None,
    output: Annotated[Path | None, typer.Option("--csv", help="File for all numbers.", dir_okay=False)] = None,
) -> None:
    """Convolutions of networks, int8 from DRAM with bias, scales and ReLU: cycles against the bound of the MACs."""
    from sley.bench.conv.layers import choose
    from sley.bench.conv.layers import layers as all_layers
    from sley.bench.conv.measure import measure_conv
    from sley.bench.gemm.measure import require_cycles
    from sley.runtime import Device

    check_output(output)
    chosen = choose(all_layers(), network or (), layers or ())
    found, missed = [], list[str]()
    with Device.open(engine) as device:
        require_cycles(device)
        config = device.config
        for number, layer in enumerate(chosen, 1):
            typer.echo(f"{number} of {len(chosen)}: {layer.network} {layer.layer}", err=True)
            found.append(measure_conv(device, layer))
    console = Console()
    console.width = max(console.width, TABLE_WIDTH)
    for name in dict.fromkeys(layer.network for layer in chosen):
        table = Table(title=f"{name}, {engine}", title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
        table.add_column("layer", no_wrap=True)
        for heading in (
            "pixels",
            "channels",
            "outputs",
            "window",
            "times",
            "cycles",
            "bound of\nMACs",
            "bound /\ncycles",
        ):
            table.add_column(heading, justify="right", no_wrap=True)
        cycles = bound = 0
        for r in found:
            if r.layer.network != name:
                continue
            a = r.layer
            sizes = f"{a.size}", f"{a.channels}", f"{a.outputs}", a.text, f"{a.count}"
            table.add_row(a.layer, *sizes, f"{r.cycles:,}", f"{r.bound:,}", f"{r.bound / r.cycles:.1%}")
            cycles += a.count * r.cycles
            bound += a.count * r.bound
        table.add_section()
        times = sum(r.layer.count for r in found if r.layer.network == name)
        table.add_row("all", "", "", "", "", f"{times}", f"{cycles:,}", f"{bound:,}", f"{bound / cycles:.1%}")
        console.print(table)
        whole = [a for a in all_layers() if a.network == name] == [r.layer for r in found if r.layer.network == name]
        if whole and config.name == "base" and cycles > PROMISED[name]:
            missed.append(f"{name}: {cycles:,} cycles, promised {PROMISED[name]:,}")
    if output is not None:
        with output.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["engine", "network", "layer", "count", "cycles", "bound"])
            for r in found:
                writer.writerow([engine, r.layer.network, r.layer.layer, r.layer.count, r.cycles, r.bound])
    if missed:
        typer.echo("\n".join(missed), err=True)
        raise typer.Exit(1)
