"""Pass 6, emit: C code for a schedule.

Every fragment becomes a function from the state to next values of registers (``n…``), stored values (``t…``) and
memory writes (``w…``). A set of ``dirty`` bits says which fragments must run; a fragment whose results differ from the
last ones marks its readers. ``settle`` runs the first fragments. ``commit`` ends a cycle: the fragments of the edge
run, next values become contents, writes reach the memories.
"""

from dataclasses import dataclass

from sley.sim.fast.emit.control import control
from sley.sim.fast.emit.design import Design
from sley.sim.fast.emit.fragment import write_fragment
from sley.sim.fast.emit.header import header
from sley.sim.fast.emit.layout import Place, StateLayout
from sley.sim.fast.schedule.fragments import Schedule

UNIT_LINES = 4000
"""A source file is complete when it has this many lines; files compile beside each other."""


@dataclass
class Code:
    """A design in C: a header with the state and the sources, and where everything is in the state."""

    header: str
    sources: list[str]
    layout: StateLayout
    registers: list[Place]
    """For every register the place of its contents."""
    strips: dict[int, tuple[Place, int, int]]
    """For every memory segment: place of its strip, elements in a row of it, position in the row."""
    fragments: list[str]
    """Names of the fragments, in order."""


def emit(schedule: Schedule) -> Code:
    """C code for a schedule."""
    design = Design(schedule)
    functions = [write_fragment(design, index, part) for index, part in enumerate(schedule.fragments)]
    sources: list[list[str]] = [[]]
    for function in functions:
        if len(sources[-1]) > UNIT_LINES:
            sources.append([])
        sources[-1] += function.text()
    sources.append(control(design))
    design.layout.add("spare", "u8", design.spare)
    texts = ["\n".join(['#include "design.h"', *lines, ""]) for lines in sources]
    registers = [design.places[register.value] for register in design.net.registers]
    names = [f"{fragment.home}/{fragment.elements}/{fragment.stage}" for fragment in schedule.fragments]
    return Code(header(design), texts, design.layout, registers, design.strips, names)
