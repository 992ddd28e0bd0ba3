"""The commands ``sley cache``; found through the entry points ``sley.commands``."""

from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.sim.build.cache import cache_folder, cache_limit, clear, entries

cache = typer.Typer(help="The compiled engines and generated Verilog kept on this machine.", no_args_is_help=True)


def size_text(size: int) -> str:
    """A number of bytes with a unit: B, KiB, MiB or GiB (powers of 1024)."""
    for power, unit in (3, "GiB"), (2, "MiB"), (1, "KiB"):
        if size >= 1 << 10 * power:
            return f"{size / (1 << 10 * power):.1f} {unit}"
    return f"{size} B"


@cache.command()
def show() -> None:
    """Show what the cache holds, its size and its limit."""
    limit, found = cache_limit(), entries()
    table = Table("kind", "entries", "size", "last use", title="Cache")
    for kind in sorted({entry.kind for entry in found}):
        some = [entry for entry in found if entry.kind == kind]
        last = datetime.fromtimestamp(some[-1].used).isoformat(" ", "minutes")
        table.add_row(kind, f"{len(some):,}", size_text(sum(entry.size for entry in some)), last)
    if found:
        Console().print(table)
    typer.echo(f"total   {size_text(sum(entry.size for entry in found))}")
    typer.echo(f"limit   {'none' if limit is None else size_text(limit)}")
    typer.echo(f"folder  {cache_folder()}")


@cache.command("clear")
def clear_command(
    kind: Annotated[str | None, typer.Argument(help="Only entries of this kind, as sley cache show names it.")] = None,
) -> None:
    """Remove all entries, or those of one kind; what a process builds or runs now is not disturbed."""
    kinds = sorted({entry.kind for entry in entries()})
    if kind is not None and kinds and kind not in kinds:
        raise typer.BadParameter(f"the cache holds nothing of kind {kind!r}, only {', '.join(kinds)}")
    done = clear(kind)
    typer.echo(f"removed {done.entries:,} {'entry' if done.entries == 1 else 'entries'}, freed {size_text(done.bytes)}")
    for name in done.busy:
        typer.echo(f"left {name}: it is being built", err=True)


@cache.command()
def path() -> None:
    """Print the folder of the cache."""
    typer.echo(cache_folder())
