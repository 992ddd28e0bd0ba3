"""Values of a netlist for many moments at once, from the contents of registers, inputs and memories then.

A value of at most 64 bits is an array of ``uint64``, a wider one an array of Python's integers; one element for each
moment. ``semantics`` defines what an operator means; what is here is the same on arrays.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sley.sim.fast.read.netlist import WORD, Netlist
from sley.sim.fast.read.semantics import compute

Array = npt.NDArray[Any]


class Leaves(Protocol):
    """What is stored: arrays with an element for each of ``moments``, of the types that this module describes."""

    moments: int

    def input(self, name: str, width: int) -> Array: ...

    def register(self, name: str, low: int, width: int) -> Array: ...

    def read(self, memory: str, low: int, width: int, address: Array) -> Array:
        """Bits of the rows at these addresses; zeros for an address outside of the memory."""


def evaluate(netlist: Netlist, values: Iterable[int], leaves: Leaves) -> dict[int, Array]:
    """The chosen values at all moments. Costs a pass of numpy over the moments for each operator in their cone."""
    chosen = list(dict.fromkeys(values))
    known: dict[int, Array] = {}
    wanted = set(chosen)
    order = cone(netlist, chosen)
    last_use: dict[int, int] = {}
    for value in order:
        for operand in netlist.operands[value]:
            last_use[operand] = value
    for value in order:
        known[value] = _value(netlist, value, known, leaves)
        for operand in set(netlist.operands[value]):
            if last_use[operand] == value and operand not in wanted:
                del known[operand]
    return {value: known[value] for value in chosen}


def cone(netlist: Netlist, values: Iterable[int]) -> list[int]:
    """All that the values depend on and they themselves, operands first."""
    seen: set[int] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if value not in seen:
            seen.add(value)
            stack += netlist.operands[value]
    return sorted(seen)


def sources(netlist: Netlist, values: Iterable[int]) -> tuple[set[str], set[str], set[str]]:
    """Names of the inputs, registers and memories that the values depend on."""
    inputs, registers, memories = set(), set(), set()
    for value in cone(netlist, values):
        op, parameter = netlist.op[value], netlist.parameter[value]
        if op == "input":
            inputs.add(netlist.inputs[parameter].name)
        elif op == "register":
            registers.add(netlist.registers[parameter].name)
        elif op == "read":
            memories.add(netlist.memories[netlist.segments[parameter].memory].name)
    return inputs, registers, memories


def _value(netlist: Netlist, value: int, known: dict[int, Array], leaves: Leaves) -> Array:
    op, width, parameter = netlist.op[value], netlist.width[value], netlist.parameter[value]
    if op == "const":
        return full(parameter, width, leaves.moments)
    if op == "input":
        return leaves.input(netlist.inputs[parameter].name, width)
    if op == "register":
        register = netlist.registers[parameter]
        return leaves.register(register.name, register.low, width)
    operands = [known[operand] for operand in netlist.operands[value]]
    if op == "read":
        segment = netlist.segments[parameter]
        return leaves.read(netlist.memories[segment.memory].name, segment.low, width, operands[0])
    return apply(op, width, parameter, operands, [netlist.width[operand] for operand in netlist.operands[value]])


def full(number: int, width: int, moments: int) -> Array:
    """The same number at all moments."""
    if width <= WORD:
        return np.full(moments, number, np.uint64)
    result = np.empty(moments, object)
    result[:] = number
    return result


def apply(op: str, width: int, parameter: int, operands: Sequence[Array], widths: Sequence[int]) -> Array:
    """``semantics.compute`` for arrays."""
    if max(width, *widths) <= WORD:
        return _NARROW[op](operands, width, widths, parameter)
    if op == "mux":
        result: Array = np.where(operands[0] != 0, operands[2], operands[1])
        return result
    if op == "slice":
        return narrowed(operands[0] >> parameter & _mask(width), width)
    rows = zip(*(operand.tolist() for operand in operands), strict=True)
    if op == "concat":
        return _numbers([_joined(row, widths) for row in rows], width)
    return _numbers([compute(op, width, parameter, row, widths) for row in rows], width)


def narrowed(values: Array, width: int) -> Array:
    """Python's integers as the type for that many bits."""
    return values.astype(np.uint64) if width <= WORD else values


def _numbers(values: list[int], width: int) -> Array:
    if width <= WORD:
        return np.array(values, np.uint64)
    result = np.empty(len(values), object)
    result[:] = values
    return result


def _joined(parts: Sequence[int], widths: Sequence[int]) -> int:
    result = low = 0
    for part, width in zip(parts, widths, strict=True):
        if part:
            result |= part << low
        low += width
    return result


def _mask(width: int) -> int:
    return (1 << width) - 1


def _word(number: int) -> np.uint64:
    return np.uint64(number)


_Narrow = Callable[[Sequence[Array], int, Sequence[int], int], Array]
"""Operands, width of the result, widths of the operands, parameter."""


def _signed(values: Array, width: int) -> npt.NDArray[np.int64]:
    if not width:
        return np.zeros(len(values), np.int64)
    shift = np.int64(WORD - width)
    return (values << np.uint64(WORD - width)).view(np.int64) >> shift


def _cut(values: Array, width: int) -> Array:
    return values if width == WORD else values & _word(_mask(width))


def _bits(values: Array) -> Array:
    return values.astype(np.uint64)


def _concat(operands: Sequence[Array], width: int, widths: Sequence[int], parameter: int) -> Array:
    result, low = operands[0], widths[0]
    for operand, part in zip(operands[1:], widths[1:], strict=True):
        if part:  # else the shift could be by a whole word
            result = result | operand << _word(low)
        low += part
    return result


def _shift(op: str) -> _Narrow:
    def shift(operands: Sequence[Array], width: int, widths: Sequence[int], parameter: int) -> Array:
        value, amount = operands
        if not width:
            return value
        inside = np.minimum(amount, _word(width - 1))
        if op == "sar":
            return _cut((_signed(value, width) >> inside.view(np.int64)).view(np.uint64), width)
        shifted = value << inside if op == "shl" else value >> inside
        return _cut(np.where(amount < _word(width), shifted, _word(0)), width)

    return shift


def _pick(operands: Sequence[Array], width: int, widths: Sequence[int], parameter: int) -> Array:
    value, amount = operands
    # An amount has at most 32 bits or so: the sum does not wrap where it matters.
    far = amount >= _word(WORD)
    low = np.where(far, _word(WORD), amount) + _word(parameter)
    inside = low < _word(WORD)
    return _cut(np.where(inside, value >> np.where(inside, low, _word(0)), _word(0)), width)


def _divide(op: str) -> _Narrow:
    def divide(operands: Sequence[Array], width: int, widths: Sequence[int], parameter: int) -> Array:
        a, b = operands
        zero = b == 0
        if op[-1] == "u":
            safe = np.where(zero, _word(1), b)
            result = a // safe if op == "divu" else a % safe
        else:
            x, y = _signed(a, width), _signed(b, width)
            minus = y == -1  # of which the most negative number has no quotient
            divisor = np.where(zero | minus, np.int64(1), y)
            if op == "divs":
                result = np.where(minus, _word(0) - x.view(np.uint64), (x // divisor).view(np.uint64))
            else:
                result = (x % divisor).view(np.uint64)
        return _cut(np.where(zero, _word(0), result), width)

    return divide


def _compare(function: Callable[[Array, Array], Array], signed: bool) -> _Narrow:
    def compare(operands: Sequence[Array], width: int, widths: Sequence[int], parameter: int) -> Array:
        a, b = operands
        if signed:
            a, b = _signed(a, widths[0]), _signed(b, widths[1])
        return _bits(function(a, b))

    return compare


def _arithmetic(function: Callable[[Array, Array], Array]) -> _Narrow:
    return lambda operands, width, widths, parameter: _cut(function(operands[0], operands[1]), width)


def _parity(operands: Sequence[Array], width: int, widths: Sequence[int], parameter: int) -> Array:
    value = operands[0]
    for shift in (32, 16, 8, 4, 2, 1):
        value = value ^ value >> _word(shift)
    return value & _word(1)


_NARROW: dict[str, _Narrow] = {
    "and": _arithmetic(np.bitwise_and),
    "or": _arithmetic(np.bitwise_or),
    "xor": _arithmetic(np.bitwise_xor),
    "add": _arithmetic(np.add),
    "sub": _arithmetic(np.subtract),
    "mul": _arithmetic(np.multiply),
    "not": lambda operands, width, widths, parameter: _cut(~operands[0], width),
    "mux": lambda operands, width, widths, parameter: np.where(operands[0] != 0, operands[2], operands[1]),
    "slice": lambda operands, width, widths, parameter: _cut(operands[0] >> _word(min(parameter, WORD - 1)), width),
    "concat": _concat,
    "sext": lambda operands, width, widths, parameter: _cut(_signed(operands[0], widths[0]).view(np.uint64), width),
    "parity": _parity,
    "pick": _pick,
    "eq": _compare(np.equal, False),
    "ne": _compare(np.not_equal, False),
    "ltu": _compare(np.less, False),
    "leu": _compare(np.less_equal, False),
    "lts": _compare(np.less, True),
    "les": _compare(np.less_equal, True),
    **{op: _shift(op) for op in ("shl", "shr", "sar")},
    **{op: _divide(op) for op in ("divu", "modu", "divs", "mods")},
}
