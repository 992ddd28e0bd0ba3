"""Dividers and multipliers of smolarith."""

from collections.abc import Callable
from typing import Any

import pytest
from bench import cases, lockstep
from package import Package

div, mul = Package("smolarith.div"), Package("smolarith.mul")

DESIGNS: dict[str, Callable[[], Any]] = {
    "restoring_8": lambda: div.MulticycleDiv(8),
    "non_restoring_16": lambda: div.MulticycleDiv(16, div.Impl.NON_RESTORING),
    "long_divider_12": lambda: div.LongDivider(12),
    "pipelined_1": lambda: mul.PipelinedMul(1),
    "pipelined_32_debug": lambda: mul.PipelinedMul(32, debug=True),
}


MORE: dict[str, Callable[[], Any]] = {
    "restoring_33": lambda: div.MulticycleDiv(33),
    "long_divider_32": lambda: div.LongDivider(32),
    "pipelined_17": lambda: mul.PipelinedMul(17),
    "multicycle_16": lambda: mul.MulticycleMul(16),
    "multicycle_64": lambda: mul.MulticycleMul(64),
}
"""Those that CI has no time for."""


@pytest.mark.parametrize("name", cases(DESIGNS, MORE))
def test_lockstep(name: str) -> None:
    lockstep((DESIGNS | MORE)[name])
