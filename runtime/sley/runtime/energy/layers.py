"""Energy of a network by its operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from sley.runtime.device.graph import Graph
from sley.runtime.device.stream import Stream
from sley.runtime.energy.estimate import Energy, estimate, joules_text
from sley.runtime.energy.point import OperatingPoint
from sley.runtime.energy.table import DEFAULT, Table

if TYPE_CHECKING:
    from rich.table import Table as Grid

    from sley.runtime.networks.compilation import CompiledNetwork


@dataclass(frozen=True)
class Layer:
    """What an operator of a network took; ``macs``: of its definition, padding not among them."""

    operator: str
    launches: int
    macs: int
    energy: Energy


def by_launch(
    graph: Graph, stream: Stream, *, table: Table = DEFAULT, point: OperatingPoint | None = None
) -> list[Energy]:
    """Runs a graph launch by launch, on the stream it was captured on. Copies and fills in it are left out.

    Raises what ``estimate`` raises.
    """
    found = []
    for number in range(len(graph.launches)):
        with stream.counted() as count:
            graph.launch_one(number)
        found.append(estimate(count.counters, stream.device.config, table=table, point=point))
    return found


def by_layer(compiled: CompiledNetwork, *, table: Table = DEFAULT, point: OperatingPoint | None = None) -> list[Layer]:
    """Runs a network launch by launch; the energy of each operator that has launches, in their order.

    Raises what ``estimate`` raises.
    """
    energies = by_launch(compiled.graph, compiled.stream, table=table, point=point)
    layers, first = [], 0
    for place in compiled.places:
        last = first + place.launches
        name = f"{place.node.operator} {place.node.name or place.node.outputs[0]}"
        layers.append(Layer(name, place.launches, place.macs, reduce(add, energies[first:last])))
        first = last
    return layers


def layer_table(layers: Sequence[Layer], most: int) -> Grid:
    """The operators that took most, up to so many of them."""
    from rich.table import Table as Grid

    total = sum(layer.energy.joules for layer in layers) or 1.0
    grid = Grid("operator", title=f"{min(most, len(layers))} of {len(layers)} operators, those that took most")
    for heading in ("launches", "MACs", "energy", "of all", "of it DRAM", "pJ/MAC on chip"):
        grid.add_column(heading, justify="right")
    for layer in sorted(layers, key=lambda layer: -layer.energy.joules)[:most]:
        e = layer.energy
        each = f"{e.on_chip / layer.macs * 1e12:.3f}" if layer.macs else ""
        dram = f"{1 - e.on_chip / e.joules:.0%}" if e.joules else ""
        macs = f"{layer.macs:,}" if layer.macs else ""
        numbers = joules_text(e.joules), f"{e.joules / total:.1%}", dram, each
        grid.add_row(layer.operator, str(layer.launches), macs, *numbers)
    return grid
