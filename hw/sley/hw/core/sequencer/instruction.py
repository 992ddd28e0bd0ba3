"""Instructions as the program memory holds them: the word, and what is decoded of it on the way in."""

from collections.abc import Iterable

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.abi.faults import UNITS, Unit
from sley.abi.instructions import FORMATS, WORD, Op, used_bits
from sley.abi.scalar import ALU_OPS, BRANCH_OPS
from sley.hw.elaboration.layouts import struct

IMMEDIATE_OPERANDS = ("ra", "rb", "rc")

SINGLE = {"set": Op.SET, "loop": Op.LOOP, "end": Op.END, "sync": Op.SYNC, "multiply": Op.MUL}
"""Operations that the execution asks for by themselves."""

SIMPLE_OPS = ALU_OPS - {Op.MUL}

INSTRUCTION = data.StructLayout(
    {
        "word": struct(WORD),  # if a unit takes it, rb and rd change places: the sum of ra and rd is the sequencer's
        "legal": 1,  # it is an instruction at all
        "immediate": data.StructLayout(dict.fromkeys(IMMEDIATE_OPERANDS, 1)),  # takes the operand's place
        "branch": 1,
        **dict.fromkeys(SINGLE, 1),  # it is just that
        "control": 1,  # it may not end a loop's body
        "simple": 1,  # the sequencer does it in the cycle in which it executes
        "unit": len(UNITS),  # that takes it; none if the sequencer does it
    }
)
"""The decoded bits fit the spare width of the memory and keep decoding out of the execution's cycle."""


def decoded(m: Module, word: Value, config: ChipConfig) -> data.View:
    """The instruction of a ``word`` of the program, on a chip."""
    view = data.View(struct(WORD), word)
    instruction = Signal(INSTRUCTION)
    legal = Signal()
    unit = Signal(len(UNITS))
    exchange = Signal()
    m.d.comb += [
        instruction.word.eq(word),
        legal.eq(_legal(view, config)),
        exchange.eq(legal & unit.any()),
        instruction.word.rb.eq(Mux(exchange, view.rd, view.rb)),
        instruction.word.rd.eq(Mux(exchange, view.rb, view.rd)),
        instruction.legal.eq(legal),
        instruction.unit.eq(unit),
        instruction.branch.eq(_among(view.op, BRANCH_OPS)),
        instruction.control.eq(_among(view.op, {*BRANCH_OPS, Op.LOOP, Op.END})),
    ]
    m.d.comb += [instruction[name].eq(view.op == op) for name, op in SINGLE.items()]
    # A SYNC without masks is as good as an operation with r0 as its destination.
    masks = Signal()
    m.d.comb += [
        masks.eq(view.wait.any() | view.signal.any()),
        instruction.sync.eq((view.op == Op.SYNC) & masks),
        instruction.simple.eq(_among(view.op, SIMPLE_OPS) | ((view.op == Op.SYNC) & ~masks)),
    ]
    for operand in IMMEDIATE_OPERANDS:  # where an immediate may not be, use_imm is a reserved bit
        replaces = _among(view.op, {f.op for f in FORMATS.values() if f.immediate_replaces == operand})
        m.d.comb += instruction.immediate[operand].eq(view.use_imm & replaces)
    for k, target in enumerate(UNITS):
        own = _among(view.op, {f.op for f in FORMATS.values() if f.unit is target})
        m.d.comb += unit[k].eq(own | ((view.op == Op.SET) & (_set_unit(view) == target)))
    return instruction


def _among(op: Value, ops: Iterable[Op]) -> Value:
    return op.matches(*sorted(ops))


def _set_unit(word: data.View) -> Value:
    field = FORMATS[Op.SET].layout.fields["unit"]
    return word.as_value()[field.lsb : field.msb + 1]


def _legal(word: data.View, config: ChipConfig) -> Value:
    """Whether the operation is defined, its unused bits are zero, and SET names a unit with a queue."""
    bits = word.as_value()
    unused: dict[frozenset[Op], list[Value]] = {}  # bits that no other operations may set
    for k in range(WORD.width):
        users = frozenset(op for op in FORMATS if used_bits(op, config) >> k & 1)
        unused.setdefault(users, []).append(bits[k])
    reserved = Cat(
        Cat(*some).any() & ~_among(word.op, users) for users, some in unused.items() if users != set(FORMATS)
    )
    target = _set_unit(word)
    astray = (word.op == Op.SET) & ((target == Unit.SEQUENCER) | (target > Unit.VECTOR))
    return _among(word.op, FORMATS) & ~reserved.any() & ~astray
