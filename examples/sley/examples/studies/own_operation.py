"""An operation of one's own: what softplus in hardware does for a network, and for the chip's area."""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.abi import PRESETS
from sley.abi.functions.own import own_functions
from sley.driver import BadRequest
from sley.examples.studies.study import Line, Result, Study
from sley.explore import cost
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


def run(small: bool) -> Result:
    if "softplus" not in own_functions():
        raise BadRequest("the function softplus is not installed: pip install -e examples/softplus in a clone of Sley")
    base = PRESETS["base"]
    chip = base.replace(name="softplus", vector_functions=(*base.vector_functions, "softplus"))
    features, rows, lines = 64 if small else 256, [], []
    for name, config, own in (("functions of base", base, None), ("its own unit", chip, {"Softplus": softplus})):
        cycles = []
        for batch in BATCHES[:1] if small else BATCHES:

            def prepare(device: Device, batch: int = batch, own: Any = own) -> Any:
                made = network(batch, features)
                return compile_network(made, device, fold, precision="medium", operators=own).launch

            cycles.append(cost(prepare, config).cycles)
            rows.append((name, batch, cycles[-1]))
        lines.append(Line(name, BATCHES[: len(cycles)], cycles))
    return Result(("softplus by", "batch", "cycles"), rows, lines, "batch", "cycles", BATCHES)


TEXT = """\
Two layers of 256 features with softplus between, products of bf16, on `base`: softplus made of exp2, log2 and
five element-wise operations, or by the unit of `examples/softplus` in each lane ([how it is
added](../guides/change-the-chip.md#add-a-unit))."""
STUDY = Study("own-operation", "What does an operation of one's own bring?", TEXT, run)
