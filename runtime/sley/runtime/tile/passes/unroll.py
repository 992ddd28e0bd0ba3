"""Several rounds of a loop become one.

Before: a loop over n rounds. After: one over n / f rounds, whose body is that of f rounds, each with the number of its
own; what is carried goes from one to the next. A loop that is left with one round stays a loop.
"""

from __future__ import annotations

from collections.abc import Mapping

from sley.runtime.tile.ir import Block, Function, Op
from sley.runtime.tile.passes.loops import divided, round_behind


def unroll(function: Function, rounds: Mapping[str, int]) -> None:
    """Runs the pass, in place. ``rounds``: by the names of loops' variables. Raises ``TileError`` for one that no loop
    has, and for a number that does not divide the rounds of a loop."""
    for loop, factor in divided(function, "unroll", rounds):
        _unroll(loop, factor)


def _unroll(loop: Op, factor: int) -> None:
    assert loop.body is not None
    variable, *carried = loop.body.parameters
    ops, now = list[Op](), carried
    for number in range(factor):
        made, now = round_behind(loop, number, now)
        ops += made
    loop.body = Block([variable, *carried], [*ops, Op("yield", now, line=loop.line)])
    loop.attributes |= {"step": loop.attributes["step"] * factor, "count": loop.attributes["count"] // factor}
