"""Operations of two operands and reductions of the vector unit, one table: codes, types, latencies.

The golden function of each is ``sley.sim.golden.operations.GOLDEN[code]``.
"""

from dataclasses import dataclass
from enum import IntEnum

from sley.abi.timing import FP32_ADD, FP32_MAXIMUM
from sley.abi.types import WORD_TYPES, ElementType

_INT32, _FP32 = WORD_TYPES


class BinaryOp(IntEnum):
    """An operation of x and a second operand, y. The flags of VECTOR have the first three; chains have all."""

    NONE = 0
    ADD = 1
    MAX = 2
    SUB = 4
    RSUB = 5
    MIN = 6
    SECOND = 7
    AND = 8
    OR = 9
    XOR = 10
    SHL = 11
    SHR = 12
    SAR = 13
    EQ = 16
    NE = 17
    LT = 18
    LE = 19


class Reduction(IntEnum):
    """What becomes of the rows of an instruction in a row register."""

    NONE = 0
    SUM = 1
    MAX = 2
    MIN = 3
    LAST = 4


ADDER_OPS = (BinaryOp.NONE, BinaryOp.ADD, BinaryOp.MAX, BinaryOp.SUB, BinaryOp.RSUB, BinaryOp.MIN)
"""Those of an adder, which both stages of two operands have."""
LOGIC_OPS = tuple(op for op in BinaryOp if op not in ADDER_OPS)
"""Comparisons, shifts and bits: those of the first stage alone."""
SHORT_OPS = (BinaryOp.NONE, BinaryOp.ADD, BinaryOp.MAX)
"""Those that the flags of VECTOR can name, on every chip."""
PARTIALS = 8
"""Partial results of a reduction: row r of those since the last fold goes to partial r mod PARTIALS."""


def chunk_partials(chunks: int) -> int:
    """Partial results of a reduction along rows of so many chunks of N: chunk c goes to partial c mod this, a power of
    two. They are two, so that no instruction needs what the one before it writes, and more for longer rows, whose tiles
    have fewer rows to hide that behind; each has 8 chunks or more then."""
    partials = 2
    while partials < PARTIALS and chunks >= 16 * partials:
        partials *= 2
    return min(partials, chunks)


JOIN = {Reduction.SUM: BinaryOp.ADD, Reduction.MAX: BinaryOp.MAX, Reduction.MIN: BinaryOp.MIN}
"""How each reduction that has partial results joins two values."""
IDENTITY: dict[tuple[Reduction, ElementType], int] = {
    (Reduction.SUM, _INT32): 0,
    (Reduction.MAX, _INT32): 0x80000000,
    (Reduction.MIN, _INT32): 0x7FFFFFFF,
    (Reduction.SUM, _FP32): 0x80000000,
    (Reduction.MAX, _FP32): 0xFF800000,
    (Reduction.MIN, _FP32): 0x7F800000,
}
"""The value that changes no other one: -0, which x + -0 leaves as x, for a sum of fp32."""


@dataclass(frozen=True)
class Operation:
    """An operation of two operands.

    Attributes: ``latency`` by the type that it computes in, in cycles from the operands in their registers to the
    result in one; a type that is missing has no such operation. ``doc`` is what it gives, in terms of x and y.
    """

    op: BinaryOp
    latency: dict[ElementType, int]
    doc: str


def _both(op: BinaryOp, integer: int, floating: int, doc: str) -> Operation:
    return Operation(op, {_INT32: integer, _FP32: floating}, doc)


INTEGER_ADD = 1
FLOAT_ADD = 1 + FP32_ADD
LOGIC = 2
"""Of the unit that compares, shifts and combines bits."""

OPERATIONS: dict[BinaryOp, Operation] = {
    o.op: o
    for o in (
        _both(BinaryOp.NONE, INTEGER_ADD, INTEGER_ADD, "x"),
        _both(BinaryOp.ADD, INTEGER_ADD, FLOAT_ADD, "x + y; int32 modulo 2^32"),
        _both(BinaryOp.MAX, FP32_MAXIMUM, FP32_MAXIMUM, "the larger; +0 is larger than -0, NaN if either is"),
        _both(BinaryOp.SUB, INTEGER_ADD, FLOAT_ADD, "x - y"),
        _both(BinaryOp.RSUB, INTEGER_ADD, FLOAT_ADD, "y - x"),
        _both(BinaryOp.MIN, FP32_MAXIMUM, FP32_MAXIMUM, "the smaller; -0 is smaller than +0, NaN if either is"),
        _both(BinaryOp.SECOND, LOGIC, LOGIC, "y, as it is"),
        _both(BinaryOp.AND, LOGIC, LOGIC, "x and y, bit by bit, in either type"),
        _both(BinaryOp.OR, LOGIC, LOGIC, "x or y, bit by bit"),
        _both(BinaryOp.XOR, LOGIC, LOGIC, "x exclusive or y, bit by bit"),
        _both(BinaryOp.SHL, LOGIC, LOGIC, "x shifted left by the low 5 bits of y"),
        _both(BinaryOp.SHR, LOGIC, LOGIC, "x shifted right by the low 5 bits of y, zeros from above"),
        _both(BinaryOp.SAR, LOGIC, LOGIC, "x shifted right by the low 5 bits of y, its sign from above"),
        _both(BinaryOp.EQ, LOGIC, LOGIC, "1 (of the type) if x = y, else 0; -0 = +0, a NaN equals nothing"),
        _both(BinaryOp.NE, LOGIC, LOGIC, "1 if x differs from y, else 0"),
        _both(BinaryOp.LT, LOGIC, LOGIC, "1 if x < y, else 0"),
        _both(BinaryOp.LE, LOGIC, LOGIC, "1 if x <= y, else 0"),
    )
}
