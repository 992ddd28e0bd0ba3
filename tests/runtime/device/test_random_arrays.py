"""Random use of devices, arrays, streams, events and graphs, against a model of what they promise."""

from collections.abc import Callable
from typing import Any

import pytest
from array_rules import ArrayRules
from array_world import ArrayWorld
from event_rules import EventRules
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from stream_rules import StreamRules

from sley.hw.testing.coverage import Coverage

SETTINGS = settings(
    derandomize=True,  # the same scripts in every run
    database=None,
    deadline=None,
    stateful_step_count=50,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
    phases=[Phase.generate, Phase.shrink],
)
ERRORS = """
    BadRequest BufferFreed ContextClosed ContextHang ContextReset DeviceReset QueueFull ShapeMismatch WaitTimeout
"""
RULES = """
    step|array|view|write|read|free|free a view|free in flight|drop|open|close|use of a closed device
    fill|copy|launch|product|junk|batch|array of another device|put behind a gate|open gate|callback|synchronize|reset
    event|stream waits for an event|event that is over|lost event|waits too short|hang
    capture|launch of a graph|update of a graph|free of a graph
"""
COVERAGE = Coverage(
    "random use of devices",
    {
        "rule": [rule.strip() for rule in RULES.strip().replace("\n", "|").split("|")],
        "error": [*ERRORS.split(), "QueueFault ILLEGAL_INSTRUCTION"],
    },
)
ArrayWorld.coverage = COVERAGE


@pytest.mark.parametrize(
    ("machine", "scripts"),
    [
        *((ArrayRules, 20), (StreamRules, 25), (EventRules, 80)),
        pytest.param(StreamRules, 60, marks=pytest.mark.slow),
        pytest.param(EventRules, 120, marks=pytest.mark.campaign),
    ],
)
def test_random_use(machine: type[Any], scripts: int) -> None:
    run_state_machine_as_test(machine, settings=settings(SETTINGS, max_examples=scripts))


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
