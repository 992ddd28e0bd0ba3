"""The workers of a Dask cluster as those of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from distributed import Client, Worker, WorkerPlugin, as_completed

from sley.driver import BadRequest
from sley.explore.costs.workload import Workload
from sley.explore.sweep.journal import FAILED, Run
from sley.explore.sweep.task import Task, run_task
from sley.sim.build.cache import digest

CONNECT_SECONDS = 20.0
"""To a scheduler."""
_workloads: dict[str, Mapping[str, Workload]] = {}
"""Of each sweep that the worker has runs of."""


class Workloads(WorkerPlugin):
    """Brings the workloads of a sweep to each worker when it starts, also to one that comes later, in place of one that
    died. ``name``: of the sweep, by what is run."""

    def __init__(self, workloads: Mapping[str, Workload]) -> None:
        self.name = digest(*(f"{name}={workload.digest}" for name, workload in sorted(workloads.items())))
        self._workloads = workloads

    def setup(self, worker: Worker) -> None:
        _workloads[self.name] = self._workloads


class Cluster:
    """The workers of a Dask cluster. Sley is installed on each, and each has a cache of its own. Raises ``BadRequest``
    if no scheduler answers."""

    def __init__(self, workloads: Mapping[str, Workload], address: str) -> None:
        try:
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise BadRequest(f"no scheduler of Dask answers at {address}: {error}") from None
        plugin = Workloads(dict(workloads))
        self._client.register_plugin(plugin)
        self._sweep = plugin.name

    def run(self, tasks: Sequence[Task]) -> Iterator[Run]:
        futures = {self._client.submit(_run, task, self._sweep, pure=False): task for task in tasks}
        for future in as_completed(list(futures), loop=self._client.loop):
            task = futures.pop(future)
            error = future.exception()
            yield future.result() if error is None else Run(task.key, task.workload, FAILED, f"its worker: {error}")

    def close(self) -> None:
        self._client.close()


def _run(task: Task, sweep: str) -> Run:
    return run_task(task, _workloads[sweep])
