"""An engine for Amaranth's simulator: ``Simulator(design, engine=QuickEngine)`` computes the same, sooner.

- Only statements run whose inputs have changed since they last ran, those behind a clock too.
- Combinational statements run in the order in which they depend on each other: most of them once.
- Inputs that testbenches set one after another settle together, when somebody looks or time goes on.

No glitch shows: between two moments a signal changes once, not once for each of its inputs. A testbench that sets an
input and takes it back without looking in between has not set it.
"""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Const, Signal, Value
from amaranth.hdl._ast import Concat, Slice
from amaranth.hdl._ir import Design
from amaranth.sim._pyeval import eval_assign, eval_value
from amaranth.sim.pysim import PySimEngine

from sley.hw.testing.simulation.groups import groups_of, memories_of
from sley.hw.testing.simulation.state import Slot, State
from sley.hw.testing.simulation.testbench import Testbench, Trigger

Edge = tuple[int, int, list[int]]
"""The groups of a clock domain, from and to, and those of them that run in every cycle."""

REMEMBERED = 1_000
"""Values whose signals are known. A testbench that makes a new one for each assignment does not fill the memory."""


class QuickEngine(PySimEngine):
    def __init__(self, design: Design) -> None:
        self._design = design
        self._state = state = State()
        self._testbenches: list[Any] = []
        self._delta_cycles = 0
        self._vcd_writers: list[Any] = []
        self._active_triggers: set[Any] = set()
        self._processes = set(memories_of(state, design.fragment))
        groups = groups_of(state, design.fragment)
        self._run = [group.run for group in groups]
        self._combinational = sum(group.domain is None for group in groups)
        state.marks.extend(bytes(len(groups)))
        for number, group in enumerate(groups):
            # A register that a testbench has set takes its own value again.
            for signal in {*group.inputs, *(group.outputs if group.domain else ())}:
                state.slots[signal].readers.append(number)
        self._edges: list[Edge] = []
        start = self._combinational
        while start < len(groups):
            domain = groups[start].domain
            stop = next((n for n in range(start, len(groups)) if groups[n].domain is not domain), len(groups))
            edge = (start, stop, [number for number in range(start, stop) if groups[number].speaks])
            state.add_signal_waker(domain.clk, self._waker(edge, int(domain.clk_edge == "pos")))
            if domain.async_reset and domain.rst is not None:
                state.add_signal_waker(domain.rst, self._waker(edge, 1))
            start = stop
        self._slots: dict[int, Slot] = {}
        self._places: dict[int, list[tuple[Slot, int, int]]] = {}
        self._assigned: list[Value] = []
        self._last: list[Any] = []
        self._restart()

    def _waker(self, edge: Edge, level: int) -> Callable[[int, int], bool]:
        def waker(curr: int, next: int) -> bool:
            if next == level and edge not in self._edges:
                self._edges.append(edge)
            return True

        return waker

    def _restart(self) -> None:
        self._state.marks[:] = b"\1" * len(self._run)
        self._edges.clear()
        self._unsettled = False

    def reset(self) -> None:
        super().reset()
        self._restart()

    def add_async_testbench(self, simulator: Any, process: Any, *, background: bool) -> None:
        self._testbenches.append(Testbench(self._design, self, process, testbench=True, background=background))

    def add_trigger_combination(self, combination: Any, *, oneshot: bool) -> Trigger:
        return Trigger(self, combination, self._active_triggers, oneshot=oneshot)

    def get_value(self, expr: Any) -> int:
        if self._unsettled:
            self.settle()
        return self._value(expr)

    def _value(self, expr: Any) -> int:
        kind = type(expr)
        if kind is Signal:
            slot = self._slots.get(id(expr))
            if slot is None:  # the state keeps the signal, and with it its id
                slot = self._slots[id(expr)] = self._state.slots[self._state.get_signal(expr)]
            value: int = slot.curr
        elif kind is Const:
            value = expr.value
        elif kind is Slice:
            value = self._value(expr.value) >> expr.start & (1 << expr.stop - expr.start) - 1
        else:
            cast = Value.cast(expr)
            value = eval_value(self._state, cast) if cast is expr else self._value(cast)
        return value

    def set_value(self, expr: Any, value: int) -> None:
        value_expr = Value.cast(expr)
        places = self._places.get(id(value_expr)) or self._found(value_expr)
        for slot, start, mask in places:
            slot.update(value >> start & mask)
        if not places:
            eval_assign(self._state, value_expr, value)

    def _found(self, expr: Value) -> list[tuple[Slot, int, int]]:
        """Where the bits of unsigned signals side by side go, for the next time too; nothing for what is otherwise."""
        parts = expr.parts if type(expr) is Concat else (expr,)
        places: list[tuple[Slot, int, int]] = []
        start = 0
        for part in parts:
            if type(part) is not Signal or part.shape().signed:
                return []
            slot = self._state.slots[self._state.get_signal(part)]
            if slot.is_comb or any(slot is other for other, *_ in places):
                return []
            places.append((slot, start, (1 << len(part)) - 1))
            start += len(part)
        if len(self._assigned) == REMEMBERED:
            self._assigned.clear()
            self._places.clear()
        self._assigned.append(expr)  # as long as it is here no other one has its id
        self._places[id(expr)] = places
        return places

    def step_design(self) -> None:
        """A testbench has set something."""
        self._unsettled = True

    def settle(self) -> None:
        """Runs what is to run until nothing changes."""
        self._unsettled = False
        run, marks, pending, edges = self._run, self._state.marks, self._state.pending, self._edges
        processes, combinational, find = self._processes, self._combinational, marks.find
        while True:
            # What follows a clock, or looks at its edge, sees what was before it.
            for trigger in self._active_triggers:
                trigger.run()
            self._active_triggers.clear()
            for process in processes:
                if process.runnable:
                    process.runnable = False
                    process.run()
            for start, stop, always in edges:
                for number in always:
                    marks[number] = 1
                number = find(1, start, stop)
                while number >= 0:
                    marks[number] = 0
                    run[number]()
                    number = find(1, number + 1, stop)
            edges.clear()
            for slot in pending:
                slot.commit()
            pending.clear()
            while (number := find(1, 0, combinational)) >= 0:  # again where they go in circles
                while number >= 0:
                    marks[number] = 0
                    run[number]()
                    number = find(1, number, combinational)
            if not (self._active_triggers or edges or any([process.runnable for process in processes])):
                break
        self._delta_cycles += 1
        if self._vcd_writers:
            self._show()

    def advance(self) -> bool:
        self.settle()
        runnable = True
        while runnable:
            for testbench in self._testbenches:
                if testbench.runnable:
                    testbench.runnable = False
                    testbench.run()
            if self._unsettled:
                self.settle()
            runnable = any([testbench.runnable for testbench in self._testbenches])
        self._state.timeline.advance()
        return any([one.critical for one in (*self._processes, *self._testbenches)])

    def write_vcd(self, **options: Any) -> Any:
        self._last = [self._contents(slot) for slot in self._state.slots]
        return super().write_vcd(**options)

    def _contents(self, slot: Any) -> Any:
        return slot.curr if isinstance(slot, Slot) else list(slot.data)

    def _show(self) -> None:
        """Writes what is other than it was."""
        for place, slot in enumerate(self._state.slots):
            before: Any = self._last[place] if place < len(self._last) else None
            now = self._contents(slot)
            for writer in self._vcd_writers if now != before else ():
                moment = self._now_plus_deltas(writer.fs_per_delta)
                if isinstance(slot, Slot):
                    writer.update_signal(moment, slot.signal)
                else:
                    for row, value in enumerate(now):
                        if value != before[row]:
                            writer.update_memory(moment, slot.memory, row)
            self._last[place : place + 1] = [now]
