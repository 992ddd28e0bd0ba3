"""Where values will lie in memory, and what it costs a loop to bring them together."""

from collections.abc import Sequence
from itertools import pairwise

from sley.sim.fast.optimise.elements import Elements
from sley.sim.fast.optimise.machine_types import SIZES, c_type


def gather_cost(elements: Elements, values: tuple[int, ...], slots: Sequence[int]) -> float:
    """Instructions to bring values together: one for each run of neighbours."""
    pieces = runs(elements, values, slots)
    return 0.0 if pieces == 1 else 2.0 * pieces


def runs(elements: Elements, values: tuple[int, ...], slots: Sequence[int]) -> int:
    """Number of pieces of memory in which the values lie; equal neighbours count as one piece, too."""
    addresses = [_address(elements, value) for value in values]
    pieces = 1
    for ((owner, at, size), slot), ((next_owner, next_at, _), next_slot) in pairwise(
        zip(addresses, slots, strict=True)
    ):
        if next_owner != owner or next_at not in (at, at + size * (next_slot - slot)):
            pieces += 1
    return pieces


def _address(elements: Elements, value: int) -> tuple[int, int, int]:
    """Where a value will lie: what it is stored in, byte, bytes to the next."""
    low, size = 0, -(-elements.width[value] // 8)
    if elements.op[value] == "slice" and value not in elements.group_of and elements.parameter[value] % 8 == 0:
        low = elements.parameter[value] // 8
        value = elements.operands[value][0]
    whole = SIZES[c_type(elements.width[value])]
    if not low and size > whole // 2:
        size = whole
    if value in elements.stored:
        array, index = elements.stored[value]
        return array, index * whole + low, size
    if value in elements.group_of:
        group = elements.group_of[value]
        return -1 - group, elements.groups[group].slots[elements.position[value]] * whole + low, size
    return -1 - len(elements.groups) - value, low, size
