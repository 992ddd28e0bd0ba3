"""An operation of one's own: what softplus in hardware does for a network, and for the chip's area."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from sley.abi import PRESETS
from sley.abi.functions.own import OwnFunction, own_functions
from sley.driver import BadRequest
from sley.examples.studies.study import Line, Result, Study
from sley.explore import area_of, cost
from sley.fpga.devices.family import FAMILIES
from sley.fpga.report.area import measure
from sley.runtime import Device, tile
from sley.runtime.frameworks.constants import fold
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.nn.mapping import in_fp32

BATCHES = (64, 256)


def network(batch: int, features: int) -> Network:
    """Two layers with softplus between."""
    weights = np.zeros((features, features), np.float32)
    nodes = (
        Node("MatMul", ("x", "v"), ("a",), {}, "", 21),
        Node("Softplus", ("a",), ("b",), {}, "", 21),
        Node("MatMul", ("b", "w"), ("y",), {}, "", 21),
    )
    type = TensorType(np.dtype(np.float32), (batch, features))
    return Network("softplus", {"x": type}, {"y": type}, nodes, {"v": weights, "w": weights})


def softplus_tile(x: Any) -> Any:
    return tile.apply("softplus", x)


def softplus(c: Any, node: Any, x: Any) -> Any:
    """The operator, by the unit."""
    return in_fp32("softplus", softplus_tile, c.array(x), stream=c.stream)


def _luts(function: OwnFunction) -> int:
    """Of one unit on an ECP5, as Yosys maps it."""
    with tempfile.TemporaryDirectory() as folder:
        return measure(function.load_gateware()(), FAMILIES["ecp5"], Path(folder), 0).top.total.lut


def run(small: bool) -> Result:
    if "softplus" not in own_functions():
        raise BadRequest("the function softplus is not installed: pip install -e examples/softplus in a clone of Sley")
    base = PRESETS["base"]
    chip = base.replace(name="softplus", vector_functions=(*base.vector_functions, "softplus"))
    unit = _luts(own_functions()["softplus"]) * chip.vector_lanes
    features, rows, lines = 64 if small else 256, [], []
    ways = (("functions of base", base, None, 0), ("its own unit", chip, {"Softplus": softplus}, unit))
    for name, config, own, luts in ways:
        cycles = []
        for batch in BATCHES[:1] if small else BATCHES:

            def prepare(device: Device, batch: int = batch, own: Any = own) -> Any:
                made = network(batch, features)
                return compile_network(made, device, fold, precision="medium", operators=own).launch

            cycles.append(cost(prepare, config).cycles)
            rows.append((name, batch, cycles[-1], luts, int(area_of(base).lut)))
        lines.append(Line(name, BATCHES[: len(cycles)], cycles))
    columns = ("softplus by", "batch", "cycles", "LUTs of its units", "LUTs of base")
    return Result(columns, rows, lines, "batch", "cycles", BATCHES)


TEXT = """\
Two layers of 256 features with softplus between, products of bf16, on `base`: softplus made of the functions of
`base`, or by the unit of `examples/softplus` in each lane
([how it is added](../guides/change-the-chip.md#add-a-unit)). LUTs are those of an ECP5: of the units as Yosys maps
one of them, of the chip by the [fitted model](../guides/explore.md)."""
STUDY = Study("own-operation", "What does an operation of one's own bring?", TEXT, run)
