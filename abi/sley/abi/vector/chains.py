"""Chains: what the stages of the vector unit do with a row, in three words that SET writes and VECTOR names by index.

A chain has the stages of the lanes in their order::

    x = A
    x = x BINARY (B, a splat or a row register)
    x = x + (a splat or row register 0)                              int32 becomes fp32 here if a later stage is fp32
    x = x * (a splat, a row register, a late operand, or x itself)   fp32, or int32 modulo 2^32 if the chain says so
    x = max(x, 0)
    x = x where a condition holds, another value elsewhere
    x = function(x)                                                  fp32
    x = x * (as above)                                               fp32
    x = x BINARY2 (a splat, a row register, a late operand)
    reduction of x over the rows into a row register; conversion and write

A late operand is A, B or C as it was read, for a stage behind the first; its lanes may be exchanged, or one lane of it
be broadcast to all. C is read by the port of B that B does not use: it lies in the other memory.
"""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from sley.abi.config import MAX_CHAINS
from sley.abi.functions.own import FIRST_CODE, OwnFunction, own_functions
from sley.abi.functions.table import Function
from sley.abi.layout import Field, Layout
from sley.abi.types import TYPE_BITS, ElementType
from sley.abi.vector.operations import ADDER_OPS, BinaryOp, Reduction

CHAIN_BITS = MAX_CHAINS.bit_length()
CHAIN_PARAM = 64
"""The parameter that is word 0 of chain 0, which does not exist."""
CHAIN_WORDS = 3
WORDS_KEPT = 4
"""Parameters from one chain to the next."""
FUNCTION_BITS = 5


class Operand(IntEnum):
    """Where a stage finds its second operand. NONE: there is none, and the stage passes x on."""

    NONE = 0
    B = 1
    X = 2
    LATE0 = 4
    LATE1 = 5
    SPLAT0 = 8
    SPLAT1 = 9
    SPLAT2 = 10
    SPLAT3 = 11
    ROW0 = 12
    ROW1 = 13
    ROW2 = 14
    ROW3 = 15


class Condition(IntEnum):
    """Where x stays, lane by lane."""

    ALWAYS = 0
    IOTA_NEGATIVE = 1
    LATE0_NOT_ZERO = 2


class Late(IntEnum):
    """Which operand a late one is."""

    A = 0
    B = 1
    C = 2


class Lanes(IntEnum):
    """Which lane of a late operand a lane sees: its own; that with number r mod N in row r, whose row is read for N
    rows; the one whose number differs in the bits of EXCHANGE."""

    OWN = 0
    BROADCAST = 1
    EXCHANGE = 2


SPLATS = tuple(o for o in Operand if Operand.SPLAT0 <= o < Operand.ROW0)
UNIFORM = tuple(o for o in Operand if o >= Operand.SPLAT0)
"""Operands that do not change within an instruction."""
LATE = (Operand.LATE0, Operand.LATE1)
STAGE_OPERANDS: dict[str, tuple[Operand, ...]] = {
    "binary_operand": (Operand.NONE, Operand.B, *UNIFORM),
    "add": (Operand.NONE, *SPLATS, Operand.ROW0),
    "multiply": (Operand.NONE, Operand.X, *LATE, *UNIFORM),
    "other": (Operand.NONE, Operand.LATE1, *SPLATS),
    "multiply2": (Operand.NONE, Operand.X, *LATE, *UNIFORM),
    "binary2_operand": (Operand.NONE, *LATE, *UNIFORM),
}
"""What each operand of a stage may be; a chain with another one is an illegal instruction."""


def _operand(name: str, doc: str) -> Field:
    return Field(name, 4, doc, enum=Operand)


FRONT = Layout(
    "CHAIN_FRONT",
    32,
    (
        Field("binary", 5, "What to do with x = A and its operand.", enum=BinaryOp),
        _operand("binary_operand", "The second operand; NONE is zero."),
        _operand("add", "What to add."),
        _operand("multiply", "What to multiply by."),
        Field("relu", 1, "Replace negative values by zero (NaN stays)."),
        Field("integer_product", 1, "Multiply int32 by int32 and keep the low 32 bits; else the product is of fp32."),
    ),
)
TAIL = Layout(
    "CHAIN_TAIL",
    32,
    (
        Field("keep", 2, "Where x stays.", enum=Condition),
        _operand("other", "What x becomes elsewhere; NONE is zero."),
        Field("function", FUNCTION_BITS, "A function of the chip: 1 and its code; 0: none."),
        _operand("multiply2", "What to multiply by."),
        Field("binary2", 5, "What to do with x and its operand.", enum=BinaryOp),
        _operand("binary2_operand", "The second operand; NONE is zero."),
    ),
)
OPERANDS = Layout(
    "CHAIN_OPERANDS",
    32,
    (
        Field("late0", 2, "The first late operand.", enum=Late),
        Field("late0_lanes", 2, "Its lanes.", enum=Lanes),
        Field("late1", 2, "The second late operand.", enum=Late),
        Field("late1_lanes", 2, "Its lanes.", enum=Lanes),
        Field("c_half", 1, "Which N bytes of a scratchpad row C is."),
        Field("c_type", TYPE_BITS, "What scratchpad rows of C hold.", enum=ElementType),
        Field("reduce", 3, "What becomes of all rows in a row register.", enum=Reduction),
        Field("register", 2, "The row register."),
        Field("silent", 1, "Nothing is written: the row register is the result."),
    ),
)
WORDS = (FRONT, TAIL, OPERANDS)


@dataclass(frozen=True)
class Chain:
    """A chain of stages; each field as the layouts describe it."""

    binary: BinaryOp = BinaryOp.NONE
    binary_operand: Operand = Operand.NONE
    add: Operand = Operand.NONE
    multiply: Operand = Operand.NONE
    relu: bool = False
    integer_product: bool = False
    keep: Condition = Condition.ALWAYS
    other: Operand = Operand.NONE
    function: Function | OwnFunction | None = None
    multiply2: Operand = Operand.NONE
    binary2: BinaryOp = BinaryOp.NONE
    binary2_operand: Operand = Operand.NONE
    late0: Late = Late.A
    late0_lanes: Lanes = Lanes.OWN
    late1: Late = Late.A
    late1_lanes: Lanes = Lanes.OWN
    c_half: int = 0
    c_type: ElementType = ElementType.INT8
    reduce: Reduction = Reduction.NONE
    register: int = 0
    silent: bool = False

    def words(self) -> tuple[int, ...]:
        """The words as they stand in the table. Raises ``LayoutError``."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["function"] = 0 if self.function is None else 1 + self.function
        return tuple(layout.pack(**{name: int(values[name]) for name in layout.fields}) for layout in WORDS)

    def late_uses(self, late: Operand) -> int:
        """Stages that take this late operand."""
        stages = (self.multiply, self.other, self.multiply2, self.binary2_operand)
        return stages.count(late) + (late == Operand.LATE0 and self.keep == Condition.LATE0_NOT_ZERO)

    def reads(self, source: Late) -> bool:
        """Whether a late operand is this one."""
        return any(
            self.late_uses(operand) and late == source
            for operand, late in ((Operand.LATE0, self.late0), (Operand.LATE1, self.late1))
        )

    def broadcasts(self, source: Late) -> bool:
        """Whether rows of B or C serve N rows each: a late operand that is this one is broadcast."""
        pairs = ((Operand.LATE0, self.late0, self.late0_lanes), (Operand.LATE1, self.late1, self.late1_lanes))
        return any(
            self.late_uses(operand) and late == source and lanes == Lanes.BROADCAST for operand, late, lanes in pairs
        )

    @property
    def uses_b(self) -> bool:
        """Whether rows of B are read."""
        return self.binary_operand == Operand.B or self.reads(Late.B)

    @property
    def uses_c(self) -> bool:
        """Whether rows of C are read."""
        return self.reads(Late.C)

    def problem(self) -> str | None:
        """The first thing in it that no chip does, as a sentence, or None."""
        for stage, allowed in STAGE_OPERANDS.items():
            operand = getattr(self, stage)
            if operand not in allowed:
                return f"{stage} is {operand!r}; it can be {', '.join(o.name for o in allowed)}"
        if self.binary2 not in ADDER_OPS:
            return f"binary2 is {self.binary2.name}; it can be {', '.join(o.name for o in ADDER_OPS)}"
        if self.binary2 and self.reduce not in (Reduction.NONE, Reduction.LAST):
            return f"reduce is {self.reduce.name} and binary2 {self.binary2.name}; one adder does both: use one of them"
        if self.integer_product and not self.multiply:
            return "integer_product without multiply; give it an operand"
        if self.integer_product and (self.function is not None or self.multiply2):
            later = "multiply2" if self.function is None else f"function {self.function.name}"
            return f"{later} behind an integer_product takes fp32, which an int32 becomes in front of multiply alone"
        for late in LATE:
            if self.late_uses(late) > 1:
                return f"{late.name} serves {self.late_uses(late)} stages; it serves one: the other one is for another"
        if self.broadcasts(Late.A):
            return "a late operand that is A cannot be broadcast, as a row of A is read for one row; make it B or C"
        return None

    def becomes_float(self, out: ElementType) -> bool:
        """Whether an int32 x becomes fp32, in front of the product, for a later stage or the output."""
        fp32_product = bool(self.multiply) and not self.integer_product
        return fp32_product or self.function is not None or bool(self.multiply2) or out.is_float

    def type_problem(self, dtype: ElementType, out: ElementType) -> str | None:
        """Why the chain does not go with these types of a VECTOR, as a sentence, or None."""
        if self.integer_product and (dtype is not ElementType.INT32 or out.is_float):
            return (
                f"dtype is {dtype.name} and out {out.name} with an integer_product; dtype is INT32 then, and out "
                "INT32, INT8 or UINT8"
            )
        return None


def chain_of(words: tuple[int, ...]) -> Chain | None:
    """The chain that the words are, or None if a code in them has no meaning or a reserved bit is set."""
    values: dict[str, int] = {}
    for layout, word in zip(WORDS, words, strict=True):
        if word & ~layout.mask:
            return None
        values |= layout.unpack(word)
    enums = {name: placed.field.enum for layout in WORDS for name, placed in layout.fields.items()}
    typed: dict[str, Any] = {}
    for name, value in values.items():
        enum = enums[name]
        try:
            typed[name] = enum(value) if enum else value
        except ValueError:
            return None
    typed |= {name: bool(values[name]) for name in ("relu", "integer_product", "silent")}
    try:
        typed["function"] = function_of(values["function"] - 1) if values["function"] else None
    except ValueError:
        return None
    chain = Chain(**typed)
    return None if chain.problem() else chain


def function_of(code: int) -> Function | OwnFunction:
    """The function with a code. Raises ``ValueError`` if there is none, or it is not installed here."""
    if code < FIRST_CODE:
        return Function(code)
    own = {int(function): function for function in own_functions().values()}
    if code not in own:
        raise ValueError(f"no function with code {code} is installed")
    return own[code]


def chain_parameter(chain: int, word: int) -> int:
    """The number of the parameter that is a word of a chain."""
    return CHAIN_PARAM + WORDS_KEPT * chain + word
