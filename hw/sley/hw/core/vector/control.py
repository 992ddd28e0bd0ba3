"""What the lanes of the vector unit do in an instruction, decoded from its chain or its flags."""

from collections.abc import Iterable

from amaranth.hdl import Cat, Const, Mux, Value
from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.abi.instructions import FLAGS_BITS, FLAGS_LSB, FORMATS, Op, Space
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import FUNCTION_BITS, LATE, STAGE_OPERANDS, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import ADDER_OPS, JOIN, LOGIC_OPS, BinaryOp, Reduction
from sley.hw.core.types import has_bits, is_one_of, is_type, output_types


def flags_layout(op: Op) -> data.FlexibleLayout:
    """The flags of an operation, from the first bit that only it has."""
    fields = FORMATS[op].layout.fields.values()
    return data.FlexibleLayout(
        FLAGS_BITS,
        {placed.name: data.Field(placed.width, placed.lsb - FLAGS_LSB) for placed in fields if placed.lsb >= FLAGS_LSB},
    )


VECTOR_FLAGS = flags_layout(Op.VECTOR)
VROW_FLAGS = flags_layout(Op.VROW)
VFOLD_FLAGS = flags_layout(Op.VFOLD)

STAGES = ("binary", "add", "multiply", "other", "multiply2", "binary2")
"""Stages with an operand that may be uniform, in their order."""
OPERAND_FIELDS = dict(zip(STAGES, STAGE_OPERANDS, strict=True))
"""The field of a chain that names the operand of each."""
LATE_STAGES = ("multiply", "select", "multiply2", "binary2")
"""Stages that a late operand may go to."""

SELECT = data.StructLayout({"row": 1, "splat": 1, "index": 2})
"""The uniform operand of a stage: a row register or a splat, and which; with neither it is 0."""
INVERT = data.StructLayout({"low": 1, "sign": 1})
"""Which bits of an operand are inverted on its way into an adder."""
ARITHMETIC = data.StructLayout({"x": INVERT, "y": INVERT, "maximum": 1, "minimum": 1, "float": 1, "carry": 1, "sum": 1})
"""How an adder gets a sum, a difference, a maximum or a minimum; ``sum``: of fp32."""

CONTROL = data.StructLayout(
    {
        "select": data.ArrayLayout(SELECT, len(STAGES)),
        "first": ARITHMETIC,
        "logic": 1,
        "logic_op": 5,
        "y_is_b": 1,  # the operand of the first stage is B
        "multiply_self": 1,
        "integer_product": 1,
        "tail": 1,  # one of the stages from select to binary2 has something to do
        "keep_iota": 1,
        "keep_late": 1,
        "function": FUNCTION_BITS,
        "multiply2": 1,
        "multiply2_self": 1,
        "last": ARITHMETIC,
        "late_use": data.ArrayLayout(data.ArrayLayout(1, len(LATE_STAGES)), len(LATE)),
        "late_source": data.ArrayLayout(2, len(LATE)),
        "late_lanes": data.ArrayLayout(2, len(LATE)),
        "reduce": 3,
        "register": 2,
        "silent": 1,
        "c_int8": 1,  # C is one, or a uint8
        "c_unsigned": 1,  # C is a uint8
        "is_float": 1,  # what the reduction gets
    }
)


def is_code(value: Value, codes: Iterable[int]) -> Value:
    """Whether a field holds one of the codes; those that do not fit into it cannot be there."""
    return value.matches(*(int(code) for code in codes if code < 1 << len(value)))


def arithmetic(op: Value, is_float: Value) -> dict[str, object]:
    """The controls of an adder for a code of ``ADDER_OPS``; others, and NONE, are x + y of integers."""
    subtract, reverse = op == BinaryOp.SUB, op == BinaryOp.RSUB
    ordered = is_code(op, (BinaryOp.MAX, BinaryOp.MIN))
    sums = is_float & is_code(op, (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.RSUB))
    compares = ordered | sums  # a comparison subtracts: y comes inverted
    return {
        "x": {"low": reverse & ~is_float, "sign": reverse},
        "y": {"low": compares | (subtract & ~is_float), "sign": compares ^ subtract},
        "maximum": ordered,
        "minimum": op == BinaryOp.MIN,
        "float": is_float & (ordered | sums),
        "carry": (subtract | reverse) & ~is_float,
        "sum": sums,
    }


def join_op(reduce: Value) -> Value:
    """The operation of a reduction with partial results."""
    is_sum, is_min = reduce == Reduction.SUM, reduce == Reduction.MIN
    return Mux(is_sum, BinaryOp.ADD, Mux(is_min, BinaryOp.MIN, BinaryOp.MAX))


def inverted(x: Value, invert: data.View) -> Value:
    """The word with the bits inverted that ``invert`` names."""
    return x ^ Cat(invert.low.replicate(31), invert.sign)


def _uniform(operand: Value, used: Value) -> dict[str, Value]:
    row = used & is_code(operand, (o for o in Operand if o >= Operand.ROW0))
    splat = used & is_code(operand, (o for o in Operand if Operand.SPLAT0 <= o < Operand.ROW0))
    return {"row": row, "splat": splat, "index": operand[:2]}


def late_used(chain: data.View, late: Operand) -> Value:
    """Whether a stage takes this late operand."""
    return Cat(_late_uses(chain, late).values()).any()


def _late_uses(chain: data.View, late: Operand) -> dict[str, Value]:
    tail = chain.tail
    select = tail.other == late
    if late is Operand.LATE0:
        select |= tail.keep == Condition.LATE0_NOT_ZERO
    return {
        "multiply": chain.front.multiply == late,
        "select": select,
        "multiply2": tail.multiply2 == late,
        "binary2": tail.binary2_operand == late,
    }


def late_reads(chain: data.View, source: Late) -> Value:
    """Whether a late operand that is used is this one."""
    o = chain.operands
    return Cat(
        late_used(chain, late) & (which == source) for late, which in zip(LATE, (o.late0, o.late1), strict=True)
    ).any()


def broadcasts(chain: data.View, source: Late) -> Value:
    """Whether rows of an operand serve N rows each."""
    o = chain.operands
    return Cat(
        late_used(chain, late) & (which == source) & (lanes == Lanes.BROADCAST)
        for late, which, lanes in zip(LATE, (o.late0, o.late1), (o.late0_lanes, o.late1_lanes), strict=True)
    ).any()


def reads_b(chain: data.View) -> Value:
    """Whether rows of B are read."""
    return (chain.front.binary_operand == Operand.B) | late_reads(chain, Late.B)


def floats_behind_add(chain: data.View) -> Value:
    """Whether a stage behind the add computes with fp32."""
    front, tail = chain.front, chain.tail
    return (front.multiply.any() & ~front.integer_product) | tail.function.any() | tail.multiply2.any()


def is_illegal(chain: data.View, flags: data.View, config: ChipConfig) -> Value:
    """Whether the words are no chain of this chip, or the flags do not go with one."""
    front, tail, operands = chain.front, chain.tail, chain.operands
    fields = {"binary_operand": front, "add": front, "multiply": front}
    fields |= {"other": tail, "multiply2": tail, "binary2_operand": tail}
    wrong = [~is_code(getattr(word, name), STAGE_OPERANDS[name]) for name, word in fields.items()]
    wrong += [
        ~is_code(front.binary, BinaryOp),
        ~is_code(tail.binary2, ADDER_OPS),
        ~is_code(tail.keep, Condition),
        ~is_code(tail.function, (0, *(1 + function for function in config.vector_functions))),
        ~is_code(operands.late0, Late),
        ~is_code(operands.late1, Late),
        ~is_code(operands.late0_lanes, Lanes),
        ~is_code(operands.late1_lanes, Lanes),
        ~is_code(operands.reduce, Reduction),
        is_code(operands.reduce, JOIN) & tail.binary2.any(),
        broadcasts(chain, Late.A),
        ~is_code(operands.c_type, config.vector_types),
        flags.b_op.any() | flags.bias | flags.scale | flags.relu,
    ]
    for late in LATE:
        uses = Cat(_late_uses(chain, late).values())
        wrong.append((uses & (uses - 1)[: len(uses)]).any())
    if config.lane_elements() == 1:
        wrong.append(operands.c_half)
    is_fp32 = is_type(flags.dtype, ElementType.FP32, WORD_TYPES)
    c_in_scratchpad = flags.b_space == Space.ACCUMULATOR
    is_whole_row = has_bits(operands.c_type, 16, config.vector_types)
    wrong.append(is_whole_row & ~(c_in_scratchpad & ~operands.c_half & is_fp32))
    float_out = is_one_of(flags.out, [t for t in output_types(config) if t.is_float])
    beside = is_fp32 | float_out | tail.function.any() | tail.multiply2.any()
    wrong.append(front.integer_product & (beside | ~front.multiply.any()))
    return Cat(wrong).any()


def short_control(flags: data.View) -> dict[str, object]:
    """What the flags of a VECTOR without a chain ask for."""
    is_fp32 = is_type(flags.dtype, ElementType.FP32, WORD_TYPES)
    nothing = {"row": 0, "splat": 0, "index": 0}
    select = dict.fromkeys(range(len(STAGES)), nothing)
    select[STAGES.index("add")] = {"row": flags.bias, "splat": 0, "index": 0}
    select[STAGES.index("multiply")] = {"row": flags.scale, "splat": 0, "index": 1}
    return {
        "select": [select[stage] for stage in range(len(STAGES))],
        "first": arithmetic(flags.b_op, is_fp32),
        "y_is_b": flags.b_op.any(),
    }


def chain_control(chain: data.View, flags: data.View, is_float: Value, config: ChipConfig) -> dict[str, object]:
    """What a chain asks for; ``is_float``: x is fp32 behind the add."""
    c_type, types = chain.operands.c_type, config.vector_types
    front, tail, operands = chain.front, chain.tail, chain.operands
    is_fp32 = is_type(flags.dtype, ElementType.FP32, WORD_TYPES)
    always, joins = Const(1, 1), is_code(operands.reduce, JOIN)
    stages = (
        (front.binary_operand, front.binary.any()),
        (front.add, always),
        (front.multiply, always),
        (tail.other, always),
        (tail.multiply2, always),
        (tail.binary2_operand, tail.binary2.any()),
    )
    uses = [_late_uses(chain, late) for late in LATE]
    works = {**dict.fromkeys(LATE_STAGES, always), "binary2": tail.binary2.any()}
    return {
        "select": [_uniform(operand, used) for operand, used in stages],
        "first": arithmetic(front.binary, is_fp32),
        "logic": is_code(front.binary, LOGIC_OPS),
        "logic_op": front.binary,
        "y_is_b": (front.binary_operand == Operand.B) & front.binary.any(),
        "multiply_self": front.multiply == Operand.X,
        "integer_product": front.integer_product,
        "tail": tail.as_value().any() | joins,
        "keep_iota": tail.keep == Condition.IOTA_NEGATIVE,
        "keep_late": tail.keep == Condition.LATE0_NOT_ZERO,
        "function": tail.function,
        "multiply2": tail.multiply2.any(),
        "multiply2_self": tail.multiply2 == Operand.X,
        "last": arithmetic(Mux(joins, join_op(operands.reduce), tail.binary2), is_float),
        "late_use": [[use[stage] & works[stage] for stage in LATE_STAGES] for use in uses],
        "late_source": [operands.late0, operands.late1],
        "late_lanes": [operands.late0_lanes, operands.late1_lanes],
        "reduce": operands.reduce,
        "register": operands.register,
        "silent": operands.silent,
        "c_int8": (flags.b_space == Space.ACCUMULATOR) & has_bits(c_type, 8, types),
        "c_unsigned": is_type(c_type, ElementType.UINT8, types),
        "is_float": is_float,
    }


def assign(target: data.View, values: dict[str, object]) -> list[object]:
    """Statements that set the fields of a control; those that are not named become 0."""
    statements: list[object] = []

    def put(view: object, value: object) -> None:
        if isinstance(value, dict):
            assert isinstance(view, data.View)
            for name, _ in view.shape():
                put(view[name], value.get(name, 0))
        elif isinstance(value, list):
            assert isinstance(view, data.View)
            for index, item in enumerate(value):
                put(view[index], item)
        else:
            statements.append(Value.cast(view).eq(value))

    put(target, values)
    return statements
