"""Comparisons of integers, and choices by conditions: masks as long as both sides are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sley.runtime.frameworks.from_triton.conversion import Conversion, lowers, narrow
from sley.runtime.frameworks.from_triton.elements import aligned, result, tiles_of
from sley.runtime.frameworks.from_triton.forms import Form, constant, least, most
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import Operation
from sley.runtime.frameworks.from_triton.values import Condition, Data, Known
from sley.runtime.tile.trace import Tile, where

OPPOSITE = {"sgt": "slt", "sge": "sle", "ugt": "ult", "uge": "ule"}
"""Comparisons that are others with their sides exchanged."""
COMPARISONS: dict[str, Callable[[Tile, Tile], Tile]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
}


@lowers("arith.cmpi", note="a mask where both sides are known, else 1 or 0")
def lower_compare(conversion: Conversion, operation: Operation) -> Known:
    predicate = operation.attributes["predicate"]
    known = [conversion.known(value) for value in operation.operands]
    if operation.operands[0].type.element != "i1" and all(isinstance(one, Form) for one in known):
        a, b = (conversion.form(value) for value in operation.operands)
        # a test of data would be a difference, which wraps; one that is valid in part would be dropped by chance
        exact = not (a.data or b.data or a.valid or b.valid)
        if exact and (predicate[0] != "u" or min(least(a.low()), least(b.low())) >= 0):
            tests = _tests(predicate, a, b)
            if tests is not None:
                return Condition(tests, a.shape)
            if a.scalar and b.scalar:
                return Condition((constant(np.where(np.equal(a.base, b.base), 0, -1), a.shape),), a.shape)
    if predicate[0] == "u" and operation.operands[0].type.element == "i1":
        predicate = "s" + predicate[1:]  # elements are 1 and 0
    if predicate[0] == "u":
        raise refuse(operation, "a comparison without signs of what may be negative")
    operands, tiles = tiles_of(conversion, operation)
    return result(operands, COMPARISONS[predicate](*tiles), operation.result.type)


def _tests(predicate: str, a: Form, b: Form) -> tuple[Form, ...] | None:
    if predicate in OPPOSITE:
        predicate, a, b = OPPOSITE[predicate], b, a
    below = a.plus(b, -1)
    if predicate in ("slt", "ult"):
        return (below,)
    if predicate in ("sle", "ule"):
        return (below.add(-1),)
    return (below.add(-1), b.plus(a, -1).add(-1)) if predicate == "eq" else None


def joined(name: str, a: Condition, b: Condition) -> Known | None:
    """Two conditions as one, if it is a condition, too."""
    if name == "arith.andi":
        return Condition(a.tests + b.tests, a.shape)
    if name == "arith.xori":
        for one, other in ((a, b), (b, a)):
            if not other.tests and len(one.tests) == 1:
                return Condition((opposite(one.tests[0]),), a.shape)
    if name == "arith.ori":
        for one, other in ((a, b), (b, a)):
            if not one.tests or any(never(test) for test in other.tests):
                return one
    return None


def as_condition(known: Known) -> Condition | None:
    """A condition, or a form of i1, with the tests that do not always hold; None for what is none."""
    if isinstance(known, Form) and known.data is None:
        known = Condition((known.times(-1),), known.shape)
    if not isinstance(known, Condition):
        return None
    return Condition(tuple(test for test in known.tests if most(test.high()) >= 0), known.shape)


def never(test: Form) -> bool:
    """Whether a test holds for no element."""
    return least(test.low()) >= 0


def opposite(test: Form) -> Form:
    """A test that holds where this one does not."""
    return test.times(-1).add(-1)


@lowers("arith.select", note="a choice; of conditions that are known, by the host")
def lower_select(conversion: Conversion, operation: Operation) -> Known:
    condition, type = as_condition(conversion.known(operation.operands[0])), operation.result.type
    if condition is not None:
        tests = condition.tests
        if not tests:
            return conversion.known(operation.operands[1])
        if any(never(test) for test in tests):
            return conversion.known(operation.operands[2])
        x, y = (conversion.known(value) for value in operation.operands[1:])
        if all(test.scalar for test in tests) and isinstance(x, Form) and isinstance(y, Form) and x.scalar and y.scalar:
            holds = conversion.flag(condition).base
            return constant(np.where(np.equal(holds, 1), x.base, y.base), type.shape)
    if type.kind != "value":
        raise refuse(operation, "a choice between pointers that is not known when the kernel is launched")
    operands = aligned(conversion, operation)
    flags, x, y = operands
    tiles = [conversion.tile(one, type) for one in (x, y)]
    flag = flags.tile if isinstance(flags, Data) else conversion.tile(flags, operation.operands[0].type)
    tile = where(flag, *tiles)
    return result(operands, tile.to(narrow(type)), type)
