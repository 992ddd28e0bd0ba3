"""What the scheduler makes: fragments in the order in which they run, and who reads what."""

from dataclasses import dataclass, field

from sley.sim.fast.optimise.elements import Elements


@dataclass(slots=True)
class Fragment:
    home: str
    elements: int
    stage: int
    clock: int = -1
    """The clock at whose edge it runs; -1: it runs before, while everything settles."""
    groups: list[int] = field(default_factory=list)
    alone: bool = False
    """Whether it was kept apart only to have a place of its own in the order of the edge."""


@dataclass(slots=True)
class Schedule:
    elements: Elements
    fragments: list[Fragment]
    """In the order in which they run: those that settle, then those of the edges."""
    settling: int
    """Number of the first ones."""
    in_place: set[int]
    """Groups of next values and writes that overwrite the contents of their registers and memories."""
    fragment_of: list[int]
    """For each group its fragment; -1 for a cheap one."""
    stored: set[int]
    """Groups whose values other fragments, or other elements of the loop, read."""
    readers: dict[int, set[int]]
    """For each register, input and stored value the fragments that read it."""
    memory_readers: dict[int, set[int]]
    """The same for each memory."""
