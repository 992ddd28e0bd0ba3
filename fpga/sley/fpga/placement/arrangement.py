"""What of a placement may change places, its slots and its nets, as arrays."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from sley.fpga.placement.delays import SOURCES, Integers
from sley.fpga.placement.exchanges import EMPTY, SLOTS, Nets, Parts, Slots
from sley.fpga.placement.placement import FLIP_FLOP, LUT, LUT_RAM, SLICES, WRITE_PORT, Placement, Slot


class Arrangement:
    """``parts``, ``slots`` and ``nets`` of a placement, to be exchanged there; then ``finish`` makes the placement so.

    ``of_cell`` has the part of each cell, ``sizes`` how many cells each net has. Clocks are no nets here, they have
    wires of their own, and neither is what joins the cells of one part alone.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        movables = placement.movables
        self.of_cell = np.full(len(placement.cells), EMPTY)
        for number, movable in enumerate(movables):
            self.of_cell[list(movable.cells)] = number
        others = np.nonzero(self.of_cell == EMPTY)[0]
        self.of_cell[others] = np.arange(len(movables), len(movables) + len(others))
        self._firsts = [*(movable.cells[0] for movable in movables), *others]
        self.parts, self.slots = self._parts(), self._slots()
        self._fill_slots()
        nets = [(len(cells), sorted(set(self.of_cell[cells].tolist()))) for cells in _cells_of_nets(placement)]
        self.sizes = np.array([size for size, parts in nets if len(parts) > 1])
        self.nets = self._nets([parts for _, parts in nets if len(parts) > 1])

    @property
    def length(self) -> int:
        """Tiles of wire: half the perimeter of each net's bounding box."""
        west, east, north, south = self.nets.box.T
        return int((east - west + south - north).sum())

    def follow(self) -> None:
        """Gives the cells of the placement their columns and rows, as its delays are of these; not yet their slots."""
        self._placement.x, self._placement.y = self.parts.x[self.of_cell], self.parts.y[self.of_cell]

    def finish(self) -> None:
        """Gives the cells of the placement their slots."""
        slots = self.parts.slot[: self.parts.movable].tolist()
        self._placement.rearrange(dict(zip(self._placement.movables, map(self._place, slots), strict=True)))

    def _place(self, slot: int) -> tuple[int, int, Slot]:
        return int(self.slots.x[slot]), int(self.slots.y[slot]), (SLICES[slot % SLOTS // 2], slot % 2)

    def _parts(self) -> Parts:
        placement, movables, count = self._placement, self._placement.movables, len(self._firsts)
        lut, flip_flop = (np.zeros(count, bool) for _ in range(2))
        rules = np.zeros((2, count), np.int64)
        numbers: dict[Hashable, int] = {}
        for cell, kind in enumerate(placement.kinds):
            part = self.of_cell[cell]
            lut[part] |= kind == LUT
            flip_flop[part] |= kind == FLIP_FLOP
            if kind == FLIP_FLOP:
                rules[:, part] = [numbers.setdefault(repr(rule), len(numbers)) for rule in placement.rules[cell]]
        x, y = placement.x[self._firsts], placement.y[self._firsts]
        return Parts(len(movables), x, y, np.full(count, EMPTY), lut, flip_flop, *rules)

    def _slots(self) -> Slots:
        """Of all tiles of logic, nothing in them yet."""
        columns, rows = np.nonzero(self._placement.logic)
        first = np.full(self._placement.logic.shape, EMPTY)
        first[columns, rows] = SLOTS * np.arange(len(columns))
        x, y = np.repeat(columns, SLOTS), np.repeat(rows, SLOTS)
        lut, flip_flop = (np.full(len(x), EMPTY) for _ in range(2))
        return Slots(first, x, y, lut, flip_flop, *(np.ones(len(x), bool) for _ in range(2)))

    def _fill_slots(self) -> None:
        """Puts all that lies in slots there."""
        placement, slots = self._placement, self.slots
        for cell, kind in enumerate(placement.kinds):
            if kind not in (LUT, FLIP_FLOP, WRITE_PORT):
                continue
            tile = slots.first[placement.x[cell], placement.y[cell]]
            if kind == WRITE_PORT or placement.mode(cell) in LUT_RAM:
                slots.accepts_flip_flop[tile : tile + SLOTS] = False
            if kind == WRITE_PORT:
                continue
            (name, half), part = placement.slot_of(cell), self.of_cell[cell]
            slot = tile + 2 * SLICES.index(name) + half
            self.parts.slot[part] = slot
            if kind == FLIP_FLOP:
                slots.flip_flop[slot] = part
                continue
            slots.lut[slot] = part
            slots.accepts_flip_flop[slot] &= not placement.wide(cell)
            if placement.bound(cell):
                slots.accepts_lut[[slot, slot ^ 1]] = False

    def _nets(self, nets: Collection[list[int]]) -> Nets:
        of_part: list[list[int]] = [[] for _ in self._firsts]
        for number, parts in enumerate(nets):
            for part in parts:
                of_part[part].append(number)
        x, y = self.parts.x, self.parts.y
        box = np.array([(x[net].min(), x[net].max(), y[net].min(), y[net].max()) for net in nets])
        return Nets(*_joined(nets), box, *_joined(of_part))


def _joined(lists: Collection[list[int]]) -> tuple[Integers, Integers]:
    """Where each one begins, and where the last one ends; and all of them, one after the other."""
    first = np.concatenate([[0], np.cumsum([len(each) for each in lists])])
    return first, np.array(list(chain(*lists)), np.int64)


def _cells_of_nets(placement: Placement) -> Iterator[list[int]]:
    """The cells of each net."""
    nets: dict[Any, dict[int, None]] = defaultdict(dict)
    for number, cell in enumerate(placement.cells):
        for net in chain.from_iterable(cell["connections"].values()):
            nets[net][number] = None
    for net, cells in nets.items():
        if net in placement.drivers and placement.kinds[placement.drivers[net]] in SOURCES:
            yield list(cells)
