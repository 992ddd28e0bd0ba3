"""The registers and memories of Amaranth's own simulator by the names that they have in RTLIL."""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Signal
from same_names import same_names


class PysimNames:
    """Names in an Amaranth ``Design`` that was prepared for simulation.

    ``top`` is the name of the RTLIL's top module, which is the fragment ``depth`` levels below that of the simulator.
    """

    def __init__(self, design: Any, top: str, depth: int = 0) -> None:
        self._design, self._top, self._depth = design, top, depth

    def _fragments(self) -> Iterator[tuple[Any, Any]]:
        for fragment, info in self._design.fragments.items():
            if len(info.name) > self._depth:
                yield fragment, info

    def _scope(self, name: tuple[str, ...]) -> str:
        return ".".join((self._top, *name[1 + self._depth :]))

    def registers(self) -> Iterator[tuple[str, Signal]]:
        """Every signal that a clock changes."""
        for fragment, info in self._fragments():
            for domain, statements in fragment.statements.items():
                if domain == "comb":
                    continue
                for statement in statements:
                    for signal in statement._lhs_signals():
                        yield f"{self._scope(info.name)}.{info.signal_names[signal]}", signal
        yield from self.read_data()

    def read_data(self) -> Iterator[tuple[str, Signal]]:
        """The data of synchronous read ports."""
        for fragment, info in self._fragments():
            for port in getattr(fragment, "_read_ports", ()):
                if port._domain != "comb":
                    owner = self._design.fragments[info.parent]
                    yield f"{self._scope(owner.name)}.{owner.signal_names[port._data]}", port._data

    def memories(self) -> Iterator[tuple[str, Any]]:
        for fragment, info in self._fragments():
            if hasattr(fragment, "_read_ports"):
                yield self._scope(info.name), fragment._data

    def signals(self) -> Iterator[tuple[str, Signal]]:
        """Every named signal: the fast engine may call a register as a signal that always equals it."""
        for _, info in self._fragments():
            for signal, name in info.signal_names.items():
                yield f"{self._scope(info.name)}.{name}", signal


def matched(signals: dict[str, Any], wanted: set[str]) -> dict[str, Any]:
    """Signals by the names of the RTLIL."""
    return {new: signals[old] for old, new in same_names(signals, wanted).items()}
