"""Moves what lies on the longest paths of a placement, so that they become shorter."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from sley.fpga.placement.delays import Delays, Floats
from sley.fpga.placement.placement import Chain, Movable, Placement, Slot
from sley.fpga.placement.relaxation import relax
from sley.fpga.placement.view import View

SINGLE_SHARE = 0.95
"""What is on paths longer than this share of the longest is moved by itself."""
JOINT_SHARES = (0.93, 0.90)
"""What is on paths longer than this share of the longest is moved together; with the second, four times as many, when
the first is of no more use."""
RESTING = 0.3
"""Share that rests in a round, at random: two that wait for each other would go around in a circle."""
PATIENCE, ROUNDS = 25, 300
"""Rounds without a shorter path, and rounds at all, after which it ends."""
PASSES, LEAST = 12, 0.01
"""Passes of moves together at most, for each share, and by how many nanoseconds the critical path has to become shorter
for another."""
STAYS = 0.75
"""Columns and rows from where it would lie best at which a cell stays."""
LEAVING = 8
"""Others that may have to leave a tile for a cell."""
NEARBY = 6
"""Columns and rows from there in which a place is looked for."""


@dataclass(frozen=True)
class Refinement:
    """Nanoseconds of the critical path before and after, as ``Delays`` counts, and the number of moves."""

    before: float
    after: float
    moves: int


def refine(placement: Placement) -> Refinement:
    """Moves what lies on the longest paths, as long as these become shorter; the same placement gives the same result.

    nextpnr's placers mind the length of all wires and leave a few paths much longer than all others. First cells move
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
        self.best = self._delays.critical
        self._best_places = placement.places()
        self.moves = 0

    def one_by_one(self) -> None:
        """In each round, what lies on a path longer than ``SINGLE_SHARE`` of the longest goes where the longest of its
        own paths is shortest, and of such places to where its near wires have equal shares: so a flip-flop moves
        towards the end that waits for it. It goes to a free slot, or changes places with what is far from any long
        path. Nothing moves beside what has just moved, as the analysis is of before that.
        """
        random = np.random.default_rng(1)
        idle_rounds = 0
        for _ in range(ROUNDS):
            aim = SINGLE_SHARE * min(self._delays.critical, self.best)
            own_delays = self._path_delays(view.movable for view in self._views)
            near = np.nonzero(own_delays > aim)[0]
            resting: set[View] = set()
            for number in near[np.argsort(-own_delays[near], kind="stable")]:
                if self._views[number] in resting or random.random() < RESTING:
                    continue
                for moved in self._move(self._views[number], aim, resting):
                    resting.update(self._of_cell[cell] for cell in moved.neighbours if cell in self._of_cell)
                    self.moves += 1
            idle_rounds = 0 if self._keep_if_best() else idle_rounds + 1
            if idle_rounds > PATIENCE:
                break
        self._restore()

    def together(self) -> None:
        """In each pass, all that lies on a path longer than ``JOINT_SHARES`` of the longest goes towards where all of
        it together would lie best. What finds no place near there stays; for what remains this is then found again,
        with the others where they are now.
        """
        for share in JOINT_SHARES:
            for _ in range(PASSES):
                before = self.best
                self._pass(share * before)
                if self.best > before - LEAST:
                    break

    def _pass(self, limit: float) -> None:
        """Moves all that lies on a path longer than the limit."""
        settled: set[Movable | Chain] = set()
        while True:
            parts: list[Movable | Chain] = [*self._placement.movables, *self._placement.chains]
            own_delays = self._path_delays(parts)
            chosen = [parts[k] for k in np.nonzero(own_delays > limit)[0] if parts[k] not in settled]
            best = relax(self._placement, self._delays, chosen, limit)
            targets = list(self._displaced(chosen, best.x, best.y))
            if not targets:
                break
            targets = [aim for aim in targets if self._is_choosy(aim[0])] or targets
            targets.sort(key=lambda aim: -self._path_delays([aim[0]])[0])
            settled.update(part for part, *_ in targets)
            busy = {cell for part in (*chosen, *settled) for cell in part.cells}
            for part, x, y in targets:
                if isinstance(part, Chain):
                    self.moves += self._move_chain_towards(part, x, y, best.critical, busy)
                else:
                    self.moves += self._move_towards(part, x, y, best.critical, busy)
            self._keep_if_best()
        self._restore()

    def _is_choosy(self, part: Movable | Chain) -> bool:
        """Whether it finds a place in few tiles alone."""
        return isinstance(part, Chain) or part.flip_flop is not None

    def _displaced(
        self, parts: list[Movable | Chain], xs: Floats, ys: Floats
    ) -> Iterator[tuple[Movable | Chain, float, float]]:
        """Those that do not lie where they would lie best, with that."""
        for part, x, y in zip(parts, xs, ys, strict=True):
            if self._distance(part, float(x), float(y)) >= STAYS:
                yield part, float(x), float(y)

    def _distance(self, part: Movable | Chain, x: float, y: float) -> float:
        first = part.cells[0]
        return float(abs(self._placement.x[first] - x) + abs(self._placement.y[first] - y))

    def _nearer(self, part: Movable | Chain, x: float, y: float) -> Iterator[tuple[int, int]]:
        """Tiles near there, the nearest first, that are nearer than where it lies."""
        current = self._distance(part, x, y)
        return ((column, row) for distance, column, row in self._tiles_near(x, y) if distance < current)

    def _tiles_near(self, x: float, y: float) -> list[tuple[float, int, int]]:
        """Tiles of logic near there, the nearest first, with how far they are away."""
        near = self._placement.logic_within(round(x), round(y), NEARBY)
        return sorted((abs(column - x) + abs(row - y), column, row) for column, row in near)

    def _path_delays(self, parts: Iterable[Movable | Chain]) -> Floats:
        """Nanoseconds of the longest path through each of these."""
        delays = np.maximum(self._delays.end, self._delays.arrival + self._delays.departure)
        return np.array([max(delays[cell] for cell in part.cells) for part in parts])

    def _keep_if_best(self) -> bool:
        """Analyses, and keeps the placement if it is the best."""
        self._delays.analyse()
        if self._delays.critical >= self.best:
            return False
        self.best, self._best_places = self._delays.critical, self._placement.places()
        return True

    def _restore(self) -> None:
        self._placement.restore(self._best_places)
        self._delays.analyse()

    def _move(self, view: View, aim: float, resting: set[View]) -> tuple[View, ...]:
        """Moves one to the best place that it can have; what has moved then, with what it has changed places with."""
        placement, current = self._placement, view.place
        for target in view.better(aim):
            slot = placement.slot(view.movable, *target)
            if slot:
                placement.move(view.movable, *target, slot)
                return (view,)
            for movable in placement.interchangeable(view.movable, *target):
                other = self._of_cell[movable.cells[0]]
                beside = other in resting or any(cell in view.neighbours for cell in movable.cells)
                if not beside and other.path_delay_at(*current) <= aim:
                    placement.exchange(view.movable, movable)
                    return view, other
        return ()

    def _move_towards(self, movable: Movable, x: float, y: float, limit: float, busy: set[int]) -> bool:
        """Moves one as near to a place as it can; whether it could. What is ``busy`` does not make room."""
        placement = self._placement

        def may_leave(others: list[Movable]) -> bool:
            return len(others) <= LEAVING and not any(cell in busy for other in others for cell in other.cells)

        current = self._of_cell[movable.cells[0]].place
        for target in self._nearer(movable, x, y):
            slot = placement.slot(movable, *target)
            if slot:
                placement.move(movable, *target, slot)
                return True
            for other in placement.interchangeable(movable, *target):
                cell = other.cells[0]
                if cell not in busy and self._of_cell[cell].path_delay_at(*current) <= limit:
                    placement.exchange(movable, other)
                    return True
            rooms = [(len(others), slot, others) for slot, others in placement.slots_of(movable, *target)]
            for _, slot, others in sorted(rooms, key=lambda room: room[0]):
                if may_leave(others) and self._make_room(others, target[0], target[0], target[1], limit):
                    placement.move(movable, *target, slot)
                    return True
        return False

    def _move_chain_towards(self, chain: Chain, x: float, y: float, limit: float, busy: set[int]) -> bool:
        """The same of a chain: what lies in its way goes to free slots nearby."""
        for target in self._nearer(chain, x, y):
            occupants = self._placement.occupants(chain, *target)
            if occupants is None or any(cell in busy for movable in occupants for cell in movable.cells):
                continue
            if self._make_room(occupants, target[0], target[0] + max(chain.offsets), target[1], limit):
                self._placement.move_chain(chain, *target)
                return True
        return False

    def _make_room(self, occupants: list[Movable], first: int, last: int, row: int, limit: float) -> bool:
        """Moves these out of a part of a row, or leaves them where they are if one has no place."""
        placement = self._placement
        undo: list[tuple[Movable, tuple[int, int], Slot]] = []
        for movable in occupants:
            view = self._of_cell[movable.cells[0]]
            current = view.place
            for _, x, y in self._tiles_near(*current):
                if y == row and first <= x <= last:
                    continue
                slot = placement.slot(movable, x, y)
                if slot and view.path_delay_at(x, y) <= limit:
                    undo.append((movable, current, placement.slot_of(movable.cells[0])))
                    placement.move(movable, x, y, slot)
                    break
            else:
                for moved, place, left in reversed(undo):
                    placement.move(moved, *place, left)
                return False
        return True
