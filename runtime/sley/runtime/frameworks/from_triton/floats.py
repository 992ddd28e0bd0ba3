"""Arithmetic of floating point: in fp32 on the chip, rounded to the type that TTIR has."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from sley.abi.types import ElementType
from sley.runtime.frameworks.from_triton.conversion import FP32, INT32, Conversion, lowers, narrow
from sley.runtime.frameworks.from_triton.elements import result, tiles_of
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import Operation
from sley.runtime.frameworks.from_triton.values import Constant, Data, Known
from sley.runtime.tile import language as tile
from sley.runtime.tile.constants import word
from sley.runtime.tile.trace import Tile, where

BINARY: dict[str, Callable[[Tile, Tile], Tile]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.maximumf": tile.maximum,
    "arith.minimumf": tile.minimum,
    "arith.maxnumf": tile.maximum,
    "arith.minnumf": tile.minimum,
    "tt.precise_divf": lambda a, b: a / b,
}
"""Functions of two elements."""


def erf(x: Tile) -> Tile:
    """2 Φ(√2 x) - 1."""
    return tile.normal_cdf(x * math.sqrt(2)) * 2.0 - 1.0


def ceil(x: Tile) -> Tile:
    """-floor(-x)."""
    return -tile.floor(-x)


def absolute(x: Tile) -> Tile:
    """The larger of x and -x."""
    return tile.maximum(x, -x)


UNARY: dict[str, Callable[[Tile], Tile]] = {
    "arith.negf": lambda x: -x,
    "math.exp": tile.exp,
    "math.exp2": tile.exp2,
    "math.log": tile.log,
    "math.log2": tile.log2,
    "math.sqrt": tile.sqrt,
    "math.rsqrt": tile.rsqrt,
    "math.tanh": tile.tanh,
    "math.erf": erf,
    "math.floor": tile.floor,
    "math.ceil": ceil,
    "math.absf": absolute,
    "tt.precise_sqrt": tile.sqrt,
}
"""Functions of one element."""
DIFFERENCES = {
    "arith.divf": "x · (1 / y), each rounded",
    "tt.precise_divf": "x · (1 / y), each rounded, so it is not as precise as its name says",
    "math.exp": "2^(x · log2 e), each rounded",
    "math.log": "log2(x) · ln 2, each rounded",
    "math.erf": "2 Φ(√2 x) - 1, so near 0 its error is absolute",
    "math.fma": "the product is rounded before the sum",
    "arith.maxnumf": "NaN if either is NaN",
    "arith.minnumf": "NaN if either is NaN",
    "arith.fptosi": "cut towards 0; saturates",
}
"""Where bits are others than IEEE's, besides that subnormal numbers count as 0."""
COMPARISONS: dict[str, Callable[[Tile, Tile], Tile]] = {
    "oeq": lambda a, b: a == b,
    "une": lambda a, b: a != b,
    "olt": lambda a, b: a < b,
    "ole": lambda a, b: a <= b,
    "ogt": lambda a, b: a > b,
    "oge": lambda a, b: a >= b,
    "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: (a == a) & (b == b),
    "uno": lambda a, b: (a != a) | (b != b),
    "ult": lambda a, b: ~(b <= a),
    "ule": lambda a, b: ~(b < a),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ueq": lambda a, b: ~((a < b) | (b < a)),
}
"""Comparisons: of NaN they are false if their name begins with o, and true if it begins with u."""


def check(conversion: Conversion, operation: Operation) -> None:
    """Raises ``TritonRefused`` for elements that the chip does not compute with."""
    for value in (*operation.operands, *operation.results):
        if value.type.element not in ("f32", "bf16", "i1", "i8", "i16", "i32"):
            raise refuse(operation, f"elements of {value.type.element}; the device has f32, bf16, i32 and i8")


@lowers(*BINARY, *UNARY, note="in fp32, rounded to its type")
def lower_function(conversion: Conversion, operation: Operation) -> Known:
    check(conversion, operation)
    operands, tiles = tiles_of(conversion, operation)
    function: Callable[..., Tile] = BINARY.get(operation.name) or UNARY[operation.name]
    type = operation.result.type
    return result(operands, function(*tiles).to(narrow(type)), type)


@lowers("math.fma", note="in fp32, rounded to its type")
def lower_fma(conversion: Conversion, operation: Operation) -> Known:
    check(conversion, operation)
    operands, (a, b, c) = tiles_of(conversion, operation)
    type = operation.result.type
    return result(operands, (a * b + c).to(narrow(type)), type)


@lowers("tt.clampf", note="the larger of x and the lower bound, then the smaller of that and the upper one")
def lower_clamp(conversion: Conversion, operation: Operation) -> Known:
    check(conversion, operation)
    operands, (x, low, high) = tiles_of(conversion, operation)
    type = operation.result.type
    return result(operands, tile.minimum(tile.maximum(x, low), high).to(narrow(type)), type)


@lowers("arith.cmpf", note="1 or 0")
def lower_compare(conversion: Conversion, operation: Operation) -> Known:
    check(conversion, operation)
    operands, (a, b) = tiles_of(conversion, operation)
    made = COMPARISONS[operation.attributes["predicate"]](a, b)
    return result(operands, made, operation.result.type)


@lowers("arith.extf", "arith.truncf", "tt.fp_to_fp", note="rounded to nearest even")
def lower_convert(conversion: Conversion, operation: Operation) -> Known:
    check(conversion, operation)
    known, type = conversion.known(operation.operands[0]), operation.result.type
    if isinstance(known, Constant):
        return Constant(rounded(known.value, type.element), type)
    data = conversion.data(known, operation.operands[0].type)
    return Data(data.tile.to(narrow(type)), type, data.column, data.valid)


def rounded(value: float, element: str) -> float:
    """A number as bf16 has it; others are rounded where they are used."""
    if element != "bf16":
        return value

    bits = word(value, ElementType.BF16) << 16
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


@lowers("arith.sitofp", "arith.uitofp", note="rounded to nearest even")
def lower_float(conversion: Conversion, operation: Operation) -> Known:
    source, type = operation.operands[0].type, operation.result.type
    if type.element not in ("f32", "bf16"):
        raise refuse(operation, f"elements of {type.element}; the device has f32 and bf16")
    known = conversion.known(operation.operands[0])
    data = conversion.data(known, source)
    numbers = conversion.tile(data, source)
    if operation.name == "arith.sitofp" and source.element == "i1":
        numbers = -numbers
    elif operation.name == "arith.uitofp" and source.element != "i1":
        if source.bits >= 32:
            raise refuse(operation, "i32 without sign; the device computes in int32")
        numbers = numbers & ((1 << source.bits) - 1)
    return Data(numbers.to(FP32).to(narrow(type)), type, data.column, data.valid)


@lowers("arith.fptosi", note="cut towards 0; saturates")
def lower_integer(conversion: Conversion, operation: Operation) -> Known:
    check(conversion, operation)
    source, type = operation.operands[0].type, operation.result.type
    data = conversion.data(conversion.known(operation.operands[0]), source)
    x = conversion.tile(data, source)
    cut = where(x < 0.0, ceil(x), tile.floor(x)).to(INT32)
    return Data(cut, type, data.column, data.valid)
