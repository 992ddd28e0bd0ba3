"""How many slots each buffer has: rounds of a loop take them in turn, so that a unit may be ahead of the others.

A unit does its operations in order, so a buffer that no other unit uses needs one slot. The others of a loop have two
if there is room, those of inner loops first, and of one loop the smallest. Where all of a loop have them, and there is
still room, they have four: small tiles need more rounds in flight to hide the latency of memory. Sums that are stored
as they are, and that several rounds of an inner loop add to, keep two, of which each is in a bank of its own.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from sley.abi.instructions import Space
from sley.runtime.tile.ir import Op
from sley.runtime.tile.passes.buffers import Buffer

MOST = 4
"""Slots of a buffer, a power of two."""


def choose_slots(
    buffers: Sequence[Buffer],
    shared: Container[Buffer],
    stored: Container[Buffer],
    depths: Mapping[Op, int],
    rows: Mapping[Space, int],
    most: int,
) -> None:
    """Sets ``slots``. ``shared``: buffers that more than one unit uses. ``stored``: those that only the array, in a
    loop, and Store use. ``depths``: of loops. ``rows``: of each memory.
    ``most``: slots of any buffer, 1, 2 or 4."""
    left = dict(rows)
    for buffer in buffers:
        left[buffer.space] -= buffer.rows
    if most < 2:
        return
    several = [(buffer, buffer.loop) for buffer in buffers if buffer.loop is not None and buffer in shared]
    for buffer, _ in sorted(several, key=lambda pair: (-depths[pair[1]], pair[0].rows)):
        if buffer.rows <= left[buffer.space]:
            buffer.slots = 2
            left[buffer.space] -= buffer.rows
    loops = list(dict.fromkeys(loop for _, loop in several))
    for loop in reversed(loops) if most == MOST else ():
        inside = [buffer for buffer, around in several if around is loop]
        longer = [buffer for buffer in inside if buffer not in stored]
        more = {space: sum(2 * b.rows for b in longer if b.space is space) for space in left}
        if all(b.slots == 2 for b in inside) and all(more[space] <= left[space] for space in left):
            for buffer in longer:
                buffer.slots = MOST
                left[buffer.space] -= 2 * buffer.rows
