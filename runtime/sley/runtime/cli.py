"""The command ``sley``. Commands of other parts of the system join through the entry points ``sley.commands``."""

import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from rich.console import Console
from rich.table import Table

from sley.abi.asm import AsmError, assemble, bytes_to_words, disassemble, words_to_bytes
from sley.abi.config import PRESETS, ChipConfig, ConfigError, preset
from sley.abi.layout import LayoutError
from sley.abi.registers import RegisterMap
from sley.driver.errors import SleyError

USER_ERRORS = (SleyError, OSError, AsmError, ConfigError, LayoutError)


class _Group(typer.core.TyperGroup):
    """Turns errors that the user can do something about into one line and exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except USER_ERRORS as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from None


app = typer.Typer(
    name="sley",
    cls=_Group,
    help="Sley, an open NPU: run it, look at it, program it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
bench_app = typer.Typer(help="Measure on a device, in its own cycles.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")

Engine = Annotated[
    str, typer.Option("--engine", "-e", help="Engine URL, for example fast:base, pysim:nano, model:quad?memory=128M.")
]


@app.command()
def demo(
    engine: Annotated[
        str | None,
        typer.Option("--engine", "-e", help="Engine URL; default fast:base, or pysim:nano without a compiler."),
    ] = None,
    images: Annotated[
        int | None, typer.Option("--images", "-n", min=1, help="Test images; default all 360 (few on pysim).")
    ] = None,
) -> None:
    """Classify handwritten digits with a small MLP and a small CNN on the device."""
    from sley.runtime.demo.digits import run_demo

    run_demo(engine, images, Console())


@app.command()
def info(
    config: Annotated[
        str, typer.Argument(help=f"Preset ({', '.join(PRESETS)}), or an engine URL to ask a device.")
    ] = "base",
) -> None:
    """Show configuration, capabilities and memory map of a preset or of a device."""
    memory: int | None = None
    if config in PRESETS:
        chip = preset(config)
    elif ":" in config:
        from sley.driver.device import Driver

        with Driver.open(config) as driver:
            chip, memory = driver.config, driver.transport.memory_bytes
    else:
        raise typer.BadParameter(f"{config!r} is neither a preset ({', '.join(PRESETS)}) nor an engine URL")
    _print_info(chip, memory)


def _print_info(chip: ChipConfig, memory: int | None) -> None:
    console = Console()
    table = Table("parameter", "value", title=f"Configuration {chip.name}, hash {chip.hash:#010x}")
    for name, value in chip.capabilities.items():
        table.add_row(name, f"{value:,}")
    console.print(table)
    derived = {
        "int8 MACs per cycle": chip.peak_macs,
        "scratchpad of each core, bytes": chip.scratchpad_rows * chip.row_bytes,
        "accumulators of each core, bytes": chip.accumulator_rows * chip.accumulator_row_bytes,
        "memory bus, bytes per cycle": chip.bus_bytes,
        "operands of K in one pass": chip.fold_depth,
        **({} if memory is None else {"device memory, bytes": memory}),
    }
    table = Table("derived", "value")
    for name, value in derived.items():
        table.add_row(name, f"{value:,}")
    console.print(table)
    table = Table("MMIO address", "block", "what", title="Memory map")
    registers = RegisterMap(chip)
    for block in registers.blocks:
        for index in range(block.count):
            name = f"{block.name}{index}" if block.count > 1 or block.name != "CHIP" else block.name
            table.add_row(f"{block.base + index * block.stride:#06x}", name, block.doc)
    console.print(table)


@app.command()
def asm(
    source: Annotated[Path, typer.Argument(help="Assembly text; - for standard input.", allow_dash=True)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Binary to write; default: hexadecimal words on standard output."),
    ] = None,
) -> None:
    """Assemble a kernel program."""
    words = assemble(sys.stdin.read() if str(source) == "-" else source.read_text())
    if output is None:
        typer.echo("\n".join(f"{word:032x}" for word in words))
    else:
        output.write_bytes(words_to_bytes(words))


@app.command()
def disasm(
    source: Annotated[Path, typer.Argument(help="Binary program, as asm -o writes it.", dir_okay=False)],
) -> None:
    """Disassemble a kernel program."""
    try:
        words = bytes_to_words(source.read_bytes())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(disassemble(words), nl=False)


@bench_app.command("gemm")
def bench_gemm(
    engine: Engine = "fast:base",
    m: Annotated[int, typer.Option("-m", min=1, help="Rows of A and C.")] = 256,
    n: Annotated[int, typer.Option("-n", min=1, help="Columns of B and C.")] = 256,
    k: Annotated[int, typer.Option("-k", min=1, help="Columns of A, rows of B.")] = 256,
    int8: Annotated[bool, typer.Option("--int8", help="int8 result with scale, instead of int32.")] = False,
) -> None:
    """Multiply int8 matrices from DRAM; cycles from doorbell to fence."""
    from sley.runtime.bench import measure_gemm
    from sley.runtime.device import Device

    with Device.open(engine) as device:
        measure_gemm(device, m, n, k, int8)  # warm: uploads the program
        r = measure_gemm(device, m, n, k, int8)
    table = Table("", "value", title=f"gemm {m} x {n} x {k}, int8 to {'int8' if int8 else 'int32'}, {engine}")
    table.add_row("cycles, doorbell to fence", f"{r.cycles:,}")
    limits = f"compute {r.bound.compute:,}, read {r.bound.read:,}, write {r.bound.write:,}"
    table.add_row("lower bound, cycles", f"{r.bound.cycles:,} ({limits})")
    table.add_row("cycles / lower bound", f"{r.cycles / r.bound.cycles:.3f}")
    table.add_row("share of peak MACs", f"{r.share_of_peak:.1%} of {r.peak_macs:,} per cycle")
    table.add_row("macro tile, chunk of K", f"{r.plan.tile_m} x {r.plan.tile_n}, {r.plan.chunk}")
    table.add_row("blocks", " x ".join(map(str, r.plan.grid)))
    Console().print(table)
    if engine.startswith("model"):
        typer.echo("The engine model counts steps, not cycles: its numbers mean nothing here.", err=True)


def _join_commands() -> None:
    """Adds what the entry points name: a function is a command, a ``typer.Typer`` is a group of commands."""
    for point in sorted(entry_points(group="sley.commands"), key=lambda point: point.name):
        try:
            loaded = point.load()
        except ImportError as error:  # a part of the system that is not installed on this machine
            typer.echo(f"warning: command {point.name} is missing: {error}", err=True)
            continue
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=point.name)
        else:
            app.command(point.name)(loaded)


_join_commands()


def main() -> None:
    """Entry point of the script ``sley``."""
    app()


if __name__ == "__main__":
    main()
