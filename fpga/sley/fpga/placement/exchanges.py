"""Exchanges of what lies in the slots of a placed ECP5: compiled, for there are hundreds of millions of them."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sley.fpga.placement.delays import Bools, Floats, Integers
from sley.fpga.placement.placement import SLICES

SLOTS = 2 * len(SLICES)
"""Of a tile; each has a place for a LUT and one for a flip-flop, and two of them make a slice."""
EMPTY = -1
DRAWS = 12
"""Numbers at random for a try."""
NEAR = 2
"""Columns and rows around others of the same nets in which a place is looked for."""


class Parts(NamedTuple):
    """By number: ``movable`` parts that move, a LUT, a flip-flop, or a LUT with the flip-flop that it feeds; then all
    other cells, each by itself.

    ``x`` and ``y`` are their columns and rows, ``slot`` their slots, ``lut`` and ``flip_flop`` say what they have.
    Flip-flops of a tile have equal ``tile_rules``, those of a slice equal ``slice_rules``.
    """

    movable: int
    x: Integers
    y: Integers
    slot: Integers
    lut: Bools
    flip_flop: Bools
    tile_rules: Integers
    slice_rules: Integers


class Slots(NamedTuple):
    """``first`` has for each column and row the first slot of the tile of logic there, or EMPTY.

    Of each slot: ``x`` and ``y`` of its tile, the parts whose ``lut`` and ``flip_flop`` lie there, or EMPTY, and
    whether it ever takes them.
    """

    first: Integers
    x: Integers
    y: Integers
    lut: Integers
    flip_flop: Integers
    accepts_lut: Bools
    accepts_flip_flop: Bools


class Nets(NamedTuple):
    """The parts of net n are ``part[first[n]:first[n + 1]]``, and ``box[n]`` the first and last column, first and last
    row of them; the nets of part p are ``of_part[first_of_part[p]:first_of_part[p + 1]]``."""

    first: Integers
    part: Integers
    box: Integers
    first_of_part: Integers
    of_part: Integers


class Pulls(NamedTuple):
    """Part p is pulled towards each of ``other[first[p]:first[p + 1]]``: each column and row between costs
    ``weight``."""

    first: Integers
    other: Integers
    weight: Floats


def pulls(parts: int, ends: Integers, weight: Floats) -> Pulls:
    """Pulls between so many parts: ``ends`` has two rows, of the parts at either end."""
    of, other = np.concatenate(ends), np.concatenate(ends[::-1])
    order = np.argsort(of, kind="stable")
    return Pulls(np.searchsorted(of[order], np.arange(parts + 1)), other[order], np.tile(weight, 2)[order])


helper = njit(_nrt=False)  # as Numba has its own: to count who refers to an array takes longer than to use it
"""What ``exchange`` is made of. Nothing is allocated there."""


@njit
def exchange(
    parts: Parts,
    slots: Slots,
    nets: Nets,
    pulled: Pulls,
    excess: Floats,
    temperature: float,
    reach: int,
    draws: NDArray[np.float32],
) -> int:
    """Tries an exchange for each row of ``draws``, DRAWS numbers from 0 to 1 at random; returns how many were made.

    Those that cost ``d`` more are made with a probability of exp(-d / temperature). A net costs half the perimeter of
    its box, times one and the mean over the box of the excess of wires; ``excess[x, y]`` has the sum of all tiles
    before that column and row.
    """
    made = 0
    moved = np.empty(4, np.int64)
    from_x, from_y = np.empty(4, np.int64), np.empty(4, np.int64)
    touched, boxes = np.empty(len(nets.box), np.int64), np.empty_like(nets.box)
    row = np.full(len(nets.box), EMPTY)
    for k in range(len(draws)):
        part = int(draws[k, 0] * parts.movable)
        tile = _tile(part, reach, parts, slots, nets, draws[k])
        own_slot, target = parts.slot[part], _slot(part, tile, int(draws[k, 1] * SLOTS), parts, slots)
        if target == EMPTY:
            continue
        luts, flip_flops = _kinds(part, target, parts, slots)
        count = _leaving(own_slot, target, luts, flip_flops, parts, slots, moved, from_x, from_y)
        cost = -_pull(moved[:count], parts, pulled)
        _move(moved[:count], own_slot, target, parts, slots)
        cost += _pull(moved[:count], parts, pulled)
        number = _boxes(moved[:count], from_x, from_y, parts, nets, touched, boxes, row)
        for n in range(number):
            cost += _cost(boxes, n, excess) - _cost(nets.box, touched[n], excess)
        if cost > 0 and (temperature == 0 or draws[k, 2] >= np.exp(-cost / temperature)):
            _move(moved[:count], own_slot, target, parts, slots)
            continue
        for n in range(number):
            _copy(boxes, n, nets.box, touched[n])
        _exchange(own_slot, target, luts, flip_flops, slots)
        made += 1
    return made


@helper
def _tile(part: int, reach: int, parts: Parts, slots: Slots, nets: Nets, draw: NDArray[np.float32]) -> int:
    """The first slot of a tile within reach, or in every other case near the middle one of three others of the part's
    nets; EMPTY if it is none of logic."""
    x, y, around = parts.x[part], parts.y[part], reach
    first, last = nets.first_of_part[part], nets.first_of_part[part + 1]
    if first < last and draw[3] < 0.5:
        x0, y0 = _neighbour(first, last, draw[4], draw[5], parts, nets)
        x1, y1 = _neighbour(first, last, draw[6], draw[7], parts, nets)
        x2, y2 = _neighbour(first, last, draw[8], draw[9], parts, nets)
        x, y, around = _middle(x0, x1, x2), _middle(y0, y1, y2), NEAR
    x += int(draw[10] * (2 * around + 1)) - around
    y += int(draw[11] * (2 * around + 1)) - around
    columns, rows = slots.first.shape
    return slots.first[x, y] if 0 <= x < columns and 0 <= y < rows else EMPTY


@helper
def _neighbour(first: int, last: int, of_nets: float, of_parts: float, parts: Parts, nets: Nets) -> tuple[int, int]:
    """Column and row of one of the parts of those nets."""
    net = nets.of_part[first + int(of_nets * (last - first))]
    other = nets.part[nets.first[net] + int(of_parts * (nets.first[net + 1] - nets.first[net]))]
    return parts.x[other], parts.y[other]


@helper
def _middle(a: int, b: int, c: int) -> int:
    return max(min(a, b), min(max(a, b), c))


@helper
def _slot(part: int, tile: int, start: int, parts: Parts, slots: Slots) -> int:
    """The first slot of the tile, from there on, with which the part may change places; or EMPTY."""
    own_slot, found = parts.slot[part], EMPTY
    if tile != EMPTY:
        for offset in range(SLOTS):
            target = tile + (start + offset) % SLOTS
            if target != own_slot:
                luts, flip_flops = _kinds(part, target, parts, slots)
                if _legal(own_slot, target, luts, flip_flops, parts, slots):
                    found = target
                    break
    return found


@helper
def _kinds(part: int, target: int, parts: Parts, slots: Slots) -> tuple[bool, bool]:
    """Whether LUTs, and whether flip-flops change places with those there, so that no part is torn apart."""
    lut, flip_flop = parts.lut[part], parts.flip_flop[part]
    other_lut, other_flip_flop = slots.lut[target], slots.flip_flop[target]
    both = lut and flip_flop
    both |= lut and other_lut != EMPTY and parts.flip_flop[other_lut]
    both |= flip_flop and other_flip_flop != EMPTY and parts.lut[other_flip_flop]
    return lut or both, flip_flop or both


@helper
def _legal(own_slot: int, target: int, luts: bool, flip_flops: bool, parts: Parts, slots: Slots) -> bool:
    """Whether all of it moves, and nextpnr's rules allow it where it comes."""
    legal = True
    for one, other in ((own_slot, target), (target, own_slot)):
        lut, flip_flop = slots.lut[one], slots.flip_flop[one]
        if luts and lut != EMPTY:
            legal &= lut < parts.movable and slots.accepts_lut[other]
        if flip_flops and flip_flop != EMPTY:
            legal &= flip_flop < parts.movable and slots.accepts_flip_flop[other]
            legal = legal and _agrees(flip_flop, one, other, parts, slots)
    return legal


@helper
def _agrees(flip_flop: int, own_slot: int, target: int, parts: Parts, slots: Slots) -> bool:
    """Whether a flip-flop has the rules of those that it meets there when what lies there has come here."""
    agrees = True
    tile = target - target % SLOTS
    for slot in range(tile, tile + SLOTS):
        other = slots.flip_flop[target if slot == own_slot else own_slot if slot == target else slot]
        if other not in (EMPTY, flip_flop):
            agrees &= parts.tile_rules[other] == parts.tile_rules[flip_flop]
            agrees &= slot ^ 1 != target or parts.slice_rules[other] == parts.slice_rules[flip_flop]
    return agrees


@helper
def _leaving(
    own_slot: int,
    target: int,
    luts: bool,
    flip_flops: bool,
    parts: Parts,
    slots: Slots,
    moved: Integers,
    from_x: Integers,
    from_y: Integers,
) -> int:
    """How many parts change places; which in ``moved``, and where they are."""
    count = 0
    for slot in (own_slot, target):
        lut, flip_flop = slots.lut[slot], slots.flip_flop[slot]
        if luts and lut != EMPTY:
            moved[count] = lut
            count += 1
        if flip_flops and flip_flop != EMPTY and not (luts and flip_flop == lut):
            moved[count] = flip_flop
            count += 1
    for k in range(count):
        from_x[k], from_y[k] = parts.x[moved[k]], parts.y[moved[k]]
    return count


@helper
def _move(moved: Integers, own_slot: int, target: int, parts: Parts, slots: Slots) -> None:
    """Swaps the slots of what is moved."""
    for part in moved:
        slot = target if parts.slot[part] == own_slot else own_slot
        parts.slot[part], parts.x[part], parts.y[part] = slot, slots.x[slot], slots.y[slot]


@helper
def _exchange(own_slot: int, target: int, luts: bool, flip_flops: bool, slots: Slots) -> None:
    if luts:
        slots.lut[own_slot], slots.lut[target] = slots.lut[target], slots.lut[own_slot]
    if flip_flops:
        slots.flip_flop[own_slot], slots.flip_flop[target] = slots.flip_flop[target], slots.flip_flop[own_slot]


@helper
def _pull(moved: Integers, parts: Parts, pulls: Pulls) -> float:
    cost = 0.0
    for part in moved:
        for k in range(pulls.first[part], pulls.first[part + 1]):
            other = pulls.other[k]
            distance = abs(parts.x[part] - parts.x[other]) + abs(parts.y[part] - parts.y[other])
            cost += pulls.weight[k] * distance
    return cost


@helper
def _boxes(
    moved: Integers,
    from_x: Integers,
    from_y: Integers,
    parts: Parts,
    nets: Nets,
    touched: Integers,
    boxes: Integers,
    row: Integers,
) -> int:
    """How many nets have parts that have moved from there; which in ``touched``, and the boxes that they have now.

    ``row`` has EMPTY for each net, before and after.
    """
    count = 0
    for m in range(len(moved)):
        part = moved[m]
        for k in range(nets.first_of_part[part], nets.first_of_part[part + 1]):
            net = nets.of_part[k]
            if row[net] == EMPTY:
                row[net], touched[count] = count, net
                _copy(nets.box, net, boxes, count)
                count += 1
            own, box = row[net], nets.box[net]
            if box[0] < from_x[m] < box[1] and box[2] < from_y[m] < box[3]:
                west, east = min(boxes[own, 0], parts.x[part]), max(boxes[own, 1], parts.x[part])
                north, south = min(boxes[own, 2], parts.y[part]), max(boxes[own, 3], parts.y[part])
            else:
                west = east = parts.x[part]
                north = south = parts.y[part]
                for n in range(nets.first[net], nets.first[net + 1]):
                    other = nets.part[n]
                    west, east = min(west, parts.x[other]), max(east, parts.x[other])
                    north, south = min(north, parts.y[other]), max(south, parts.y[other])
            boxes[own, 0], boxes[own, 1], boxes[own, 2], boxes[own, 3] = west, east, north, south
    for n in range(count):
        row[touched[n]] = EMPTY
    return count


@helper
def _copy(boxes: Integers, number: int, others: Integers, other: int) -> None:
    """Writes one of the boxes over one of the others, side by side: a row assigned at once is allocated in between."""
    for side in range(4):
        others[other, side] = boxes[number, side]


@helper
def _cost(boxes: Integers, number: int, excess: Floats) -> float:
    west, east = boxes[number, 0], boxes[number, 1] + 1
    north, south = boxes[number, 2], boxes[number, 3] + 1
    over = excess[east, south] - excess[west, south] - excess[east, north] + excess[west, north]
    return (east - west + south - north - 2) * (1 + over / ((east - west) * (south - north)))
