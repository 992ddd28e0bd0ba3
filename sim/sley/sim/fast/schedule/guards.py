"""Registers that mostly keep their contents: what decides it is computed first, and the rest only if they change.

A next value that is a chain of multiplexers with the register itself at its end has *conditions*: as long as all of
them hold, the contents stay. Registers of one fragment with the same conditions become a *block*, together with all
values that nothing outside of the block uses.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sley.sim.fast.optimise.elements import Elements
from sley.sim.fast.schedule.loops import waits

MAX_CONDITIONS = 4
MIN_GAIN = 3
"""Values and registers in a block; smaller ones cost less than a branch."""


@dataclass(slots=True)
class Block:
    """Registers that keep their contents while each value of ``conditions`` is what it says."""

    conditions: tuple[tuple[int, int], ...]
    groups: list[int] = field(default_factory=list)
    """Of values, operands first, and then of next values."""


def blocks(
    elements: Elements, groups: Sequence[int], writable: Collection[int], stored: Collection[int]
) -> tuple[list[int], list[Block]]:
    """Divides the scalar groups of a fragment, operands first, into those outside of all blocks, and blocks.

    ``writable``: groups of next values that may be computed or not, and of values that nothing outside of the fragment
    reads. ``stored``: groups that have a place; what decides about one of another fragment is not looked for, as the
    order of fragments does not know that it would be read here.
    """
    here = set(groups)
    found: dict[tuple[tuple[int, int], ...], list[int]] = defaultdict(list)
    for number in groups:
        value = elements.groups[number].values[0]
        if elements.op[value] == "next" and number in writable:
            conditions = _conditions(elements, value, here, stored)
            if conditions:
                found[conditions].append(number)
    block_of: dict[int, tuple[tuple[int, int], ...] | None] = {}
    for conditions, sinks in found.items():
        block_of.update(dict.fromkeys(sinks, conditions))
        for value, _ in conditions:
            block_of[elements.group_of.get(value, -1)] = None
    users: dict[int, set[int]] = defaultdict(set)
    for number in groups:
        for operand in elements.operands[elements.groups[number].values[0]]:
            users[elements.group_of.get(operand, -1)].add(number)
    for number in reversed(groups):
        if number in block_of:
            continue
        own = {block_of.get(user) for user in users[number]}
        alone = number in writable and len(own) == 1 and elements.op[elements.groups[number].values[0]] != "next"
        block_of[number] = own.pop() if alone else None
    members: dict[tuple[tuple[int, int], ...], list[int]] = defaultdict(list)
    for number in groups:
        conditions_of = block_of[number]
        if conditions_of:
            members[conditions_of].append(number)
    result = [Block(conditions, inside) for conditions, inside in members.items() if len(inside) >= MIN_GAIN]
    taken = {number for block in result for number in block.groups}
    return [number for number in groups if number not in taken], result


def condition_of_loop(
    elements: Elements, groups: Sequence[int], in_place: Collection[int], stored: Collection[int]
) -> tuple[int, int] | None:
    """A value and what it is while a loop would store only what is there already; None if there is no such value.

    ``in_place``: groups of next values that overwrite the contents, so that nothing need be stored to keep them.
    """
    here = set(groups)
    for number in groups:
        group = elements.groups[number]
        if group.op == "write" or number in stored or (group.op == "next" and number not in in_place):
            return None
        for value in group.values if group.op == "next" else ():
            if elements.group_of.get(elements.register(value).next) not in here:
                return None
    common = waits(elements, groups)
    return min(common) if common else None


def _conditions(
    elements: Elements, sink: int, here: Collection[int], stored: Collection[int]
) -> tuple[tuple[int, int], ...]:
    """Values, and what each of them is, such that the register keeps its contents; nothing if it is not that simple."""
    register = elements.netlist.registers[elements.parameter[sink]]
    found: list[tuple[int, int]] = []

    def keeps(value: int) -> bool:
        if value == register.value:
            return True
        if elements.op[value] != "mux" or len(found) == MAX_CONDITIONS:
            return False
        group = elements.group_of.get(value, -1)
        if group in stored and group not in here:
            return False
        select, if_0, if_1 = elements.operands[value]
        for branch, number in ((if_0, 0), (if_1, 1)):
            found.append((select, number))
            if keeps(branch):
                return True
            found.pop()
        return False

    return tuple(sorted(found)) if keeps(register.next) else ()
