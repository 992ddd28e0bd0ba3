"""Random use of a driver by several clients, against a model of what it promises them."""

from collections.abc import Callable
from typing import Any

import pytest
from client_steps import ClientSteps
from closing_rules import ClosingRules
from fence_rules import FenceRules
from heap_rules import HeapRules
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from memory_rules import MemoryRules
from recording_rules import RecordingRules
from reset_rules import ResetRules
from sharing_rules import SharingRules

from sley.hw.testing.coverage import Coverage

STEPS = 50
SETTINGS = settings(
    derandomize=True,  # the same scripts in every run
    database=None,
    deadline=None,
    stateful_step_count=STEPS,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
    phases=[Phase.generate, Phase.shrink],
)
ERRORS = """
    BadRequest BufferFreed CallbackFailed ContextClosed ContextHang
    ContextReset DeviceReset NoRoom QueueFull WaitTimeout
"""
FAULTS = "BAD_FIELD BAD_PACKET PAGE_FAULT PERMISSION"
RULES = """
    step|open|queue|allocate|map again|release|map freed|unmap|unmap in flight|write|heap|heap free|when done
    trim|export|import|import refused|give up|revoke|fill|copy|nop|launch|bad|batch|wait|opened by the host
    opened by a queue|callback|callback that raises|bad request|put behind a gate|fence|queue waits for a fence
    fence of another client|export fence|queue waits for an imported fence|fence of a client that is gone
    revoke fences|fence elsewhere|waits for a fence|waits for a lost fence|waits too short|hang|record
    submit recording|submit and change|patch|close recording|reset of a client|reset of the chip|dump
    dump of a full ring|coalesce|close|use of a closed client
"""
COVERAGE = Coverage(
    "random use of a driver",
    {
        "rule": [rule.strip() for rule in RULES.strip().replace("\n", "|").split("|")],
        "error": [*ERRORS.split(), *(f"QueueFault {code}" for code in FAULTS.split())],
    },
)
ClientSteps.coverage = COVERAGE


class Work(FenceRules, RecordingRules, ResetRules):
    """Queues, and what is in flight on them."""


class Memory(MemoryRules, HeapRules, SharingRules, ClosingRules):
    """Memory, and whose it was before."""


class Shared(MemoryRules, SharingRules, FenceRules, ClosingRules):
    """Memory and fences that several clients have, with work in flight."""


class Everything(Work, Memory):
    """All rules."""


class Posted(Everything):
    """On a bus that posts writes."""

    posted = 1


@pytest.mark.parametrize(
    ("machine", "scripts"),
    [
        *((Work, 15), (Memory, 15), (Shared, 15), (Everything, 20), (Posted, 10)),
        *(pytest.param(machine, 80, marks=pytest.mark.slow) for machine in (Work, Memory, Shared, Everything)),
    ],
)
def test_random_use(machine: type[Any], scripts: int) -> None:
    run_state_machine_as_test(machine, settings=settings(SETTINGS, max_examples=scripts))


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
