"""A loop becomes two, one in the other.

Before: a loop over ``k`` of n rounds. After: one over ``k_outer`` of n / f rounds, and in it one over ``k`` of f rounds
that counts from the outer one's variable on; what is carried goes through both. Either can be named by the words that
follow: fused with a loop that takes larger steps, privatised, unrolled. A loop that is left with one round stays a
loop.
"""

from __future__ import annotations

from collections.abc import Mapping

from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.operations import TileError
from sley.runtime.tile.passes.loops import alike, divided, name_of
from sley.runtime.tile.types import INDEX

OUTER = "_outer"
"""Behind the name of a loop that is split, the name of the outer one."""


def split(function: Function, rounds: Mapping[str, int]) -> None:
    """Runs the pass, in place. ``rounds``: of inner loops, by the names of loops' variables. Raises ``TileError`` for
    one that no loop has, or whose outer one has the name of another loop, and for a number that does not divide the
    rounds of a loop."""
    loops = divided(function, "split", rounds)
    taken = {name_of(op) for op in function.body.walk() if op.body is not None}
    for loop, factor in loops:
        if name_of(loop) + OUTER in taken:
            raise TileError(
                f"line {loop.line}: split of {name_of(loop)}; another loop is over {name_of(loop)}{OUTER}: rename one"
            )
        _split(loop, factor)


def _split(loop: Op, factor: int) -> None:
    assert loop.body is not None
    body, step = loop.body, loop.attributes["step"]
    variable, *carried = body.parameters
    outer, inner, begin = Value(INDEX, variable.name + OUTER), Value(INDEX, variable.name), alike(carried)
    variable.name = ""
    body.parameters = [inner, *carried]
    body.ops.insert(0, Op("iadd", [outer, inner], {}, [variable], line=loop.line))
    attributes = {"lower": 0, "step": step, "count": factor}
    part = Op("for", begin, attributes, alike(loop.results), body, loop.line)
    loop.body = Block([outer, *begin], [part, Op("yield", [*part.results], line=loop.line)])
    loop.attributes |= {"step": step * factor, "count": loop.attributes["count"] // factor}
