"""What a command of the vector unit is, decoded on its way into the command's register."""

from amaranth.hdl import Cat, Const, Mux, Value
from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.abi.instructions import Op, Space
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.operations import SHORT_OPS
from sley.hw.core.types import has_bits, is_one_of, is_type, output_types
from sley.hw.core.vector.control import VECTOR_FLAGS, VROW_FLAGS, is_code
from sley.hw.core.vector.reads import COUNT_BITS

KIND = data.StructLayout(
    {
        "set": 1,
        "vector": 1,
        "vrow": 1,
        "vfold": 1,
        "chained": 1,  # a VECTOR with a chain
        "too_many": 1,  # rows
        "refused": 1,  # a fault, whatever the parameters and the chain are
        "runs": 1,  # a VROW, or a VECTOR without a chain that has rows, and is no such fault
        "empty": 1,  # no rows
        "to_scratchpad": 1,
    }
)


def command_kind(config: ChipConfig, command: data.View) -> Value:
    """What is known of a command before it is in its register."""
    vector, vrow = data.View(VECTOR_FLAGS, command.flags), data.View(VROW_FLAGS, command.flags)
    types, outputs = config.vector_types, output_types(config)
    is_vector, is_vrow = command.op == Op.VECTOR, command.op == Op.VROW
    illegal = ~is_code(vector.b_op, SHORT_OPS) | ~is_one_of(vector.dtype, WORD_TYPES)
    illegal |= ~is_one_of(vector.out, outputs) | (vector.chain > config.vector_chains)
    illegal |= ~is_one_of(vector.a_type, types) | ~is_one_of(vector.b_type, types)
    if config.lane_bits == 16:
        illegal |= has_bits(vector.out, 16, outputs) & vector.out_half
        for space, half, kind in (
            (vector.a_space, vector.a_half, vector.a_type),
            (vector.b_space, vector.b_half, vector.b_type),
        ):
            is_fp32 = is_type(vector.dtype, ElementType.FP32, WORD_TYPES)
            can_be_whole = (space == Space.SCRATCHPAD) & ~half & is_fp32
            illegal |= has_bits(kind, 16, types) & ~can_be_whole
    else:
        illegal |= vector.a_half | vector.b_half | vector.out_half
    if not config.vector_chains:
        illegal = Mux(is_vrow, vrow.row >= config.row_registers, illegal)
    else:
        illegal &= ~is_vrow
    is_vfold = (command.op == Op.VFOLD) if config.vector_chains else Const(0, 1)
    chained, too_many, empty = vector.chain.any(), command.c[COUNT_BITS:].any(), ~command.c.any()
    known = is_vector | is_vrow | is_vfold | (command.op == Op.SET)
    return Cat(
        *(command.op == op for op in (Op.SET, Op.VECTOR, Op.VROW)),
        is_vfold,
        is_vector & chained,
        too_many,
        ~known | (is_vector & (illegal | too_many)) | (is_vrow & illegal),
        ~illegal & (is_vrow | (is_vector & ~chained & ~too_many & ~empty)),
        empty,
        ~is_one_of(vector.out, WORD_TYPES),
    )
