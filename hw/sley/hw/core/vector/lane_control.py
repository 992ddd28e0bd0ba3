"""How the flags of a VECTOR become controls of the lanes' stages, and their latencies."""

from collections.abc import Collection

from amaranth.hdl import Value
from amaranth.lib import data

from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.operations import BinaryOp
from sley.hw.core.types import is_type
from sley.hw.core.vector.events import Choice
from sley.hw.fp.binary import Binary
from sley.hw.fp.multiply import Multiply
from sley.hw.fp.sum import Sum
from sley.hw.fp.to_bf16 import ToBF16
from sley.hw.fp.to_int import ToInt32

SOURCE_LATENCY = 1
"""From the registers that take the operands to those of op B."""

LANE_CONTROL = data.StructLayout(
    {
        "a_convert": 1,  # A is an int8 that becomes fp32
        "b_convert": 1,
        "a_unsigned": 1,  # A is a uint8
        "b_unsigned": 1,
        "invert_b": 1,
        "float_b": 1,  # op B is one of fp32
        "maximum": 1,  # op B is a maximum
        "use_bias": 1,
        "float_bias": 1,  # add the bias as fp32
        "to_float": 1,  # int32 to fp32
        "scale": 1,
        "float_scale": 1,  # the product is one of fp32
        "integer_relu": 1,
        "float_relu": 1,
        "round": 1,  # to int32
        "narrow": 1,  # to int8
        "unsigned": 1,  # to uint8
        "bf16": 1,  # to bf16
        "fp16": 1,  # to fp16
    }
)
"""The decoded flags: registers that choose the ways, so that no decoding is in the paths of the data."""


class Conversions:
    """The flags' conversions between the formats, on a chip with these operand types.

    ``needs_float``: a stage behind the bias computes with fp32, the scale too.
    """

    def __init__(self, flags: data.View, types: Collection[ElementType], needs_float: Value) -> None:
        outputs = {*WORD_TYPES, *types}
        self.to_int8, self.to_uint8, self.to_bf16, self.to_fp16, to_fp32, to_int32 = (
            is_type(flags.out, t, outputs)
            for t in (
                *(ElementType.INT8, ElementType.UINT8, ElementType.BF16, ElementType.FP16),
                *(ElementType.FP32, ElementType.INT32),
            )
        )
        is_fp32 = computes_fp32(flags)
        self.to_float = ~is_fp32 & (self.to_bf16 | self.to_fp16 | to_fp32 | needs_float)
        self.is_float = is_fp32 | self.to_float  # from the scale on
        # ``ToInt32`` rounds to fp16, too
        self.to_int32 = self.is_float & (to_int32 | self.to_int8 | self.to_uint8) | self.to_fp16


def computes_fp32(flags: data.View) -> Value:
    """Whether sources and sums are fp32."""
    return is_type(flags.dtype, ElementType.FP32, WORD_TYPES)


def binary_latency(flags: data.View) -> Choice:
    """Op B: from its cycle, behind the registers of the converted operands, to that of the bias."""
    is_sum, is_maximum = flags.b_op == BinaryOp.ADD, flags.b_op == BinaryOp.MAX
    is_float = is_sum & computes_fp32(flags)
    return {
        Binary.INTEGER_LATENCY: ~is_maximum & ~is_float,
        Binary.MAXIMUM_LATENCY: is_maximum,
        Binary.SUM_LATENCY: is_float,
    }


def is_float(flags: data.View, types: Collection[ElementType], needs_float: Value) -> Value:
    """Whether x is fp32 behind the bias."""
    return Conversions(flags, types, needs_float).is_float


def bias_latency(flags: data.View, types: Collection[ElementType], needs_float: Value) -> Choice:
    """From the cycle of the bias to that of the scale."""
    is_float, to_float = computes_fp32(flags) & flags.bias, Conversions(flags, types, needs_float).to_float
    return {
        Sum.INTEGER_LATENCY: ~is_float & ~to_float,
        Sum.CONVERT_LATENCY: to_float,
        Sum.FLOAT_LATENCY: is_float,
    }


def scale_latency(flags: data.View) -> Choice:
    """From the cycle of the scale to that of relu."""
    return {0: ~flags.scale, Multiply.LATENCY: flags.scale}


RELU_LATENCY = 1


def output_latency(flags: data.View, types: Collection[ElementType], needs_float: Value) -> Choice:
    """From the cycle of x behind all stages to that of the result in ``o``."""
    convert = Conversions(flags, types, needs_float)
    return {
        1: ~convert.to_bf16 & ~convert.to_int32,
        1 + ToBF16.LATENCY: convert.to_bf16,
        1 + ToInt32.LATENCY: convert.to_int32,
    }
