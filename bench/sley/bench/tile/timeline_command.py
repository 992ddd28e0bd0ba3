"""The command ``sley bench timeline``."""

from typing import Annotated

import typer

from sley.runtime.options import Engine

MODEL = "model:base?cycles=on&values=off&memory=16M"


def timeline(
    what: Annotated[str, typer.Argument(help="module:name of a kernel or of a function of arrays, or nn:name.")],
    arguments: Annotated[list[str], typer.Argument(help="Arrays as bf16[512,256], constants, by name if name=...")],
    engine: Engine = MODEL,
    grid: Annotated[str | None, typer.Option(help="Blocks of a kernel, by its constants: 'cdiv(512, rows)'.")] = None,
    columns: Annotated[int, typer.Option(min=1, help="Parts of the time.")] = 64,
    core: Annotated[int, typer.Option(min=0, help="Whose units.")] = 0,
) -> None:
    """What ran when: the share of its time that each unit of a core works, from the doorbell to the end."""
    from sley.bench.gemm.measure import require_cycles
    from sley.bench.tile.calls import Arguments, found, grid_of
    from sley.bench.tile.timeline import timeline as made
    from sley.driver import BadRequest
    from sley.runtime import Device, tile

    target = found(what)
    with Device.open(engine) as device:
        require_cycles(device)
        given = Arguments.of(device, arguments)
        if core >= device.config.cores:
            raise BadRequest(f"core is {core}; the chip {device.config.name} has {device.config.cores}")
        if isinstance(target, tile.Kernel):
            if grid is None:
                raise BadRequest(f"{target.name} is a kernel: say how many blocks, as --grid 'cdiv(512, rows)'")
            target = target[grid_of(grid)]
        typer.echo(made(device, lambda: target(*given.positional, **given.named), columns, core).text(), nl=False)
