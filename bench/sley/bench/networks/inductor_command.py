"""``sley bench inductor``: how far PyTorch's Inductor goes on the device, beside the other ways to run a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sley.abi.install import extra

ENGINE = "model:base?memory=256M&cycles=on"
HEAD = """# Inductor on the device

What of small models goes through [Inductor's Triton kernels](../guides/pytorch.md#inductor), as `sley bench inductor
--write docs/reference/inductor.md` writes it; do not edit. Nothing is done by the host. Kernels are Inductor's own;
operators are nodes of its graphs for those of the device: products, convolutions, softmax, which has two, and others.
The error is the largest difference from PyTorch on the host, by the largest element, of results, or of gradients and
new parameters. Cycles are those of a second run on `base`: operator by operator, with `backend="sley"`, and with
`backend="inductor"`.

| model | kernels | operators | error | eager | sley | inductor |
|---|---|---|---|---|---|---|
"""


def inductor(
    write: Annotated[Path | None, typer.Option(help="A file for the page; without it, it is printed.")] = None,
) -> None:
    """Small models through PyTorch's Inductor: kernels, errors, cycles; takes minutes."""
    try:
        from sley.bench.networks.inductor_models import MODELS
        from sley.bench.networks.inductor_run import run
        from sley.runtime.frameworks import torch as sley_torch
        from sley.runtime.frameworks.torch_device.engine import set_engine
    except ImportError as error:
        raise typer.BadParameter(f"{error}: {extra('torch')}") from None
    assert sley_torch
    set_engine(ENGINE)
    page = HEAD + "".join(row(run(model)) for model in MODELS)
    if write is None:
        typer.echo(page)
    else:
        write.write_text(page)


def row(outcome: Any) -> str:
    """One line of the table."""
    counted = (f"{outcome.cycles[how]:,}" for how in ("eager", "sley", "inductor"))
    cells = (outcome.model, outcome.kernels, outcome.operators, f"{outcome.error:.1e}", *counted)
    return f"| {' | '.join(map(str, cells))} |\n"
