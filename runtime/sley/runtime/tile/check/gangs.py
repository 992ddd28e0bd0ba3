"""Whether the cores of a gang make the same shared loads in the same order; if not, the chip ends their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from sley.abi.instructions import Op, Share
from sley.abi.parameters import Param
from sley.runtime.tile.check.commands import Command

Place = tuple[int, int, int]
"""Of a block: x, y, z."""
READ = (Param.RUN_BYTES, Param.MEM_STRIDE, Param.COUNT2, Param.MEM_STRIDE2)
"""What says which bytes of memory a load reads, besides its address and its runs."""


def unequal(streams: Mapping[Place, Sequence[Command]]) -> Iterator[tuple[Command, str]]:
    """Shared loads that another core of their group does not make, the first one of each block."""
    for place, stream in streams.items():
        mine = [command for command in stream if _share(command)]
        for other, theirs in streams.items():
            if other[2] != place[2]:
                continue
            for command, same in zip_longest(mine, filter(_share, theirs)):
                if command is None or same is None or not _alike(command, same, place, other):
                    said = command or same
                    yield said, f"block {place} shares a load that block {other} makes in another way, or not at all"
                    break


def _share(command: Command) -> Share:
    return Share(command.fields.get("share", 0)) if command.op is Op.LOAD else Share.NONE


def _alike(mine: Command, theirs: Command, place: Place, other: Place) -> bool:
    """Whether two loads are shared in the same way, and read the same if the two blocks are of one group."""
    share = _share(mine)
    if share is not _share(theirs):
        return False
    apart = (place[0] != other[0] and not share & Share.ROW) or (place[1] != other[1] and not share & Share.COLUMN)
    return apart or _read(mine) == _read(theirs)


def _read(command: Command) -> Any:
    return command.a, command.c, command.fields.get("by_list"), *(command.params[param] for param in READ)
