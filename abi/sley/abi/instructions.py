"""Instructions of a core: 128-bit words that share one layout; each operation uses some of its fields.

Bits that an operation does not use must be zero, otherwise the block stops with ILLEGAL_INSTRUCTION.
Registers are 32 bits wide; r0 reads as zero. A block starts with

* r1, r2, r3: its x, y, z in the grid;  r4, r5, r6: the grid's size along x, y, z;
* r8 to r31: the kernel's arguments; every other register is zero.
"""

from dataclasses import dataclass, replace
from enum import IntEnum

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.layout import Field, Layout, LayoutError
from sley.abi.types import TYPE_BITS, ElementType
from sley.abi.vector.chains import CHAIN_BITS
from sley.abi.vector.operations import BinaryOp, Reduction

INSTRUCTION_BYTES = 16
REGISTERS = 32
BLOCK_REGISTER = 1
GRID_REGISTER = 4
ARG_REGISTER = 8
MAX_ARGS = REGISTERS - ARG_REGISTER
SEMAPHORES = 16
SEMAPHORE_MAX = 15
LOOP_DEPTH = 4
INTERLEAVE_CHUNKS = 64
"""Most CHUNKS of a LOAD that interleaves."""
TRANSPOSE_CHUNKS = 8
"""Most CHUNKS of a LOAD that transposes; half as many if it interleaves too."""


class Op(IntEnum):
    """First byte of an instruction. Zeroed memory is not an instruction."""

    END = 0x01
    SYNC = 0x02
    ADD = 0x10
    SUB = 0x11
    MUL = 0x12
    MIN = 0x13
    MAX = 0x14
    AND = 0x15
    OR = 0x16
    SHL = 0x17
    SHR = 0x18
    SAR = 0x19
    BEQ = 0x20
    BNE = 0x21
    BLT = 0x22
    BGE = 0x23
    LOOP = 0x28
    SET = 0x30
    LOAD = 0x40
    STORE = 0x48
    WEIGHTS = 0x50
    MATMUL = 0x51
    VECTOR = 0x58
    VROW = 0x59
    VFOLD = 0x5A


class Space(IntEnum):
    """A memory inside the core, addressed by rows."""

    SCRATCHPAD = 0
    ACCUMULATOR = 1


class Share(IntEnum):
    """Which cores of a gang a LOAD asks together with; bit 0: along x, bit 1: along y."""

    NONE = 0
    ROW = 1
    COLUMN = 2
    ALL = 3


class VectorRow(IntEnum):
    """The row registers of the vector unit, N values of 32 bits each: those that the flags of VECTOR name, and the two
    more of a chip with chains."""

    BIAS = 0
    SCALE = 1
    ROW2 = 2
    ROW3 = 3


FLAGS_LSB = 96
"""First bit of what only one operation has: its flags, or the target of a branch."""
FLAGS_BITS = 32

_COMMON: dict[str, Field] = {
    f.name: f
    for f in (
        Field("op", 8, "The operation.", lsb=0, enum=Op),
        Field("rd", 5, "Destination register; in unit instructions the register added to ra after issue.", lsb=8),
        Field("ra", 5, "First operand register.", lsb=13),
        Field("rb", 5, "Second operand register.", lsb=18),
        Field("rc", 5, "Third operand register.", lsb=23),
        Field("use_imm", 1, "The immediate replaces the operand that the operation names.", lsb=28),
        Field("imm", 32, "Immediate value.", lsb=32, signed=True),
        Field("wait", 16, "Semaphores that must be above zero; each is decremented when all are.", lsb=64),
        Field("signal", 16, "Semaphores that are incremented when the instruction has finished.", lsb=80),
    )
}
_TARGET = Field("target", 16, "Instruction index of a branch, or of the last instruction of a loop.", lsb=FLAGS_LSB)

WORD = Layout(
    "INSTRUCTION", 8 * INSTRUCTION_BYTES, (*_COMMON.values(), Field("flags", FLAGS_BITS, "Per operation.", FLAGS_LSB))
)
"""Every field at once, as the sequencer decodes it."""


@dataclass(frozen=True)
class InstructionFormat:
    """One operation: the unit that executes it, the fields it uses, and which operand an immediate replaces."""

    op: Op
    unit: Unit
    doc: str
    layout: Layout
    immediate_replaces: str | None
    flags: tuple[str, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self.layout.fields)

    @property
    def defaults(self) -> dict[str, int]:
        """What fields hold unless an instruction says otherwise; those that are left out hold 0."""
        return {name: placed.field.reset for name, placed in self.layout.fields.items() if placed.field.reset}


def _op(op: Op, unit: Unit, uses: str, doc: str, *flags: Field, imm: str | None = None) -> InstructionFormat:
    names = ["op", *uses.split(), *(["use_imm", "imm"] if imm else [])]
    fields = [f for f in (*_COMMON.values(), _TARGET) if f.name in names]
    layout = Layout(op.name, WORD.width, (*fields, *_flags(flags)))
    return InstructionFormat(op, unit, doc, layout, imm, tuple(f.name for f in flags))


def _flags(flags: tuple[Field, ...]) -> list[Field]:
    return [replace(f, lsb=FLAGS_LSB) if i == 0 else f for i, f in enumerate(flags)]


_SEQ, _MATRIX, _VECTOR = Unit.SEQUENCER, Unit.MATRIX, Unit.VECTOR
_SYNC = "wait signal"
_SPACE = Field("space", 1, "Which local memory.", enum=Space)
_BY_LIST = Field(
    "by_list",
    1,
    "Run r is at ra plus the number in lane r mod N of accumulator row `LIST_ROW` + r div N; `MEM_STRIDE` is not used. "
    "On chips with `gather`; reserved on others.",
)


def _type(name: str, doc: str, default: ElementType = ElementType.INT8) -> Field:
    return Field(name, TYPE_BITS, doc, reset=default, enum=ElementType)


_OPERANDS = _type("dtype", "Type of the operands in the scratchpad.")

FORMATS: dict[Op, InstructionFormat] = {
    f.op: f
    for f in (
        _op(
            Op.END,
            _SEQ,
            "",
            "Waits until all units are idle and ends the block; every semaphore must be zero.",
        ),
        _op(Op.SYNC, _SEQ, _SYNC, "Waits for and signals semaphores in the sequencer itself."),
        _op(Op.ADD, _SEQ, "rd ra rb", "rd = ra + rb, modulo 2^32.", imm="rb"),
        _op(Op.SUB, _SEQ, "rd ra rb", "rd = ra - rb, modulo 2^32.", imm="rb"),
        _op(Op.MUL, _SEQ, "rd ra rb", "rd = the low 32 bits of ra * rb.", imm="rb"),
        _op(Op.MIN, _SEQ, "rd ra rb", "rd = the smaller of ra and rb, signed.", imm="rb"),
        _op(Op.MAX, _SEQ, "rd ra rb", "rd = the larger of ra and rb, signed.", imm="rb"),
        _op(Op.AND, _SEQ, "rd ra rb", "rd = ra and rb, bit by bit.", imm="rb"),
        _op(Op.OR, _SEQ, "rd ra rb", "rd = ra or rb, bit by bit.", imm="rb"),
        _op(Op.SHL, _SEQ, "rd ra rb", "rd = ra shifted left by the low 5 bits of rb.", imm="rb"),
        _op(
            Op.SHR,
            _SEQ,
            "rd ra rb",
            "rd = ra shifted right by the low 5 bits of rb, zeros from above.",
            imm="rb",
        ),
        _op(
            Op.SAR,
            _SEQ,
            "rd ra rb",
            "rd = ra shifted right by the low 5 bits of rb, its sign from above.",
            imm="rb",
        ),
        _op(Op.BEQ, _SEQ, "ra rb target", "Continues at target if ra = rb."),
        _op(Op.BNE, _SEQ, "ra rb target", "Continues at target if ra differs from rb."),
        _op(Op.BLT, _SEQ, "ra rb target", "Continues at target if ra < rb, signed."),
        _op(Op.BGE, _SEQ, "ra rb target", "Continues at target if ra >= rb, signed."),
        _op(
            Op.LOOP,
            _SEQ,
            "ra target",
            "Runs the instructions up to and including target ra times (unsigned); the way back costs nothing. "
            "Loops nest: an inner one ends before its outer one. A loop end must not be a branch, LOOP or END.",
            imm="ra",
        ),
        _op(
            Op.SET,
            _SEQ,
            "ra",
            "Writes a unit's parameter; travels through the unit's queue, so it holds for the instructions after it.",
            Field("param", 8, "The parameter: one of the table below, or a word of a chain."),
            Field("unit", 3, "The unit.", enum=Unit),
            imm="ra",
        ),
        _op(
            Op.LOAD,
            Unit.LOAD,
            f"rd ra rb rc {_SYNC}",
            "Reads rc runs from memory address ra to local row rb; then ra += rd.",
            _SPACE,
            Field(
                "interleave", 1, "Runs in pairs: byte 2i of a row is from the first run, byte 2i + 1 from the second."
            ),
            Field("transpose", 1, "Blocks of N rows by N lanes are transposed."),
            Field(
                "share",
                2,
                "All cores of this row, this column or the chip ask for the same bytes in the same order: memory is "
                "read once for all of them. No effect in a block that is not of a gang.",
                enum=Share,
            ),
            _BY_LIST,
            imm="rc",
        ),
        _op(
            Op.STORE,
            Unit.STORE,
            f"rd ra rb rc {_SYNC}",
            "Writes rc runs to memory address ra from local row rb; finishes when memory has acknowledged; ra += rd.",
            _SPACE,
            _BY_LIST,
            imm="rc",
        ),
        _op(
            Op.WEIGHTS,
            _MATRIX,
            f"rd ra rc {_SYNC}",
            "Loads the spare weight registers of the whole array: scratchpad row ra + r of rc (1 to N) holds the "
            "weights of array row r, a lane for each column; the array rows behind them add nothing. Then ra += rd.",
            _OPERANDS,
            imm="rc",
        ),
        _op(
            Op.MATMUL,
            _MATRIX,
            f"rd ra rb rc {_SYNC}",
            "Streams rc scratchpad rows from ra through the array with the weights loaded last; writes or accumulates "
            "to accumulator rows rb, rb + 1, ...; ra += rd.",
            Field("accumulate", 1, "Add to the accumulator rows instead of overwriting them."),
            _OPERANDS,
            imm="rc",
        ),
        _op(
            Op.VECTOR,
            _VECTOR,
            f"rd ra rb rc {_SYNC}",
            "For each of rc rows: x = A (rows from ra); x = x op B; x += BIAS; x *= SCALE in fp32; x = max(x, 0); "
            "write to rows from rb; each step as the flags say; ra += rd. x is of type dtype, and fp32 once it is "
            "scaled or where out is a floating-point type; fp32 is rounded half to even and saturated to int8, "
            "uint8 and int32. With a chain its stages stand in place of these steps.",
            Field("a_space", 1, "Where A is.", enum=Space),
            Field("a_half", 1, "Which N bytes of a scratchpad row A is."),
            Field("b_op", 2, "What to do with B.", enum=BinaryOp),
            Field("b_space", 1, "Where B is.", enum=Space),
            Field("b_half", 1, "Which N bytes of a scratchpad row B is."),
            _type("dtype", "INT32 or FP32: type of 32-bit inputs, the bias and unscaled sums.", ElementType.INT32),
            Field("bias", 1, "Add the BIAS row register."),
            Field("scale", 1, "Convert to fp32 if int32, then multiply by the SCALE row register."),
            Field("relu", 1, "Replace negative values by zero (NaN stays)."),
            _type(
                "out",
                "What is written: 32 bits to accumulator rows, less to the scratchpad.",
                ElementType.INT32,
            ),
            Field("out_half", 1, "Which N bytes of a scratchpad row to write."),
            _type("a_type", "What scratchpad rows of A hold."),
            _type("b_type", "What scratchpad rows of B hold."),
            Field(
                "chain",
                CHAIN_BITS,
                "The chain that says what to do; b_op, bias, scale and relu are then 0. With 0 they say it.",
                lsb=122,
            ),
            imm="rc",
        ),
        _op(
            Op.VROW,
            _VECTOR,
            f"rd ra {_SYNC}",
            "Fills a row register of the vector unit from accumulator row ra, or with one 32-bit value in all lanes; "
            "ra += rd.",
            Field("row", 2, "The row register.", enum=VectorRow),
            Field("splat", 1, "Take the value of ra (or the immediate) instead of the accumulator row ra."),
            imm="ra",
        ),
        _op(
            Op.VFOLD,
            _VECTOR,
            _SYNC,
            "Joins the partial results of a reduction in a row register, in a fixed tree, and forgets them. Partials "
            "that no row has reached count as the value that changes nothing; without rows it is the result.",
            Field("row", 2, "The row register.", enum=VectorRow),
            Field("reduce", 3, "SUM, MAX or MIN, as in the chain that reduced.", enum=Reduction),
            _type("dtype", "INT32 or FP32: what the partials are.", ElementType.FP32),
        ),
    )
}


OPTIONS: dict[str, str] = {_BY_LIST.name: "gather"}
"""Of fields that not every chip has: the parameter of ``ChipConfig`` that must not be zero."""


def used_bits(op: Op, config: ChipConfig) -> int:
    """Mask of the bits that an operation uses on a chip; all others must be zero."""
    layout = FORMATS[op].layout
    absent = [name for name, needs in OPTIONS.items() if not getattr(config, needs)]
    return layout.mask & ~sum(layout.fields[name].mask for name in absent if name in layout.fields)


def encode(op: Op, **fields: int) -> int:
    """The instruction word; a field that is not given has its default. Raises ``LayoutError`` for a field that the
    operation does not use, or a bad value."""
    return FORMATS[op].layout.pack(**{**FORMATS[op].defaults, "op": op, **fields})


def decode(word: int) -> tuple[Op, dict[str, int]]:
    """Operation and fields of a word. Raises ``LayoutError`` if it is not an instruction."""
    try:
        op = Op(word & 0xFF)
    except ValueError:
        raise LayoutError(f"no instruction has opcode {word & 0xFF:#04x}") from None
    layout = FORMATS[op].layout
    if word & ~layout.mask:
        raise LayoutError(f"reserved bits are set in {op.name}: {word & ~layout.mask:#x}")
    fields = layout.unpack(word)
    del fields["op"]
    return op, fields
