"""Element types: what a value in memory, in a scratchpad lane or in an accumulator is.

One table for gateware, driver, assembler, model and documentation. Instructions name a type by its code, in fields of
``TYPE_BITS`` bits; ``ChipConfig.operand_types`` says which of them the lanes of a chip hold.

Host types without a device type have a fixed place: ``bool`` is stored as ``UINT8`` (0 or 1, the same byte as of
``INT8``), ``int64`` as ``INT32`` after a check of its range, ``float64`` as ``FP32`` after a conversion that the caller
asks for.
"""

from dataclasses import dataclass
from enum import IntEnum

TYPE_BITS = 4
"""Width of a type in an instruction."""
WORD_BITS = 32
"""Width of an accumulator's element, and of everything that the vector unit computes with."""


class ElementType(IntEnum):
    """An element type by its code.

    Bits 1:0 of a code are log2 of the bytes, 3 for half a byte. Bits 3:2 are the kind: 0 signed, 1 unsigned, 2 floating
    with the exponent of IEEE 754 (of FP8: E4M3), 3 with a wider one (E5M2, and 8 bits in BF16). Reserved, as no
    hardware has them yet: 0b0011 INT4, 0b1000 FP8_E4M3, 0b1100 FP8_E5M2.
    """

    INT8 = 0b0000
    INT32 = 0b0010
    UINT8 = 0b0100
    FP16 = 0b1001
    FP32 = 0b1010
    BF16 = 0b1101

    @property
    def info(self) -> "TypeInfo":
        """Width, range and names."""
        return TYPES[self]

    @property
    def bits(self) -> int:
        """Width of an element."""
        return TYPES[self].bits

    @property
    def bytes(self) -> int:
        """Bytes of an element in memory."""
        return TYPES[self].bits // 8

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers."""
        return TYPES[self].fraction_bits is not None

    @classmethod
    def of(cls, numpy: str) -> "ElementType | None":
        """The type with this numpy name, if there is one."""
        return next((t for t, info in TYPES.items() if info.numpy == numpy), None)


@dataclass(frozen=True)
class TypeInfo:
    """An element type: its names, its width in bits, and what values it has.

    Attributes: ``numpy`` is numpy's name (``bfloat16`` is the one of ``ml_dtypes``). ``low`` and ``high`` are the
    smallest and the largest finite value. ``fraction_bits`` are the stored bits of a significand; integers have
    none.
    """

    name: str
    numpy: str
    bits: int
    low: float
    high: float
    fraction_bits: int | None = None


def _float(name: str, numpy: str, bits: int, fraction_bits: int) -> TypeInfo:
    """With the rest of the bits an exponent of IEEE 754."""
    bias = (1 << (bits - 2 - fraction_bits)) - 1
    high = (2 - 2.0**-fraction_bits) * 2.0**bias
    return TypeInfo(name, numpy, bits, -high, high, fraction_bits)


TYPES: dict[ElementType, TypeInfo] = {
    ElementType.INT8: TypeInfo("int8", "int8", 8, -128, 127),
    ElementType.UINT8: TypeInfo("uint8", "uint8", 8, 0, 255),
    ElementType.INT32: TypeInfo("int32", "int32", 32, -(2**31), 2**31 - 1),
    ElementType.BF16: _float("bf16", "bfloat16", 16, 7),
    ElementType.FP16: _float("fp16", "float16", 16, 10),
    ElementType.FP32: _float("fp32", "float32", 32, 23),
}

OPERAND_TYPES = (ElementType.INT8, ElementType.BF16)
"""Types that an array can multiply; a chip has a set of them."""
CHAIN_TYPES = (ElementType.UINT8, ElementType.FP16)
"""Types that the vector unit reads and writes besides, on chips with chains and lanes that are wide enough."""
SUM_TYPES = {ElementType.INT8: ElementType.INT32, ElementType.BF16: ElementType.FP32}
"""What products of each operand type are summed in; of accumulator rows, and of VECTOR's arithmetic."""
WORD_TYPES = (ElementType.INT32, ElementType.FP32)
"""Types of ``WORD_BITS`` bits: accumulator rows, and VECTOR's arithmetic."""
