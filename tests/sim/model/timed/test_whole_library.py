"""All tests of whole systems, kernels and operators on the chip of twins and the gateware at once."""

from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = ("tests/system", "tests/runtime/kernels", "tests/runtime/nn", "tests/runtime/tile", "tests/examples")
LEFT_OUT = (
    "fuzz",  # their chip is a watched one, which has no twin
    "watched",
    "soak",
    "isolation",
    "test_random_traffic_against_the_model",  # reads what it has not waited for
    "test_a_warm_launch",  # peeks into the gateware
    *("test_element_operators", "test_element_errors", "test_structured_operators"),  # two kernels, thousands of times
    *("test_operator_mistakes", "test_operators_on_chips"),
)


@pytest.mark.campaign
def test_every_cycle_is_the_same(run_with: Callable[..., None]) -> None:
    run_with(Path(__file__).with_name("paired_engine.py"), TESTS, LEFT_OUT)
