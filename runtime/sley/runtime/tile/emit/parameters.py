"""Parameters of the units, written only when they change, and outside of loops that do not change them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sley.abi.faults import Unit
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register, Value
from sley.runtime.tile.ir import Op

Key = tuple[Unit, str]
Written = dict[Op, dict[Key, int | None]]
"""What each loop writes: the number if it is one only, else None."""


class Parameters:
    """What parameters hold, as far as it is known here.

    Attributes: ``written``: by loops, noted for the next time that the program is made.

    ``before``: what was noted when it was made before; a loop that writes one number alone to a parameter has it
    written in front.
    """

    def __init__(self, builder: KernelBuilder, before: Written) -> None:
        self._builder, self._before = builder, before
        self._known: dict[Key, int] = {}
        self._others: dict[Key, object] = {}
        self._loops: list[Op] = []
        self.written: Written = {}

    def set(self, unit: Unit, **values: Value) -> None:
        """Writes those that may be different."""
        for name, value in values.items():
            key = unit, name
            number = None if isinstance(value, Register) else value
            for loop in self._loops:
                noted = self.written[loop]
                noted[key] = number if noted.get(key, number) == number else None
            if number is None:
                self._known.pop(key, None)
            elif self._known.get(key) == number:
                continue
            else:
                self._known[key] = number
            self._builder.set(unit, **{name: value})

    def holds(self, unit: Unit, name: str, value: object) -> bool:
        """Whether something else than a parameter, by a name of its own, is there already; from now on it is."""
        held = self._others.get((unit, name)) == value
        self._others[unit, name] = value
        return held

    def drop(self, unit: Unit, name: str) -> None:
        """This one is not known any more."""
        self._others.pop((unit, name), None)

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Around what may be left out: behind it, only what it does not change is known."""
        known, others = dict(self._known), dict(self._others)
        yield
        self._known = {key: number for key, number in self._known.items() if known.get(key) == number}
        self._others = {key: value for key, value in self._others.items() if others.get(key) == value}

    @contextmanager
    def loop(self, op: Op) -> Iterator[None]:
        """Around a loop: its body may begin with what it leaves."""
        before = self._before.get(op)
        same = {key: number for key, number in (before or {}).items() if number is not None}
        for (unit, name), number in same.items():
            self.set(unit, **{name: number})
        stays = {} if before is None else {key: n for key, n in self._known.items() if key not in before or key in same}
        self._loops.append(op)
        self.written[op] = {}
        self._known = dict(stays)
        self._others.clear()
        yield
        self._loops.pop()
        self._known = stays
        self._others.clear()
