"""Loops over numbers of rounds that are known when the kernel is launched.

What a loop carries is a form if each round adds the same number to it; that is tried on the first round, and then
proved for any. Everything else that is carried is a tile; how it lies, and where it is valid, is what it is after a
round that began so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sley.runtime.frameworks.from_triton.conversion import (
    ELEMENTS,
    INT32,
    Conversion,
    Unrolled,
    lowers,
)
from sley.runtime.frameworks.from_triton.forms import Form, Loop, merged
from sley.runtime.frameworks.from_triton.programs import MOST_CLASSES, Split
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import Operation, Region, TritonValue
from sley.runtime.frameworks.from_triton.values import Data, Descriptor, Known, Pointer
from sley.runtime.tile.ir import Block, Op, Value
from sley.runtime.tile.operations import result_types
from sley.runtime.tile.trace import Index, Tile, trace
from sley.runtime.tile.types import INDEX, TileType

MOST_TRIES = 8
"""Rounds of the search for how a loop carries its values."""


MOST_UNROLLED = 16
"""Rounds of a loop that are converted one by one, since they are no sums of multiples of their numbers."""


@dataclass(frozen=True)
class _Carried:
    """How a value goes from round to round. Attributes: ``step``: what is added to a form; None for a tile, of which
    ``column`` and ``valid`` are as of ``Data``."""

    step: int | None
    column: bool = False
    valid: tuple[Form, ...] = ()


@lowers("scf.for", note="a hardware loop; the number of rounds is known when the kernel is launched")
def lower_for(conversion: Conversion, operation: Operation) -> list[Known]:
    lower, upper, step = (conversion.form(value) for value in operation.operands[:3])
    begin = [conversion.known(value) for value in operation.operands[3:]]
    count, by = _rounds(conversion, operation, lower, upper, step)
    if count == 0:
        return begin
    if count == 1:
        return _round(conversion, operation, lower, begin)
    loop = Loop(count)
    variable = lower.plus(Form(0, ((loop, by),)))
    try:
        carried = _carried(conversion, operation, loop, variable, begin)
        return _loop(conversion, operation, loop, variable, begin, carried)
    except Unrolled as unrolled:
        if unrolled.loop is not loop:
            raise
    if count > MOST_UNROLLED:
        raise refuse(operation, f"its {count} rounds do different things; up to {MOST_UNROLLED} are unrolled")
    for number in range(count):
        begin = _round(conversion, operation, lower.add(number * by), begin)
    return begin


def _rounds(conversion: Conversion, operation: Operation, lower: Form, upper: Form, step: Form) -> tuple[int, int]:
    """How many there are, and the step. Raises ``Split`` for programs with others."""
    by, distance = step.constant, upper.plus(lower, -1)
    if by is None or by < 1:
        raise refuse(operation, "the step is not the same for all programs, or not known when the kernel is launched")
    if not distance.scalar:
        raise refuse(operation, "the number of rounds depends on a loop around it, or on loaded numbers")
    counts = np.maximum(0, -np.floor_divide(-np.asarray(distance.base), by))
    different = len(np.unique(counts))
    if different > MOST_CLASSES:
        raise refuse(
            operation, f"the programs have {different} numbers of rounds; each is a launch, at most {MOST_CLASSES}"
        )
    if different > 1:
        raise Split(counts)
    return int(np.max(counts)), by


def ends_of(region: Region) -> list[TritonValue]:
    """What a region hands on; a yield of nothing is not printed."""
    last = region.operations[-1] if region.operations else None
    return last.operands if last is not None and last.name == "scf.yield" else []


def _round(conversion: Conversion, operation: Operation, variable: Form, begin: list[Known]) -> list[Known]:
    """Converts the body, and gives what it hands on."""
    region = operation.regions[0]
    conversion.values.update(zip(region.arguments, [variable, *begin], strict=True))
    conversion.region(region)
    return [conversion.known(value) for value in ends_of(region)]


def _carried(
    conversion: Conversion, operation: Operation, loop: Loop, variable: Form, begin: list[Known]
) -> list[_Carried]:
    """How each value is carried, such that a round that begins so ends so."""
    ends = ends_of(operation.regions[0])
    guess = [_Carried(0) if _is_form(known) else _Carried(None) for known in begin]
    first = True
    for _ in range(MOST_TRIES):
        loop.variable = Index(Value(INDEX))
        inside = [_inside(loop, known, one) for known, one in zip(begin, guess, strict=True)]
        with trace().inside(Block()), conversion.probing():
            parameters = [
                _parameter(conversion, value, one) if known is None else known
                for known, one, value in zip(inside, guess, ends, strict=True)
            ]
            made = _round(conversion, operation, variable, parameters)
        found = [
            _observed(operation, loop, before, after, one, first)
            for before, after, one in zip(parameters, made, guess, strict=True)
        ]
        if all(_equal(a, b) for a, b in zip(found, guess, strict=True)):
            return guess
        guess, first = found, False
    raise refuse(
        operation, "a value that it carries changes in another way from round to round than by the same number"
    )


def _is_form(known: Known) -> bool:
    return isinstance(known, Form | Pointer | Descriptor)


def _inside(loop: Loop, known: Known, carried: _Carried) -> Known | None:
    """A form as it is in a round; None for a tile."""
    if carried.step is None:
        return None
    if isinstance(known, Pointer):
        return replace(known, form=_stepped(known.form, loop, carried.step))
    return _stepped(known, loop, carried.step) if isinstance(known, Form) else known


def _stepped(form: Form, loop: Loop, step: int) -> Form:
    return form.plus(Form(0, ((loop, step),) if step else (), (0,) * len(form.shape), form.shape))


def _observed(operation: Operation, loop: Loop, before: Known, after: Known, guess: _Carried, first: bool) -> _Carried:
    """How a value was carried in a round."""
    if guess.step is not None:
        step = _step(before, after)
        if step is not None and (first or step == guess.step):
            return _Carried(step)
        if isinstance(before, Pointer | Descriptor):
            raise refuse(operation, "a pointer that it carries does not move by the same distance in each round")
        return _Carried(None)
    if not isinstance(after, Data):
        return guess
    valid = merged(guess.valid, after.valid)
    if any(loop in dict(test.loops) for test in valid):
        raise refuse(operation, "elements that % wrapped around are others in each round; mask them")
    return _Carried(None, after.column, valid)


def _step(before: Known, after: Known) -> int | None:
    if isinstance(before, Descriptor):
        return 0 if before is after else None
    if isinstance(before, Pointer) and isinstance(after, Pointer) and before.argument == after.argument:
        before, after = before.form, after.form
    if not isinstance(before, Form) or not isinstance(after, Form):
        return None
    if before.data != after.data or len(before.valid) != len(after.valid):
        return None
    return after.replaced(data=None).plus(before.replaced(data=None), -1).constant


def _equal(a: _Carried, b: _Carried) -> bool:
    return a.step == b.step and a.column == b.column and len(a.valid) == len(b.valid)


def _parameter(conversion: Conversion, value: TritonValue, carried: _Carried) -> Data:
    """A tile that a round begins with."""
    type = value.type
    if type.element not in (*ELEMENTS, "i1", "i16"):
        raise refuse(conversion.operation, f"it carries {type.element}; the device computes in f32 and int32")
    shape = conversion.whole(type, carried.column)
    made = Value(TileType(ELEMENTS.get(type.element, INT32), shape))
    return Data(Tile(made), type, carried.column, carried.valid)


def _loop(
    conversion: Conversion,
    operation: Operation,
    loop: Loop,
    variable: Form,
    begin: list[Known],
    carried: list[_Carried],
) -> list[Known]:
    ends = ends_of(operation.regions[0])
    tiles = [number for number, one in enumerate(carried) if one.step is None]
    starts = [conversion.stored(begin[number], ends[number].type, carried[number].column).value for number in tiles]
    counter = Value(INDEX, f"round{operation.place.line}")
    loop.variable = Index(counter)
    body = Block([counter, *(Value(start.type) for start in starts)])
    parameters = [_inside(loop, known, one) for known, one in zip(begin, carried, strict=True)]
    for number, parameter in zip(tiles, body.parameters[1:], strict=True):
        parameters[number] = Data(Tile(parameter), ends[number].type, carried[number].column, carried[number].valid)
    with trace().inside(body):
        made = _round(conversion, operation, variable, [one for one in parameters if one is not None])
        handed = [conversion.stored(made[number], ends[number].type, carried[number].column).value for number in tiles]
        trace().emit("yield", handed)
    op = Op("for", starts, {"lower": 0, "step": 1, "count": loop.count}, body=body, line=operation.place.line)
    op.results = [Value(type) for type in result_types(op)]
    trace().block.ops.append(op)
    results = [_inside(loop, known, one) for known, one in zip(begin, carried, strict=True)]
    after = [_after(loop, one) if one is not None else None for one in results]
    for number, value in zip(tiles, op.results, strict=True):
        after[number] = Data(Tile(value), ends[number].type, carried[number].column, carried[number].valid)
    return [one for one in after if one is not None]


def _after(loop: Loop, known: Known) -> Known:
    """A form behind the last round."""
    if isinstance(known, Pointer):
        return replace(known, form=_ended(known.form, loop))
    return _ended(known, loop) if isinstance(known, Form) else known


def _ended(form: Form, loop: Loop) -> Form:
    step = dict(form.loops).get(loop, 0)
    loops = tuple((other, factor) for other, factor in form.loops if other is not loop)
    return form.replaced(loops=loops).add(step * loop.count)
