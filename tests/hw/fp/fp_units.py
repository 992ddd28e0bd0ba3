"""The fp32 units one operation at a time: operands ``a`` and ``b``, or ``i``, and what comes of them at ``o``."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.fp.add import Add
from sley.hw.fp.binary import Binary
from sley.hw.fp.float32 import Float32
from sley.hw.fp.multiply import Multiply
from sley.hw.fp.sum import Sum
from sley.hw.fp.to_int import ToInt32


class Operation(wiring.Component):
    """A unit that does always the same. ``settings`` are of its ports, ``inverted`` is the operand it wants so."""

    def __init__(
        self, unit: Any, latency: int, output: str = "o", inputs: str = "ab", inverted: str = "", **settings: int
    ) -> None:
        self.LATENCY = latency
        self._unit, self._output, self._inverted, self._settings = unit, output, inverted, settings
        super().__init__({name: In(32) for name in inputs} | {"o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self._unit
        for name in self.signature.members:
            if name != "o":
                value: Value = getattr(self, name)
                m.d.comb += getattr(unit, name).eq(~value if name == self._inverted else value)
        m.d.comb += [getattr(unit, name).eq(value) for name, value in self._settings.items()]
        if isinstance(unit, Multiply):
            m.d.comb += unit.a_nan.eq(Float32(self.a).is_nan())
        m.d.comb += self.o.eq(getattr(unit, self._output))
        return m


FP32_SUMS: dict[str, Callable[[], Any]] = {
    "add": Add,
    "binary": lambda: Operation(Binary(), Binary.SUM_LATENCY, "sum", inverted="b", float=1),
    "sum": lambda: Operation(Sum(), Sum.FLOAT_LATENCY, inverted="a", float=1),
}
INTEGER_SUMS: dict[str, Callable[[], Any]] = {
    "binary": lambda: Operation(Binary(), Binary.INTEGER_LATENCY, "integer"),
    "sum": lambda: Operation(Sum(), Sum.INTEGER_LATENCY),
}


def converted_sum() -> Operation:
    return Operation(Sum(), Sum.CONVERT_LATENCY, convert=1)


def maximum(*, is_float: int = 1) -> Operation:
    return Operation(Binary(), Binary.MAXIMUM_LATENCY, "larger", inverted="b", maximum=1, float=is_float)


def multiply() -> Operation:
    return Operation(Multiply(), Multiply.LATENCY, use=1)


def to_int32() -> Operation:
    return Operation(ToInt32(), ToInt32.LATENCY, inputs="i", use=1)


UNUSED: dict[str, tuple[Callable[[], Any], str, dict[str, int]]] = {
    "sum of integers": (Binary, "sum", {}),
    "sum of maximum": (Binary, "sum", {"maximum": 1, "float": 1}),
    "larger of sum": (Binary, "larger", {"float": 1}),
    "integer of sum": (Binary, "integer", {"float": 1}),
    "integer of maximum": (Binary, "integer", {"maximum": 1}),
    "product": (Multiply, "o", {}),
    "conversion": (ToInt32, "o", {}),
}
"""Results that nobody asks for, which are 0 whatever the operands are: unit, output and settings."""
