"""ResNet-50 of onnx, quantised: a whole network on int8, as one graph, against the bound of its products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sley.abi.types import ElementType
from sley.explore.costs.workload import NetworkWorkload
from sley.runtime import Device
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.graph import Array, Network
from sley.runtime.networks.quantizer.report import Report

MODEL = "backend/test/data/light/light_resnet50.onnx"
"""In the package onnx. Its weights are made when it is read, and stand for others."""


@dataclass(frozen=True)
class NetworkCycles:
    """A network that ran. ``products``: of all layers; ``share``: of them on int8; ``bound``: cycles of the array for
    them."""

    name: str
    operators: int
    launches: int
    products: int
    share: float
    cycles: int
    bound: int


def quantized() -> tuple[Network, Report, Array]:
    """The network on int8, what of it is, and the image. Raises ``ImportError`` without onnx."""
    import onnx

    from sley.runtime.frameworks.from_onnx.fold import fold
    from sley.runtime.frameworks.from_onnx.importer import read_model
    from sley.runtime.networks.quantizer.quantize import quantize

    network = read_model(Path(onnx.__file__).parent / MODEL)
    (name,) = network.inputs
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    return *quantize(network, {name: image}, fold, method="max"), image


def networks() -> dict[str, Callable[[], NetworkWorkload]]:
    """For ``sley sweep``, by name."""
    return {"resnet50-int8": lambda: NetworkWorkload("resnet50-int8", quantized()[0])}


def measure_resnet(device: Device) -> NetworkCycles:
    """One image, from float32 to probabilities. Ranges are those of one image of random numbers."""
    from sley.runtime.frameworks.from_onnx.fold import fold

    made, report, image = quantized()
    compiled = compile_network(made, device, fold)
    compiled.write(image)
    before = device.driver.counters()
    compiled.launch()
    compiled.stream.synchronize()
    cycles = (device.driver.counters() - before).cycles
    config, products = device.config, sum(row.products for row in report.rows)
    at_once = config.cores * config.array * config.fold_depth(ElementType.INT8)
    return NetworkCycles(
        "resnet50",
        len(compiled.network.nodes),
        len(compiled.graph),
        products,
        report.share,
        cycles,
        -(-products // at_once),
    )
