"""Testbenches of ``QuickEngine``: what they wait for and set, with less of what Amaranth looks up each time."""

from typing import Any

from amaranth.hdl import ShapeCastable, Signal
from amaranth.hdl._ast import Concat, Slice
from amaranth.sim._async import AsyncProcess, DelayTrigger, EdgeTrigger, TestbenchContext
from amaranth.sim.pysim import _PyTriggerState

PLAIN = (Signal, Concat, Slice)


class Trigger(_PyTriggerState):
    """What is waited for: which of the results are values, and of what shape, is found once."""

    def __init__(self, engine: Any, combination: Any, pending: Any, *, oneshot: bool) -> None:
        super().__init__(engine, combination, pending, oneshot=oneshot)
        self._wanted = [
            (trigger, None, None)
            if isinstance(trigger, EdgeTrigger | DelayTrigger)
            else (trigger, trigger.value, trigger.shape.from_bits if isinstance(trigger.shape, ShapeCastable) else None)
            for trigger in combination._triggers
        ]

    def compute_result(self) -> None:
        get, hit = self._engine.get_value, self._triggers_hit
        result: list[Any] = []
        for trigger, value, from_bits in self._wanted:
            if value is None:
                result.append(trigger in hit)
            else:
                result.append(get(value) if from_bits is None else from_bits(get(value)))
        self._result = tuple(result)


class _Context(TestbenchContext):
    def set(self, expr: Any, value: Any) -> None:
        if type(value) is int and type(expr) in PLAIN:
            self._engine.set_value(expr, value)
            self._engine.step_design()
        else:
            super().set(expr, value)


class Testbench(AsyncProcess):
    context: Any

    def reset(self) -> None:
        if type(self.context) is not _Context:
            self.context = _Context(self.context._design, self.context._engine, self)
        super().reset()
