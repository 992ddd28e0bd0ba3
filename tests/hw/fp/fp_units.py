"""The fp32 units one operation at a time: operands ``a`` and ``b``, or ``i``, and what comes of them at ``o``."""

from collections.abc import Callable
from typing import Any

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from sley.hw.fp.add_product import AddProduct, pack_total, unpack_total
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


class SumWithProduct(wiring.Component):
    """a + the product that b stands for: its significand is of the form [2, 4) with b[0], else of [1, 2)."""

    LATENCY = AddProduct.LATENCY

    def __init__(self) -> None:
        super().__init__({"a": In(32), "b": In(32), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = AddProduct()
        fraction, exponent = self.b[8:23], self.b[23:31]
        zero, special = exponent == 0, exponent.all()
        double = self.b[0] & ~zero & ~special
        significand = Mux(double, Cat(fraction, 1), Cat(fraction[1:], Const(1, 2)))
        product = unit.product
        m.d.comb += [
            unit.enable.eq(1),
            unit.total.eq(unpack_total(self.a)),
            # What does not count is anything.
            product.significand.eq(Mux(zero, self.b, Mux(special, self.b[9:24] | 1 << 14, significand))),
            product.exponent.eq(Mux(zero, self.b[:8], exponent - double)),
            product.sign.eq(self.b[31]),
            product.zero.eq(zero),
            product.special.eq(special),
            product.nan.eq(special & fraction.any()),
            self.o.eq(pack_total(unit.o)),
        ]
        return m


def product_of(b: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The fp32 that b stands for, as a product of ``SumWithProduct``."""
    whole = ((b & 1) != 0) | ((b >> 23 & 255) == 255)
    return b & np.where(whole, 0xFFFFFF00, 0xFFFFFE00).astype(np.uint32)


FP32_SUMS: dict[str, Callable[[], Any]] = {
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


def multiply_beside_int32() -> Operation:
    """The product of fp32 of a multiplier that has those of int32, too."""
    return Operation(Multiply(integer=True), Multiply.LATENCY, use=1, integer=0)


def multiply_int32() -> Operation:
    return Operation(Multiply(integer=True), Multiply.LATENCY, output="low", use=0, integer=1)


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
