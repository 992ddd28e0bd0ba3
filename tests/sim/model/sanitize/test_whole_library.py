"""All tests of the runtime and of the examples with all sanitizers, which report nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = ("tests/runtime", "tests/examples")
LEFT_OUT = (
    "deadlock",  # programs that cannot end
    "watchdog",
    "memory_statistics",  # red zones count as memory
    "tuned",  # cycles, which the engine has none of
    "cli",  # texts of other engines
)


@pytest.mark.campaign
def test_reports_nothing(run_with: Callable[..., None]) -> None:
    run_with(Path(__file__).with_name("every_engine.py"), TESTS, LEFT_OUT)
