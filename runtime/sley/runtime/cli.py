"""The command ``sley``.

Commands of other parts of the system join through the entry points ``sley.commands``.
"""

import signal
import sys
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from rich.console import Console
from rich.table import Table

from sley.abi.asm import AsmError, assemble, bytes_to_words, disassemble, words_to_bytes
from sley.abi.config import ABI_MAJOR, ABI_MINOR, PRESETS, ChipConfig, ConfigError, configuration
from sley.abi.errors import SleyError
from sley.abi.registers import RegisterMap

USER_ERRORS = (SleyError, OSError, MemoryError)


class _Group(typer.core.TyperGroup):
    """Turns errors that the user can do something about into one line and exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader has seen enough, as with a pipe into head: typer ends without a word
            raise
        except USER_ERRORS as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from None


app = typer.Typer(
    name="sley",
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"sley {version('sley')}, ABI {ABI_MAJOR}.{ABI_MINOR}")
        raise typer.Exit


@app.callback()
def sley(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Sley, an open NPU: run it, look at it, program it."""


@app.command()
def info(
    config: Annotated[
        str, typer.Argument(help=f"Preset ({', '.join(PRESETS)}), JSON file, or an engine URL to ask a device.")
    ] = "base",
) -> None:
    """Show configuration, capabilities and memory map of a preset or of a device."""
    memory: int | None = None
    if ":" in config:
        from sley.driver import Driver

        with Driver.open(config) as driver:
            chip, memory = driver.config, driver.transport.memory_bytes
    else:
        try:
            chip = configuration(config)
        except ConfigError as error:
            raise typer.BadParameter(f"{error}, or an engine URL such as fast:base") from None
    _print_info(chip, memory)


def _print_info(chip: ChipConfig, memory: int | None) -> None:
    console = Console()
    table = Table("parameter", "value", title=f"Configuration {chip.name}, hash {chip.hash:#010x}")
    sizes = {name: f"{value:,}" for name, value in chip.capabilities.items()}
    sizes["operand_types"] = ", ".join(operand.info.name for operand in chip.operand_types)
    for name, text in sizes.items():
        table.add_row(name, text)
    console.print(table)
    derived = {
        "int8 MACs per cycle": chip.peak_macs,
        "scratchpad of each core, bytes": chip.scratchpad_rows * chip.row_bytes,
        "accumulators of each core, bytes": chip.accumulator_rows * chip.accumulator_row_bytes,
        "memory bus, bytes per cycle": chip.bus_bytes,
        "operands of K in one pass": chip.fold_depth(),
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
    try:
        text = sys.stdin.read() if str(source) == "-" else source.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise AsmError(f"{source} is no text in UTF-8 ({error}); a binary is for sley disasm") from None
    words = assemble(text)
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


def _join(target: typer.Typer, group: str) -> None:
    """Adds what the entry points name: a function is a command, a ``typer.Typer`` is a group of commands."""
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            loaded = point.load()
        except ImportError as error:  # a part of the system that is not installed on this machine
            typer.echo(f"warning: command {point.name} is missing: {error}", err=True)
            continue
        if isinstance(loaded, typer.Typer):
            target.add_typer(loaded, name=point.name)
        else:
            target.command(point.name)(loaded)


_join(app, "sley.commands")


def _terminate(number: int, frame: object) -> None:
    """Ends as an exception does, so that tools end that were started."""
    raise SystemExit(128 + number)


def main() -> None:
    """Entry point of the script ``sley``."""
    signal.signal(signal.SIGTERM, _terminate)
    app()


if __name__ == "__main__":
    main()
