"""A sweep: rounds of a search, run where there are workers, kept in a journal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sley.abi.config import ConfigError
from sley.explore.costs.cost import Cost, key_of, of_plain
from sley.explore.search.search import Search
from sley.explore.space.space import Design, Point, Space
from sley.explore.sweep.journal import DONE, FAILED, INFEASIBLE, Journal, Run
from sley.explore.sweep.objectives import OBJECTIVES
from sley.explore.sweep.task import Task
from sley.explore.sweep.workers import Workers
from sley.sim.build.cache import digest


@dataclass(frozen=True)
class Outcome:
    """A design of a sweep. ``objectives``: its numbers by name, none unless ``status`` is "done". ``costs``: by
    workload."""

    point: Point
    design: Design | None
    status: str
    reason: str
    costs: dict[str, Cost]
    objectives: dict[str, float]


class Sweep:
    """Runs a search through a space.

    Parameters
    ----------
    space, objectives: what is searched, and the names of what is to be small.
    journal: finds what ran before, keeps what runs now.
    workers: who runs.
    retry: whether what failed before runs again.
    ended: is called with each run that ends, and how many of its round are left.
    """

    def __init__(
        self,
        space: Space,
        objectives: Sequence[str],
        journal: Journal,
        workers: Workers,
        retry: bool = False,
        ended: Callable[[Run, int], None] = lambda run, left: None,
    ) -> None:
        self.space, self.objectives, self.journal = space, tuple(objectives), journal
        self._workers, self._retry, self._ended = workers, retry, ended
        self._tried: set[str] = set()
        self.outcomes: list[Outcome] = []

    def run(self, search: Search) -> list[Outcome]:
        """All designs that the search chooses, in its order."""
        for points in search.rounds():
            designs = [self._design(point) for point in points]
            self._cost([task for design in designs if isinstance(design, Design) for task in self._tasks(design)])
            found = [self._outcome(point, design) for point, design in zip(points, designs, strict=True)]
            self.outcomes += found
            search.costs([tuple(one.objectives.values()) if one.status == DONE else None for one in found])
        return self.outcomes

    def _design(self, point: Point) -> Design | str:
        """The design at a point, or why no chip can be it."""
        try:
            return self.space.design(point)
        except ConfigError as error:
            key = digest(INFEASIBLE, f"{self.space.base!r}", repr(point))
            if key not in self.journal.runs:
                self.journal.add(Run(key, "", INFEASIBLE, f"{error}"))
            return f"{error}"

    def _tasks(self, design: Design) -> list[Task]:
        return [
            Task(key_of(workload, design.config, design.schedule_of(workload), design.timing), workload.name, design)
            for workload in self.space.workloads
        ]

    def _cost(self, tasks: Sequence[Task]) -> None:
        """Runs those of which nothing is known, each once."""
        again = {FAILED} if self._retry else set()
        fresh = {
            task.key: task
            for task in tasks
            if task.key not in self._tried
            and (task.key not in self.journal.runs or self.journal.runs[task.key].status in again)
        }
        self._tried |= set(fresh)
        left = len(fresh)
        for run in self._workers.run(list(fresh.values())):
            self.journal.add(run)
            left -= 1
            self._ended(run, left)

    def _outcome(self, point: Point, design: Design | str) -> Outcome:
        if isinstance(design, str):
            return Outcome(point, None, INFEASIBLE, design, {}, {})
        runs = [self.journal.runs[task.key] for task in self._tasks(design)]
        failed = [run for run in runs if run.status != DONE]
        if failed:
            return Outcome(point, design, FAILED, f"{failed[0].workload}: {failed[0].reason}", {}, {})
        costs = {run.workload: of_plain(design.config, run.cost) for run in runs}
        objectives = {name: OBJECTIVES[name](design.config, costs) for name in self.objectives}
        return Outcome(point, design, DONE, "", costs, objectives)
