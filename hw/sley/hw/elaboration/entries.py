"""Memories of a few entries, one for each core or queue."""

from amaranth.hdl import ShapeLike
from amaranth.lib.memory import Memory


def entry_memory(shape: ShapeLike, entries: int) -> Memory:
    """So many entries, in RAM that is read in the same cycle; one is better off in flip-flops."""
    return Memory(shape=shape, depth=max(entries, 2), init=[], attrs={"ram_style": "logic"} if entries == 1 else {})
