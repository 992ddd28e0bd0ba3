"""The command ``sley bench sanitize``."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from sley.runtime import Device

SIZE = 512
SOFTMAX = (512, 1024)
PROMISE = 3.0
"""A sanitized run takes at most so many times as long as one that is not."""


def sanitize(
    chip: Annotated[str, typer.Argument(help="A preset or a configuration file.")] = "base",
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds, of which the best counts.")] = 5,
) -> None:
    """How much longer programs take on engine model with all sanitizers."""
    from rich.console import Console
    from rich.table import Table

    from sley.runtime import Device
    from sley.sim.model.sanitize.kinds import Sanitizer

    every = ",".join(sanitizer.name.lower() for sanitizer in Sanitizer)
    table = Table("work", "plain, ms", f"sanitize={every}, ms", "ratio", title=f"model:{chip}, processor time")
    worst = 0.0
    with Device.open(f"model:{chip}") as plain, Device.open(f"model:{chip}?sanitize={every}") as watched:
        for name, work in _works(plain).items():
            pair = [(device, work(device)) for device in (plain, watched)]
            best = [float("inf")] * 2
            for number in range(rounds + 1):
                for index, (device, run) in enumerate(pair):
                    start = time.process_time()
                    run()
                    device.synchronize()
                    if number:
                        best[index] = min(best[index], time.process_time() - start)
            ratio = best[1] / best[0]
            worst = max(worst, ratio)
            table.add_row(name, f"{best[0] * 1e3:.1f}", f"{best[1] * 1e3:.1f}", f"{ratio:.2f}")
    Console().print(table)
    if worst > PROMISE:
        typer.echo(f"error: a ratio is above {PROMISE}", err=True)
        raise typer.Exit(1)


def _works(device: "Device") -> "dict[str, Callable[[Device], Callable[[], object]]]":
    """Works by name: what makes operands on a device, and returns the work on them."""
    import numpy as np

    from sley.abi.types import ElementType
    from sley.runtime import blas, nn
    from sley.runtime.device.buffer import BF16

    random = np.random.default_rng(1)
    square, rows = random.integers(-100, 100, (SIZE, SIZE)), random.normal(size=SOFTMAX)

    def product(dtype: "DTypeLike") -> "Callable[[Device], Callable[[], object]]":
        def work(device: "Device") -> Callable[[], object]:
            a, b = (device.array(square.astype(dtype)) for _ in range(2))
            return lambda: blas.gemm(a, b)

        return work

    def softmax(device: "Device") -> Callable[[], object]:
        x = device.array(rows.astype(BF16))
        return lambda: nn.softmax(x)

    works = {f"product of int8, {SIZE} cubed": product(np.int8)}
    if device.config.has(ElementType.BF16):
        works[f"product of bf16, {SIZE} cubed"] = product(BF16)
    if device.config.vector_chains:
        works["softmax of {} x {}".format(*SOFTMAX)] = softmax
    return works
