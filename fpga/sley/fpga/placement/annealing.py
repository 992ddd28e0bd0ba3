"""Anneals a placement: its wires become shorter, and lead around where they are crowded."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sley.fpga.placement.arrangement import Arrangement
from sley.fpga.placement.delays import Delays, Floats
from sley.fpga.placement.exchanges import DRAWS, NEAR, Pulls, exchange, pulls
from sley.fpga.placement.placement import Placement

HOT, COLD, COOLING = 3.0, 0.15, 0.87
"""The first temperature, in tiles of wire; the last but 0; and each as a share of the one before."""
REACH, NARROWING = 10, 0.8
"""Columns and rows in which a place is looked for when it is hot, and to which power of the temperature that becomes
less."""
ROUNDS, TRIES, LASTS = 12, 10, 4
"""At each temperature, so many rounds of so many tries for each part that moves; crowding is counted anew in each, the
delays once in so many."""
ROOM, CROWDED, COLDEST = 87.0, 5.0, 0.25
"""Wires through a tile of which there is no need to be fewer; how many times its length a wire costs more where there
are twice as many, at a temperature of 1, and inversely so at others, but for those below the last: among costs that are
far above the temperature, nothing moves."""
TIGHT = 0.01
"""Wires are tight if a larger share of all is more than there is room for as nextpnr has placed them."""
SCARCE, WARM, SLOWLY = 0.025, 1.5, 30
"""Wires are scarce if a larger share is still when they are annealed; then it cools again, from this temperature,
with so many rounds at each."""
SQUARE = 5
"""Columns and rows about a tile whose mean is what it counts as."""
LATE, LATENESS, PULL = 0.6, 4, 5.0
"""What is on paths longer than this share of the longest is pulled together, by this power of how much longer they are:
on the longest a tile between costs so many tiles of wire more."""
MEMORY, LEAST = 0.5, 0.02
"""The share of it that is of the delays before, and the least of it, of the longest's, that counts."""
CELLS, TREE = (3, 5, 10, 20, 30, 40, 50), (1.0, 1.15, 1.45, 1.89, 2.23, 2.54, 2.79)
"""A net of so many cells takes so many times half the perimeter of their bounding box, in wires: C. E. Cheng, "RISA:
accurate and efficient placement routability modeling", ICCAD 1994."""


@dataclass(frozen=True)
class Annealing:
    """Tiles of wire before and after, half the perimeter of each net's bounding box, and whether wires are scarce."""

    before: int
    after: int
    scarce: bool


def anneal(placement: Placement) -> Annealing:
    """Exchanges LUTs and flip-flops at random, and ever less what makes wires longer; the same placement gives the same
    result.

    A wire costs its length, more, the more crowded the tiles are through which it may lead, and more on long paths:
    nextpnr's placers leave many cells far from their nets on a device that is nearly full, and mind no crowding, and
    its router takes ever longer where wires run out. S. Kirkpatrick et al., "Optimization by simulated annealing",
    Science 220, 1983.
    """
    arrangement = Arrangement(placement)
    annealing = _Annealing(arrangement, Delays(placement))
    before = arrangement.length
    annealing.cool(HOT, ROUNDS)
    scarce = excess(arrangement) > SCARCE
    if scarce:
        annealing.cool(WARM, SLOWLY)
    arrangement.finish()
    return Annealing(before, arrangement.length, scarce)


def tight(placement: Placement) -> bool:
    """Whether annealing is worth its time: where wires suffice, the router takes as many steps without."""
    return excess(Arrangement(placement)) > TIGHT


def crowding(arrangement: Arrangement) -> Floats:
    """Wires through each tile, column by column, before they are routed: each net's, spread over the box about it, and
    of that the mean of a square of tiles."""
    west, east, north, south = arrangement.nets.box.T
    wires = (east - west + south - north) * np.interp(arrangement.sizes, CELLS, TREE)
    wires /= (east - west + 1) * (south - north + 1)
    columns, rows = arrangement.slots.first.shape
    corners = np.zeros((columns + 1, rows + 1))  # their sums from the north-west on are the wires of the tiles
    for x, y, sign in ((west, north, 1), (east + 1, north, -1), (west, south + 1, -1), (east + 1, south + 1, 1)):
        np.add.at(corners, (x, y), sign * wires)
    tiles = np.pad(_sums(corners)[:-1, :-1], SQUARE // 2)
    made: Floats = sliding_window_view(tiles, (SQUARE, SQUARE)).mean((2, 3))
    return made


def excess(arrangement: Arrangement) -> float:
    """Which share of all wires is more than there is ``ROOM`` for, tile by tile."""
    wires = crowding(arrangement)
    return float(np.maximum(0, wires - ROOM).sum() / max(wires.sum(), 1))


class _Annealing:
    def __init__(self, arrangement: Arrangement, delays: Delays) -> None:
        self._arrangement, self._delays = arrangement, delays
        self._late = np.zeros(len(delays.source))
        self._random = np.random.default_rng(1)

    def cool(self, temperature: float, rounds: int) -> None:
        """From a temperature to 0."""
        while temperature > COLD:
            self._at(temperature, rounds)
            temperature *= COOLING
        self._at(0.0, rounds)

    def _at(self, temperature: float, rounds: int) -> None:
        """As many tries as there are for a temperature."""
        arrangement = self._arrangement
        parts, slots, nets = arrangement.parts, arrangement.slots, arrangement.nets
        reach = max(NEAR, round(REACH * (temperature / HOT) ** NARROWING))
        for number in range(rounds):
            if number % LASTS == 0:
                pulled = self._pulls()
            over = np.maximum(0, crowding(arrangement) / ROOM - 1) * CROWDED / max(temperature, COLDEST)
            before = _sums(np.pad(over, ((1, 0), (1, 0))))
            draws = self._random.random((TRIES * parts.movable, DRAWS), np.float32)
            exchange(parts, slots, nets, pulled, before, temperature, reach, draws)

    def _pulls(self) -> Pulls:
        """Between what is on long paths, as they are now."""
        self._arrangement.follow()
        delays, part = self._delays, self._arrangement.of_cell
        delays.analyse()
        late = delays.wired * np.maximum(0, delays.path_delays() - LATE * delays.critical)
        self._late = MEMORY * self._late + (1 - MEMORY) * (late / (late.max(initial=0) or 1)) ** LATENESS
        counts = self._late > LEAST
        ends = np.stack([part[delays.source], part[delays.sink]])[:, counts]
        return pulls(len(self._arrangement.parts.x), ends, PULL * self._late[counts])


def _sums(tiles: Floats) -> Floats:
    """Of all tiles up to each column and row."""
    made: Floats = tiles.cumsum(0).cumsum(1)
    return made
