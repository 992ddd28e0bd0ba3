"""Who runs tasks: processes of this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol

from sley.driver import BadRequest
from sley.explore.costs.workload import Workload
from sley.explore.sweep.journal import FAILED, Run
from sley.explore.sweep.task import Task, run_task

ATTEMPTS = 2
"""Of a task whose process ends without a result, by lack of memory for example."""
_workloads: dict[str, Workload] = {}


class Workers(Protocol):
    """Runs tasks beside each other."""

    def run(self, tasks: Sequence[Task]) -> Iterator[Run]:
        """Their runs, as they end."""
        ...

    def close(self) -> None:
        """Ends them."""
        ...


class Processes:
    """Processes of this machine, started anew if one dies."""

    def __init__(self, workloads: Mapping[str, Workload], count: int) -> None:
        if count < 1:
            raise BadRequest(f"{count} jobs; give 1 or more")
        self._workloads, self._count = dict(workloads), count
        self._pool = self._started()

    def _started(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._count, multiprocessing.get_context("spawn"), _set_workloads, (self._workloads,)
        )

    def _restart(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._pool = self._started()

    def run(self, tasks: Sequence[Task]) -> Iterator[Run]:
        left, lost = list(reversed(tasks)), {task.key: 0 for task in tasks}
        running: dict[Future[Run], Task] = {}
        while left or running:
            try:
                while left and len(running) < self._count:
                    running[self._pool.submit(_run, left[-1])] = left[-1]
                    left.pop()
            except BrokenProcessPool:
                if not running:  # else those that run say so
                    self._restart()
                    continue
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            broken = []
            for future in done:
                task = running.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    broken.append(task)
            if broken:
                broken += running.values()
                running.clear()
                self._restart()
                for task in broken:
                    lost[task.key] += 1
                    if lost[task.key] < ATTEMPTS:
                        left.append(task)
                    else:
                        yield Run(
                            task.key, task.workload, FAILED, f"its process ended {ATTEMPTS} times: out of memory?"
                        )

    def close(self) -> None:
        """What still runs ends at once: nothing of it is kept."""
        running = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()


def _set_workloads(workloads: dict[str, Workload]) -> None:
    _workloads.update(workloads)


def _run(task: Task) -> Run:
    return run_task(task, _workloads)
