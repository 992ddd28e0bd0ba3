"""Several rounds of a loop become one.

Before: a loop over n rounds. After: one over n / f rounds, whose body is that of f rounds, each with the number of its
own; what is carried goes from one to the next. A loop that is left with one round stays a loop.
"""

from __future__ import annotations

from collections.abc import Mapping

from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.operations import TileError
from sley.runtime.tile.types import INDEX


def unroll(function: Function, rounds: Mapping[str, int]) -> None:
    """Runs the pass, in place. ``rounds``: by the names of loops' variables. Raises ``TileError`` for one that no loop
    has, and for a number that does not divide the rounds of a loop."""
    loops = [op for op in function.body.walk() if op.body is not None]
    names = {_name(op) for op in loops}
    for name in rounds:
        if name not in names:
            raise TileError(f"unroll of {name}; the loops of {function.name} are over {', '.join(names) or 'nothing'}")
    for op in loops:
        factor = rounds.get(_name(op), 1)
        if op.attributes["count"] % factor:
            raise TileError(
                f"line {op.line}: unroll of {_name(op)} by {factor}; its {op.attributes['count']} rounds must be a "
                "multiple of that"
            )
        if factor > 1:
            _unroll(op, factor)


def _name(op: Op) -> str:
    assert op.body is not None
    return op.body.parameters[0].name


def _unroll(op: Op, factor: int) -> None:
    assert op.body is not None
    body, step = op.body, op.attributes["step"]
    first, *carried = body.parameters
    ops, now = list[Op](), list(carried)
    for number in range(factor):
        known = dict(zip(carried, now, strict=True))
        if number:
            behind, variable = Value(INDEX), Value(INDEX)
            ops.append(Op("const", [], {"value": number * step}, [behind], line=op.line))
            ops.append(Op("iadd", [first, behind], {}, [variable], line=op.line))
            known[first] = variable
        *made, ends = _copied(body, known)
        ops += made
        now = ends.operands
    ops.append(Op("yield", now))
    op.body = Block(body.parameters, ops)
    op.attributes |= {"step": step * factor, "count": op.attributes["count"] // factor}


def _copied(block: Block, known: dict[Value, Value]) -> list[Op]:
    """The operations of a block once more, on other values where these are known."""
    found = []
    for op in block.ops:
        copy = Op(op.name, [known.get(value, value) for value in op.operands], dict(op.attributes), line=op.line)
        copy.results = [known.setdefault(value, Value(value.type, value.name)) for value in op.results]
        if op.body is not None:
            parameters = [known.setdefault(value, Value(value.type, value.name)) for value in op.body.parameters]
            copy.body = Block(parameters, _copied(op.body, known))
        found.append(copy)
    return found
