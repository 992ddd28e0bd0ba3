"""Exchanges at random keep nextpnr's rules, what they are told of nets, and the cost that they say."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from placed_design import PlacedDesign, check_moves, random_design

from sley.fpga.placement.arrangement import Arrangement
from sley.fpga.placement.delays import Floats
from sley.fpga.placement.exchanges import DRAWS, EMPTY, NEAR, exchange, pulls
from sley.fpga.placement.placement import Placement

HOT = 1e9


class Exchanged:
    """A design at random, whose parts are exchanged with excess and pulls at random, too."""

    def __init__(self, seed: int) -> None:
        self.before, self.placement = (Placement(random_design(seed).design) for _ in range(2))
        self.arrangement = Arrangement(self.placement)
        self._random = np.random.default_rng(seed)
        count, (columns, rows) = len(self.arrangement.parts.x), self.placement.logic.shape
        self.excess = self._random.random((columns + 1, rows + 1)).cumsum(0).cumsum(1)
        self.excess[0], self.excess[:, 0] = 0, 0
        self.ends, self.weight = self._random.integers(count, size=(2, 50)), self._random.random(50)
        self.pulls = pulls(count, self.ends, self.weight)

    def __call__(self, tries: int, temperature: float, reach: int = 4) -> int:
        return self.by(self._random.random((tries, DRAWS), np.float32), temperature, reach)

    def by(self, draws: Any, temperature: float, reach: int = 4) -> int:
        arrangement = self.arrangement
        parts, slots, nets = arrangement.parts, arrangement.slots, arrangement.nets
        made: int = exchange(parts, slots, nets, self.pulls, self.excess, temperature, reach, draws)
        return made

    @property
    def arrays(self) -> list[Any]:
        """Copies of all that exchanges change."""
        return [array.copy() for array in self._arrays()]

    @arrays.setter
    def arrays(self, arrays: list[Any]) -> None:
        for array, copied in zip(self._arrays(), arrays, strict=True):
            array[...] = copied

    def _arrays(self) -> list[Any]:
        parts, slots, nets = self.arrangement.parts, self.arrangement.slots, self.arrangement.nets
        return [parts.x, parts.y, parts.slot, slots.lut, slots.flip_flop, nets.box]

    @property
    def cost(self) -> float:
        """Counted anew."""
        x, y, (of, other) = self.arrangement.parts.x, self.arrangement.parts.y, self.ends
        pulled = self.weight @ (abs(x[of] - x[other]) + abs(y[of] - y[other]))
        return sum(self._net(*box) for box in self.boxes()) + float(pulled)

    def boxes(self) -> Iterator[tuple[int, int, int, int]]:
        nets, (x, y) = self.arrangement.nets, (self.arrangement.parts.x, self.arrangement.parts.y)
        for first, last in zip(nets.first, nets.first[1:], strict=False):
            parts = nets.part[first:last]
            yield x[parts].min(), x[parts].max(), y[parts].min(), y[parts].max()

    def _net(self, west: int, east: int, north: int, south: int) -> float:
        tiles: Floats = np.diff(np.diff(self.excess, axis=0), axis=1)[west : east + 1, north : south + 1]
        return float((east - west + south - north) * (1 + tiles.mean()))


@pytest.mark.some(6)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("temperature", [0.0, 1.0, HOT])
def test_what_is_exchanged_stays_legal(seed: int, temperature: float) -> None:
    exchanged = Exchanged(seed)
    assert exchanged(20_000, temperature) > 50
    exchanged.arrangement.finish()
    check_moves(exchanged.before, exchanged.placement)


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(6))
def test_boxes_and_slots_are_kept(seed: int) -> None:
    exchanged = Exchanged(seed)
    exchanged(20_000, HOT)
    parts, slots, nets = exchanged.arrangement.parts, exchanged.arrangement.slots, exchanged.arrangement.nets
    assert [tuple(box) for box in nets.box] == list(exchanged.boxes())
    for part, slot in enumerate(parts.slot):
        if slot != EMPTY:
            assert (parts.x[part], parts.y[part]) == (slots.x[slot], slots.y[slot])
            assert not parts.lut[part] or slots.lut[slot] == part
            assert not parts.flip_flop[part] or slots.flip_flop[slot] == part
    for held, kept in ((slots.lut, parts.lut), (slots.flip_flop, parts.flip_flop)):
        assert sorted(held[held != EMPTY]) == np.nonzero(kept)[0].tolist()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_cold_exchanges_never_cost_more(seed: int) -> None:
    """One try at a time; and what is made costs as much less as is found by counting all anew."""
    exchanged = Exchanged(seed)
    before, made = exchanged.cost, 0
    for _ in range(300):
        made += exchanged(1, 0.0)
        now = exchanged.cost
        assert now <= before + 1e-9
        before = now
    assert made > 3


@pytest.mark.slow
def test_exchanges_are_made_with_the_probability_of_their_cost() -> None:
    """Each of the same draws is tried twice, hot and so that some of those that cost more are made."""
    exchanged, temperature, made = Exchanged(1), 3.0, []
    for draws in np.random.default_rng(1).random((400, 1, DRAWS), np.float32):
        before, arrays = exchanged.cost, exchanged.arrays
        exchanged.by(draws, HOT)
        cost = exchanged.cost - before
        exchanged.arrays = arrays
        exchanged.by(draws, temperature)
        if cost > 1e-9:
            made.append(exchanged.cost > before + 1e-9)
            assert made[-1] == (draws[0, 2] < np.exp(-cost / temperature))
        exchanged.arrays = arrays
    assert 3 < sum(made) < len(made) - 3


def test_parts_go_to_tiles_within_reach_or_to_what_they_are_joined_to() -> None:
    """The only part that moves has wires to three places far off, and is at one of the middle columns and rows of
    them, or near where it was."""
    design = PlacedDesign()
    for x, y in np.ndindex(39, 39):
        place = f"X{x + 1}/Y{y + 1}/SLICED.K1"
        design.add(f"fixed{x + 1}_{y + 1}", "TRELLIS_COMB", place, {}, {"BEL": place}, F=f"fixed{x + 1}_{y + 1}")
    design.lut("X20/Y5/SLICEA.K0", "l", "fixed10_30", "fixed18_34", "fixed30_38")
    arrangement = Arrangement(Placement(design.design))
    parts, slots, nets = arrangement.parts, arrangement.slots, arrangement.nets
    none = pulls(len(parts.x), np.zeros((2, 0), np.int64), np.zeros(0))
    reach, seen = 3, set()
    for draws in np.random.default_rng(1).random((300, 1, DRAWS), np.float32):
        was = int(parts.x[0]), int(parts.y[0])
        exchange(parts, slots, nets, none, np.zeros((64, 64)), HOT, reach, draws)
        x, y = int(parts.x[0]), int(parts.y[0])
        near = abs(x - was[0]) <= reach and abs(y - was[1]) <= reach
        seen.add(near)
        middle = any(abs(x - column) <= NEAR for column in (10, 18, was[0], 30))
        assert near or (middle and any(abs(y - row) <= NEAR for row in (30, 34, was[1], 38)))
    assert seen == {False, True}
