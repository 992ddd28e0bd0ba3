"""``sley bench torch``: PyTorch's own samples of operators, on the device ``sley``."""

from pathlib import Path
from typing import Annotated

import typer

from sley.abi.install import extra


def torch(
    samples: Annotated[int | None, typer.Option(help="At most so many of each operator and type.")] = None,
    seconds: Annotated[float | None, typer.Option(help="No sample of an operator and type after so long.")] = None,
    only: Annotated[str | None, typer.Option(help="Operators, with commas between; all if not given.")] = None,
    record: Annotated[Path | None, typer.Option(help="A file of outcomes, to go on from and to write.")] = None,
    write: Annotated[Path | None, typer.Option(help="A file for the page; without it, it is printed.")] = None,
) -> None:
    """PyTorch's own samples: operators that pass all of them on the device, forward and backward; takes hours."""
    try:
        from sley.runtime.frameworks import torch as sley_torch
        from sley.runtime.frameworks.torch_device import score
    except ImportError as error:
        raise typer.BadParameter(f"{error}: {extra('torch')}") from None
    from sley.bench.networks.torch_page import torch_page
    from sley.bench.networks.torch_record import Record

    assert sley_torch
    wanted, outcomes = None if only is None else set(only.split(",")), Record(record)
    for op in score.operators():
        name = score.full_name(op)
        for dtype in score.types(op) if wanted is None or name in wanted else ():
            if not outcomes.finished(name, str(dtype).removeprefix("torch.")):
                outcomes.add(score.run(op, dtype, samples, seconds))
    page = torch_page(outcomes)
    if write is None:
        typer.echo(page)
    else:
        write.write_text(page)
