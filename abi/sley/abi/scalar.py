"""What the sequencer's scalar instructions compute, on unsigned 32-bit values."""

from collections.abc import Callable

from sley.abi.instructions import Op

_MASK = 0xFFFFFFFF


def signed(value: int) -> int:
    """The number that a register's 32 bits are in two's complement."""
    return value - (1 << 32) if value >> 31 else value


_RESULTS: dict[Op, Callable[[int, int], int]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.MIN: lambda a, b: min(signed(a), signed(b)),
    Op.MAX: lambda a, b: max(signed(a), signed(b)),
    Op.AND: lambda a, b: a & b,
    Op.OR: lambda a, b: a | b,
    Op.SHL: lambda a, b: a << (b & 31),
    Op.SHR: lambda a, b: a >> (b & 31),
    Op.SAR: lambda a, b: signed(a) >> (b & 31),
}
_CONDITIONS: dict[Op, Callable[[int, int], bool]] = {
    Op.BEQ: lambda a, b: a == b,
    Op.BNE: lambda a, b: a != b,
    Op.BLT: lambda a, b: signed(a) < signed(b),
    Op.BGE: lambda a, b: signed(a) >= signed(b),
}

ALU_OPS = frozenset(_RESULTS)
"""Instructions that write a register."""
BRANCH_OPS = frozenset(_CONDITIONS)
"""Instructions that may continue at their target."""


def alu(op: Op, a: int, b: int) -> int:
    """The 32 bits that ``op``, one of ``ALU_OPS``, writes for operands of 32 bits."""
    return _RESULTS[op](a, b) & _MASK


def is_taken(op: Op, a: int, b: int) -> bool:
    """Whether ``op``, one of ``BRANCH_OPS``, continues at its target."""
    return _CONDITIONS[op](a, b)
