"""The commands ``sley compile`` and ``sley run``: networks from files, on a device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as Grid

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.runtime.device.device import Device
from sley.runtime.energy.estimate import estimate
from sley.runtime.energy.layers import by_layer, layer_table
from sley.runtime.energy.table import Table
from sley.runtime.networks.compilation import CompiledNetwork, compile_network
from sley.runtime.networks.file import load_network
from sley.runtime.networks.graph import Network
from sley.runtime.networks.passes.constants import Fold
from sley.runtime.options import Engine

DEFAULT_ENGINE = "model:base?memory=1G"
SHOWN_LAYERS = 12
"""Operators in the table of energy."""
Model = Annotated[Path, typer.Argument(help="A model of ONNX, or a file that sley compile made.", dir_okay=False)]
Shapes = Annotated[
    list[str] | None,
    typer.Option("--shape", "-s", help="Shape of an input whose sides the model leaves open: data=1,3,224,224."),
]
Precision = Annotated[
    str, typer.Option("--precision", "-p", help="Of products of float32: highest, high or medium, as in nn.matmul.")
]


def run(
    model: Model,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", help="Values of an input: data=image.npy; zeros if not given.")
    ] = None,
    shapes: Shapes = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the outputs, as files of numpy.", file_okay=False)
    ] = None,
    precision: Precision = "highest",
    energy: Annotated[
        str | None,
        typer.Option(help="Energy by unit and layer, of a published table (45nm, 7nm) or your own (FILE:NODE)."),
    ] = None,
    engine: Engine = DEFAULT_ENGINE,
) -> None:
    """Run a network on a device: outputs, launches and, where the engine has them, cycles and energy."""
    prices = None if energy is None else Table.named(energy)
    network, fold = read(model)
    given = {name: np.load(path, allow_pickle=False) for name, path in _named(inputs, "data=image.npy")}
    sides = _shapes(shapes) | {name: value.shape for name, value in given.items()}
    with Device.open(engine) as device:
        compiled = compile_network(network, device, fold, sides, precision=precision)
        values = {name: given.get(name, np.zeros(array.shape, array.dtype)) for name, array in compiled.inputs.items()}
        compiled.write(**values)
        with compiled.stream.counted() as count:
            compiled.launch()
        found = compiled.read()
        _print(compiled, found, count.measured)
        if prices is not None:
            console = Console()
            console.print(estimate(count.counters, device.config, table=prices))
            console.print(layer_table(by_layer(compiled, table=prices), SHOWN_LAYERS))
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        for name, value in found.items():
            np.save(output / f"{name.replace('/', '_')}.npy", value)


def compile(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write, such as model.sley.")],
    shapes: Shapes = None,
    engine: Engine = DEFAULT_ENGINE,
) -> None:
    """Compile a model to a file: shapes fixed, constants computed, operators fused; sley run takes it."""
    network, fold = read(model)
    with Device.open(engine) as device:
        compiled = compile_network(network, device, fold, _shapes(shapes))
        compiled.save(output)
        typer.echo(f"{output}: {len(compiled.network.nodes)} operators, {len(compiled.graph)} launches")


def read(model: Path) -> tuple[Network, Fold]:
    """A network from a file, and what computes its constants. Raises ``BadRequest``."""
    try:
        from sley.runtime.frameworks.from_onnx.fold import fold
        from sley.runtime.frameworks.from_onnx.importer import read_model
    except ImportError as error:
        if model.suffix == ".onnx":
            raise BadRequest(f"{model} needs onnx, which is not installed ({error}): {extra('onnx')}") from None
        return load_network(model), _no_fold
    return (read_model(model) if model.suffix == ".onnx" else load_network(model)), fold


def _no_fold(*_: object) -> list[np.ndarray]:
    raise BadRequest(f"the network has shapes that are still to be computed, which needs onnx: {extra('onnx')}")


def _named(given: list[str] | None, example: str) -> list[tuple[str, str]]:
    pairs = [tuple(text.partition("=")[::2]) for text in given or []]
    if any(not name or not value for name, value in pairs):
        raise BadRequest(f"{', '.join(given or [])}: give a name and what it is, such as {example}")
    return [(name, value) for name, value in pairs]


def _shapes(given: list[str] | None) -> dict[str, tuple[int, ...]]:
    try:
        return {name: tuple(int(side) for side in text.split(",")) for name, text in _named(given, "data=1,3,224,224")}
    except ValueError as error:
        raise BadRequest(f"a shape is integers with commas between, such as data=1,3,224,224: {error}") from None


def _print(compiled: CompiledNetwork, found: dict[str, np.ndarray], cycles: int | None) -> None:
    console, table = Console(), Grid("output", "type", "shape", "smallest", "largest", "mean")
    for name, value in found.items():
        numbers = (
            [f"{number:.6g}" for number in (value.min(), value.max(), value.mean())] if value.size else ["", "", ""]
        )
        table.add_row(name, str(value.dtype), str(value.shape), *numbers)
    console.print(table)
    console.print(
        f"{compiled.network.name}: {len(compiled.network.nodes)} operators, {len(compiled.graph)} launches"
        + (f", {cycles:,} cycles" if cycles is not None else "; no cycles on this engine: cycles=on counts them")
    )
