"""A run in a worker: a workload on a design."""

from __future__ import annotations

import io
import resource
import traceback
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass

from sley.abi.errors import SleyError
from sley.explore.costs.cost import cost_of, plain
from sley.explore.costs.workload import Workload
from sley.explore.space.space import Design
from sley.explore.sweep.journal import DONE, FAILED, Run


@dataclass(frozen=True)
class Task:
    """What is to be run. ``workload``: its name."""

    key: str
    workload: str
    design: Design


def run_task(task: Task, workloads: Mapping[str, Workload]) -> Run:
    """Never raises an error of the design: that is its result."""
    began = _seconds()
    try:
        workload, design = workloads[task.workload], task.design
        with redirect_stderr(io.StringIO()):  # what is compiled for each chip is no news in a sweep
            found = plain(cost_of(workload, design.config, design.schedule_of(workload), design.timing))
    except SleyError as error:
        return Run(task.key, task.workload, FAILED, f"{error}", seconds=_seconds() - began)
    except Exception as error:  # of any kind: it is the result of one design, and others go on
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
        return Run(task.key, task.workload, FAILED, reason, seconds=_seconds() - began)
    return Run(task.key, task.workload, DONE, cost=found, seconds=_seconds() - began)


def _seconds() -> float:
    """Of processors, those of compilers that were called too."""
    own, called = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(own.ru_utime + own.ru_stime + called.ru_utime + called.ru_stime, 2)
