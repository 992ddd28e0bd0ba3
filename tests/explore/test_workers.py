"""Sweeps by processes and by Dask: the same bytes, and nothing lost when a worker dies."""

import os
import signal
import time
from pathlib import Path

import pytest

from sley.driver import BadRequest
from sley.explore.results.table import write_tables
from sley.explore.search.searches import search_of
from sley.explore.space.file import read_space
from sley.explore.sweep.journal import Journal
from sley.explore.sweep.sweep import Sweep
from sley.explore.sweep.workers import Processes, Workers

SPACE, OBJECTIVES = read_space(Path(__file__).parent / "space_of_products.py")
WORKLOADS = {workload.name: workload for workload in SPACE.workloads}


def tables(folder: Path, by: Workers, ended: object = lambda run, left: None) -> dict[str, bytes]:
    folder.mkdir()
    journal = Journal(folder / "journal")
    made = Sweep(SPACE, OBJECTIVES, journal, by, ended=ended)  # type: ignore[arg-type]
    outcomes = made.run(search_of("grid", SPACE, len(OBJECTIVES), None, 0))
    by.close()
    journal.close()
    return {path.name: path.read_bytes() for path in write_tables(folder, outcomes)}


@pytest.mark.slow
def test_processes_that_die_are_started_anew(tmp_path: Path) -> None:
    processes = Processes(WORKLOADS, 1)

    def kill(run: object, left: int) -> None:
        if left == 4:
            for process in list(processes._pool._processes.values()):
                os.kill(process.pid, signal.SIGKILL)

    found = tables(tmp_path / "killed", processes, kill)
    assert found["designs.csv"].count(b",done,") == 6
    assert found == tables(tmp_path / "left alone", Processes(WORKLOADS, 2))


@pytest.mark.slow
def test_a_cluster_gives_the_same_bytes_though_a_worker_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra explore is not installed")
    from sley.explore.sweep.cluster import Cluster

    alone = tables(tmp_path / "processes", Processes(WORKLOADS, 2))
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path / "cache"))  # so that everything runs again
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        killed: list[int] = []

        def kill(run: object, left: int) -> None:
            if not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)
                time.sleep(0.1)

        assert tables(tmp_path / "cluster", Cluster(WORKLOADS, cluster.scheduler_address), kill) == alone
        assert killed


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the extra explore is not installed")
    from sley.explore.sweep import cluster

    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.2)
    with pytest.raises(BadRequest, match=r"no scheduler of Dask answers at tcp://127\.0\.0\.1:9"):
        cluster.Cluster(WORKLOADS, "tcp://127.0.0.1:9")
