"""The command ``sley quantize``: a model of float32 to a network on int8, with the error of each layer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from sley.driver import BadRequest
from sley.runtime.frameworks.command import Model, read
from sley.runtime.networks.file import save_network
from sley.runtime.networks.passes.order import optimised
from sley.runtime.networks.quantizer.quantize import LEAST
from sley.runtime.networks.quantizer.quantize import quantize as quantized


def quantize(
    model: Model,
    data: Annotated[
        Path,
        typer.Option("--data", "-d", help="Samples: npz of numpy, an array for each input.", dir_okay=False),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write, such as model.sley.")],
    method: Annotated[str, typer.Option(help="Of ranges of values: max, percentile or mse.")] = "mse",
    least: Annotated[float, typer.Option(help="Signal to noise, dB, that a layer must reach in int8.")] = LEAST,
    dynamic: Annotated[bool, typer.Option(help="Products of matrices: a scale for each row, as they run.")] = False,
    smoothing: Annotated[bool, typer.Option(help="Scale channels behind norms against the weights.")] = True,
    correction: Annotated[bool, typer.Option(help="Take off the mean error of each channel by the bias.")] = True,
    report: Annotated[Path | None, typer.Option(help="File for the errors of all layers, as JSON.")] = None,
) -> None:
    """Quantise a model to int8: scales from samples, a type for each layer by its error; sley run takes the file."""
    network, fold = read(model)
    made, errors = quantized(
        network,
        _samples(data),
        fold,
        method=method,
        least=least,
        dynamic=dynamic,
        smoothing=smoothing,
        correction=correction,
    )
    save_network(optimised(made, fold), output)
    Console().print(errors.table())
    typer.echo(f"{output}: {errors.share:.1%} of the products are of int8")
    if report is not None:
        report.write_text(errors.json() + "\n")


def _samples(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise BadRequest(f"{path} is no npz of numpy: {error}; numpy.savez(path, input=samples) writes one") from None
