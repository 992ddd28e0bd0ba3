"""What a loop carries stays in one place: copies where a value would otherwise be in two.

Behind this pass the value before the loop, the one in its body, the one that it yields and the one behind it can
share a buffer, and so can the sums of a ``dot`` and its result.
"""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, uses
from sley.runtime.tile.passes.loaded import as_loaded
from sley.runtime.tile.types import TileType


def keep_in_place(function: Function) -> None:
    """Runs the pass, in place."""
    _block(function.body, function)


def copied(value: Value, line: int, function: Function) -> Op:
    """A copy of a tile, as an operation."""
    type = value.type
    assert isinstance(type, TileType)
    if as_loaded(value, function):
        return Op("copy", [value], {}, [Value(type)], line=line)
    computed = ElementType.INT32 if type.dtype is ElementType.INT32 else ElementType.FP32
    attributes = {
        "stages": Chain(),
        "splats": (),
        "slots": (),
        "iota": (),
        "computed": computed,
        "dtype": type.dtype,
        "shape": type.shape,
    }
    op = Op("chain", [value], attributes, line=line)
    op.results = [Value(type)]
    return op


def _block(block: Block, function: Function) -> None:
    for op in list(block.ops):
        if op.body is not None:
            _block(op.body, function)
            _loop(op, block, function)
        elif op.name == "dot":
            _alone(op, 2, block, function)


def _alone(op: Op, number: int, block: Block, function: Function) -> None:
    """Operand ``number`` is used by this operation alone, and made in the block around it."""
    value = op.operands[number]
    made_here = any(value in other.results and other.name != "part" for other in block.ops) or value in block.parameters
    if made_here and len(uses(function.body)[value]) == 1 and op.operands.count(value) == 1:
        return
    copy = copied(value, op.line, function)
    block.ops.insert(block.ops.index(op), copy)
    op.operands[number] = copy.result


def _loop(op: Op, block: Block, function: Function) -> None:
    assert op.body is not None
    body, ends = op.body, op.body.ops[-1]
    for number, operand in enumerate(op.operands):
        if isinstance(operand.type, TileType):
            _alone(op, number, block, function)
    for number, parameter in enumerate(body.parameters[1:]):
        (*_, begin), user = _back(body, ends.operands[number])
        if begin not in body.parameters or begin is parameter or not isinstance(begin.type, TileType):
            continue
        copy = copied(begin, op.line, function)  # else it would be made in the place of another one that is carried
        if user is None:
            body.ops.insert(0, copy)
            ends.operands[number] = copy.result
        else:
            body.ops.insert(body.ops.index(user), copy)
            user.operands[user.operands.index(begin)] = copy.result
    for number, (parameter, end) in enumerate(zip(body.parameters[1:], list(ends.operands), strict=True)):
        if end is parameter or not isinstance(end.type, TileType):
            continue
        if not _in_place(body, parameter, end, function):
            copy = copied(end, op.line, function)
            body.ops.insert(len(body.ops) - 1, copy)
            ends.operands[number] = copy.result


def _back(body: Block, value: Value) -> tuple[list[Value], Op | None]:
    """A value, and what products and loops of a body begin with that make it in one place, the first one last; and the
    first of these operations."""
    values, first = [value], None
    while (number := _maker(body, values[-1])) is not None and body.ops[number].name in ("dot", "for"):
        first = body.ops[number]
        values.append(first.operands[2] if first.name == "dot" else first.operands[first.results.index(values[-1])])
    return values, first


def _in_place(body: Block, parameter: Value, end: Value, function: Function) -> bool:
    """Whether the operation that makes what is yielded can write it over what was carried."""
    used = uses(function.body)
    values, _ = _back(body, end)
    if any(len(used[value]) > 1 for value in values):
        return False
    if values[-1] is parameter:
        return True
    maker = _maker(body, values[-1])
    if maker is None or body.ops[maker].name != "chain":
        return False
    op, later = body.ops[maker], body.ops[maker + 1 :]
    whole = all(tile_shape(operand) == tile_shape(op.result) for operand in op.operands if operand is parameter)
    needed = any(parameter in _back(body, operand)[0] for user in later for operand in user.operands)
    return whole and not needed and all(user.body is None for user in later)


def _maker(body: Block, value: Value) -> int | None:
    """The number of the operation that makes a value."""
    return next((number for number, op in enumerate(body.ops) if value in op.results), None)
