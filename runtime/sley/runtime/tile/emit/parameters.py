"""Parameters of the units, written only when they change."""

from sley.abi.faults import Unit
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register, Value


class Parameters:
    """What parameters hold, as far as it is known here. A loop may come back with others: ``forget`` at its ends."""

    def __init__(self, builder: KernelBuilder) -> None:
        self._builder = builder
        self._known: dict[tuple[Unit, str], object] = {}

    def set(self, unit: Unit, **values: Value) -> None:
        """Writes those that may be different."""
        for name, value in values.items():
            key = unit, name
            if isinstance(value, Register):
                self._known.pop(key, None)
            elif self._known.get(key) == value:
                continue
            else:
                self._known[key] = value
            self._builder.set(unit, **{name: value})

    def holds(self, unit: Unit, name: str, value: object) -> bool:
        """Whether something else than a parameter, by a name of its own, is there already; from now on it is."""
        key = unit, name
        held = self._known.get(key) == value
        self._known[key] = value
        return held

    def drop(self, unit: Unit, name: str) -> None:
        """This one is not known any more."""
        self._known.pop((unit, name), None)

    def forget(self) -> None:
        """Nothing is known any more."""
        self._known.clear()
