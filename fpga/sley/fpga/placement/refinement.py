"""Moves what lies on the longest ways of a placement, so that they become shorter."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from sley.fpga.placement.delays import Delays, Floats
from sley.fpga.placement.placement import Chain, Movable, Placement, Slot
from sley.fpga.placement.relaxation import relax
from sley.fpga.placement.view import View

AIM = 0.95
"""What is on ways longer than this share of the longest is moved by itself."""
TOGETHER = (0.93, 0.90)
"""What is on ways longer than this share of the longest is moved together; with the second, four times as many, when
the first is of no more use."""
RESTING = 0.3
"""Share that rests in a round, at random: two that wait for each other would go around in a circle."""
PATIENCE, ROUNDS = 25, 300
"""Rounds without a shorter way, and rounds at all, after which it ends."""
PASSES, LEAST = 12, 0.01
"""Passes of moves together at most, for each share, and by how many nanoseconds the longest way has to become shorter
for another."""
STAYS = 0.75
"""Columns and rows from where it would lie best at which a cell stays."""
LEAVING = 8
"""Others that may have to leave a tile for a cell."""
NEARBY = 6
"""Columns and rows from there in which a place is looked for."""


@dataclass(frozen=True)
class Refinement:
    """Nanoseconds of the longest way before and after, as ``Delays`` counts, and the number of moves."""

    before: float
    after: float
    moves: int


def refine(placement: Placement) -> Refinement:
    """Moves what lies on the longest ways, as long as these become shorter; the same placement gives the same result.

    nextpnr's placers mind the length of all wires and leave a few ways much longer than all others. First cells move
    one by one, then together, as ``relax`` says, which also moves carry chains. The best placement of all is kept.
    """
    refining = _Refining(placement)
    before = refining.best
    refining.one_by_one()
    refining.together()
    return Refinement(before, refining.best, refining.moves)


class _Refining:
    def __init__(self, placement: Placement) -> None:
        self._placement, self._delays = placement, Delays(placement)
        self._views = [View(movable, placement, self._delays) for movable in placement.movables]
        self._of_cell = {cell: view for view in self._views for cell in view.movable.cells}
        self._delays.analyse()
        self.best = self._delays.longest
        self._kept = placement.places()
        self.moves = 0

    def one_by_one(self) -> None:
        """In each round, what lies on a way longer than ``AIM`` of the longest goes where the longest of its own ways
        is shortest, and of such places to where its near wires have equal shares: so a flip-flop moves towards the end
        that waits for it. It goes to a free slot, or changes places with what is far from any long way. Nothing moves
        beside what has just moved, as the analysis is of before that.
        """
        random = np.random.default_rng(1)
        waited = 0
        for _ in range(ROUNDS):
            aim = AIM * min(self._delays.longest, self.best)
            own = self._own(view.movable for view in self._views)
            near = np.nonzero(own > aim)[0]
            resting: set[View] = set()
            for number in near[np.argsort(-own[near], kind="stable")]:
                if self._views[number] in resting or random.random() < RESTING:
                    continue
                for moved in self._move(self._views[number], aim, resting):
                    resting.update(self._of_cell[cell] for cell in moved.neighbours if cell in self._of_cell)
                    self.moves += 1
            waited = 0 if self._keep() else waited + 1
            if waited > PATIENCE:
                break
        self._restore()

    def together(self) -> None:
        """In each pass, all that lies on a way longer than ``TOGETHER`` of the longest goes towards where all of it
        together would lie best. What finds no place near there stays; for what remains this is then found again, with
        the others where they are now.
        """
        for share in TOGETHER:
            for _ in range(PASSES):
                before = self.best
                self._pass(share * before)
                if self.best > before - LEAST:
                    break

    def _pass(self, limit: float) -> None:
        """Moves all that lies on a way longer than the limit."""
        settled: set[Movable | Chain] = set()
        while True:
            parts: list[Movable | Chain] = [*self._placement.movables, *self._placement.chains]
            own = self._own(parts)
            chosen = [parts[k] for k in np.nonzero(own > limit)[0] if parts[k] not in settled]
            best = relax(self._placement, self._delays, chosen, limit)
            aims = list(self._displaced(chosen, best.x, best.y))
            if not aims:
                break
            aims = [aim for aim in aims if self._is_choosy(aim[0])] or aims
            aims.sort(key=lambda aim: -self._own([aim[0]])[0])
            settled.update(part for part, *_ in aims)
            busy = {cell for part in (*chosen, *settled) for cell in part.cells}
            for part, x, y in aims:
                if isinstance(part, Chain):
                    self.moves += self._carry(part, x, y, best.longest, busy)
                else:
                    self.moves += self._approach(part, x, y, best.longest, busy)
            self._keep()
        self._restore()

    def _is_choosy(self, part: Movable | Chain) -> bool:
        """Whether it finds a place in few tiles alone."""
        return isinstance(part, Chain) or part.flip_flop is not None

    def _displaced(
        self, parts: list[Movable | Chain], xs: Floats, ys: Floats
    ) -> Iterator[tuple[Movable | Chain, float, float]]:
        """Those that do not lie where they would lie best, with that."""
        for part, x, y in zip(parts, xs, ys, strict=True):
            if self._away(part, float(x), float(y)) >= STAYS:
                yield part, float(x), float(y)

    def _away(self, part: Movable | Chain, x: float, y: float) -> float:
        first = part.cells[0]
        return float(abs(self._placement.x[first] - x) + abs(self._placement.y[first] - y))

    def _nearer(self, part: Movable | Chain, x: float, y: float) -> Iterator[tuple[int, int]]:
        """Tiles near there, the nearest first, that are nearer than where it lies."""
        here = self._away(part, x, y)
        return ((column, row) for away, column, row in self._near(x, y) if away < here)

    def _near(self, x: float, y: float) -> list[tuple[float, int, int]]:
        """Tiles of logic near there, the nearest first, with how far they are away."""
        near = self._placement.logic_near(round(x), round(y), NEARBY)
        return sorted((abs(column - x) + abs(row - y), column, row) for column, row in near)

    def _own(self, parts: Iterable[Movable | Chain]) -> Floats:
        """The longest way of each of these."""
        longest = np.maximum(self._delays.end, self._delays.arrival + self._delays.departure)
        return np.array([max(longest[cell] for cell in part.cells) for part in parts])

    def _keep(self) -> bool:
        """Analyses, and keeps the placement if it is the best."""
        self._delays.analyse()
        if self._delays.longest >= self.best:
            return False
        self.best, self._kept = self._delays.longest, self._placement.places()
        return True

    def _restore(self) -> None:
        self._placement.restore(self._kept)
        self._delays.analyse()

    def _move(self, view: View, aim: float, resting: set[View]) -> tuple[View, ...]:
        """Moves one to the best place that it can have; what has moved then, with what it has changed places with."""
        placement, here = self._placement, view.place
        for there in view.better(aim):
            slot = placement.slot(view.movable, *there)
            if slot:
                placement.move(view.movable, *there, slot)
                return (view,)
            for movable in placement.alike(view.movable, *there):
                other = self._of_cell[movable.cells[0]]
                beside = other in resting or any(cell in view.neighbours for cell in movable.cells)
                if not beside and other.longest_at(*here) <= aim:
                    placement.exchange(view.movable, movable)
                    return view, other
        return ()

    def _approach(self, movable: Movable, x: float, y: float, limit: float, busy: set[int]) -> bool:
        """Moves one as near to a place as it can; whether it could. What is ``busy`` does not make room."""
        placement = self._placement

        def may_leave(others: list[Movable]) -> bool:
            return len(others) <= LEAVING and not any(cell in busy for other in others for cell in other.cells)

        here = self._of_cell[movable.cells[0]].place
        for there in self._nearer(movable, x, y):
            slot = placement.slot(movable, *there)
            if slot:
                placement.move(movable, *there, slot)
                return True
            for other in placement.alike(movable, *there):
                cell = other.cells[0]
                if cell not in busy and self._of_cell[cell].longest_at(*here) <= limit:
                    placement.exchange(movable, other)
                    return True
            rooms = [(len(others), slot, others) for slot, others in placement.slots_of(movable, *there)]
            for _, slot, others in sorted(rooms, key=lambda room: room[0]):
                if may_leave(others) and self._make_room(others, there[0], there[0], there[1], limit):
                    placement.move(movable, *there, slot)
                    return True
        return False

    def _carry(self, chain: Chain, x: float, y: float, limit: float, busy: set[int]) -> bool:
        """The same of a chain: what lies in its way goes to free slots nearby."""
        for there in self._nearer(chain, x, y):
            occupants = self._placement.occupants(chain, *there)
            if occupants is None or any(cell in busy for movable in occupants for cell in movable.cells):
                continue
            if self._make_room(occupants, there[0], there[0] + max(chain.offsets), there[1], limit):
                self._placement.carry(chain, *there)
                return True
        return False

    def _make_room(self, occupants: list[Movable], first: int, last: int, row: int, limit: float) -> bool:
        """Moves these out of a part of a row, or leaves them where they are if one has no place."""
        placement = self._placement
        undo: list[tuple[Movable, tuple[int, int], Slot]] = []
        for movable in occupants:
            view = self._of_cell[movable.cells[0]]
            here = view.place
            for _, x, y in self._near(*here):
                if y == row and first <= x <= last:
                    continue
                slot = placement.slot(movable, x, y)
                if slot and view.longest_at(x, y) <= limit:
                    undo.append((movable, here, placement.slot_of(movable.cells[0])))
                    placement.move(movable, x, y, slot)
                    break
            else:
                for moved, place, left in reversed(undo):
                    placement.move(moved, *place, left)
                return False
        return True
