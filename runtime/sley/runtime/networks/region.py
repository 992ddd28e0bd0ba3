"""Element-wise operators in one launch: what a ``Region`` computes, as a function of tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sley.runtime.networks.graph import Node
from sley.runtime.nn.functions import exp_tile
from sley.runtime.nn.nonlinear import prelu_tile, softplus_tile
from sley.runtime.nn.quantization import rounded_at
from sley.runtime.tile import language as tile


@dataclass(frozen=True)
class Elementwise:
    """An operator on tiles; ``numbers``: attributes that it takes behind its operands, with what they are if not
    given.
    """

    function: Callable[..., Any]
    numbers: tuple[tuple[str, float], ...] = ()


def _sum(*values: Any) -> Any:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _quantized(x: Any, scale: float, zero_point: float) -> Any:
    return rounded_at(x * (1 / scale), zero_point) if zero_point else x * (1 / scale)


def _dequantized(x: Any, scale: float, zero_point: float) -> Any:
    return (x - zero_point) * scale if zero_point else x * scale


OPERATORS: dict[str, Elementwise] = {
    "Abs": Elementwise(lambda x: tile.maximum(x, -x)),
    "Add": Elementwise(lambda x, y: x + y),
    "Affine": Elementwise(lambda x, factor, shift: x * factor + shift, (("factor", 1.0), ("shift", 0.0))),
    "AtLeast": Elementwise(lambda x, low: tile.maximum(x, low), (("low", 0.0),)),
    "DequantizeLinear": Elementwise(_dequantized, (("scale", 1.0), ("zero_point", 0.0))),
    "Exp": Elementwise(exp_tile),
    "HardSigmoid": Elementwise(
        lambda x, slope, shift: tile.minimum(tile.maximum(x * slope + shift, 0.0), 1.0), (("alpha", 0.2), ("beta", 0.5))
    ),
    "LeakyRelu": Elementwise(prelu_tile, (("alpha", 0.01),)),
    "Mul": Elementwise(lambda x, y: x * y),
    "Neg": Elementwise(lambda x: -x),
    "QuantizeLinear": Elementwise(_quantized, (("scale", 1.0), ("zero_point", 0.0))),
    "Reciprocal": Elementwise(tile.reciprocal),
    "Relu": Elementwise(lambda x: tile.maximum(x, 0.0)),
    "Scaled": Elementwise(lambda x, y, factor: x * factor + y, (("factor", 1.0),)),
    "Sigmoid": Elementwise(tile.sigmoid),
    "Softplus": Elementwise(lambda x: softplus_tile(x, 1.0)),
    "Sqrt": Elementwise(tile.sqrt),
    "Sub": Elementwise(lambda x, y: x - y),
    "Sum": Elementwise(_sum),
    "Tanh": Elementwise(tile.tanh),
}


@dataclass(frozen=True)
class Step:
    """An operator of a region. ``operands``: numbers of values: inputs first, then results of steps before."""

    operator: str
    operands: tuple[int, ...]
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Region:
    """Steps on so many inputs; the last one's result is the region's: float32, or int8, which it is rounded half to
    even and saturated to. It is a function of tiles, equal to another one of the same steps, so programs are kept by
    it.
    """

    inputs: int
    steps: tuple[Step, ...]
    result: str = "float32"

    def nodes(self, inputs: Sequence[str], output: str, version: int) -> list[Node]:
        """The operators that it was made of."""
        names, found = list(inputs), []
        for number, step in enumerate(self.steps):
            last = number == len(self.steps) - 1
            names.append(output if last else f"{output}.{number}")
            numbers = dict(zip((name for name, _ in OPERATORS[step.operator].numbers), step.numbers, strict=True))
            operands = tuple(names[operand] for operand in step.operands)
            found.append(Node(step.operator, operands, (names[-1],), numbers, "", version))
        return found

    def __call__(self, *tiles: Any) -> Any:
        values = list(tiles)
        for step in self.steps:
            values.append(
                OPERATORS[step.operator].function(*(values[number] for number in step.operands), *step.numbers)
            )
        return values[-1]
