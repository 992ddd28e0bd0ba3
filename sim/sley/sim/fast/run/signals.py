"""Every named signal of a design, and how to compute it from registers, memories and inputs.

The compiled design keeps inputs, outputs, registers and memories; all else exists only while it is needed. ``Signals``
reads the RTLIL again and makes the value of any named wire in a netlist of its own. That takes a second for a large
design, once, and happens when the first such signal is asked for.

Names are those of the hierarchy, joined with dots and beginning with the top module: ``top.core.state``; the fields of
a structure follow its name (``top.core.packet.length``, ``top.core.lanes[3]``). Ports of the top module may also be
named alone.
"""

import difflib
import sys
from collections.abc import Iterable, Mapping

from sley.sim.errors import FastError
from sley.sim.fast.read.flatten import RECURSION, Flattener
from sley.sim.fast.read.hierarchy import Hierarchy
from sley.sim.fast.read.netlist import Netlist
from sley.sim.fast.read.rtlil import parse
from sley.sim.fast.read.wires import CombinationalLoopError


class Signals:
    """The named signals of an RTLIL text; ``top`` is the first module if not named, ``ties`` are constant inputs.

    ``widths`` has the bits of each of them. Building it takes as long as parsing; values are made on demand.
    """

    def __init__(self, rtlil: str, top: str | None = None, ties: Mapping[str, int] | None = None) -> None:
        modules = parse(rtlil)
        self.top = top or next(iter(modules))
        self._hierarchy = Hierarchy(modules, self.top)
        self._ties = ties or {}
        self._split: set[int] = set()
        self._flattener: Flattener | None = None
        self._undriven: set[str] = set()
        self.widths: dict[str, int] = {}
        self._wires: dict[str, int] = {}
        self.scopes: dict[str, tuple[str, str]] = {}
        """Path of the instance and name in it, by name."""
        for instance in self._hierarchy.instances:
            for raw, number in instance.module.index.items():
                if raw.startswith("\\"):
                    wire = instance.module.wires[number]
                    name = f"{instance.path}.{wire.name}"
                    self.widths[name] = wire.width
                    self._wires[name] = instance.base + number
                    self.scopes[name] = (instance.path, wire.name)

    @property
    def netlist(self) -> Netlist:
        """The netlist that the numbers of ``values`` mean. It grows, and a loop through single bits replaces it."""
        return self._made().netlist

    def full_name(self, name: str) -> str:
        """The name from the top module on. Raises ``FastError`` with the nearest names if there is no such signal."""
        if name in self._wires:
            return name
        port = f"{self.top}.{name}"
        if port in self._wires:
            return port
        raise FastError(f"there is no signal {name!r}{nearest(name, self.widths)}")

    def values(self, names: Iterable[str]) -> dict[str, int]:
        """Values of ``netlist`` by name. Raises ``FastError`` for a signal that nothing drives."""
        chosen = list(names)
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, RECURSION))
        try:
            while True:
                try:
                    return {name: self._made().wire(self._wires[self.full_name(name)]) for name in chosen}
                except CombinationalLoopError as loop:
                    new = set(loop.wires) - self._split
                    if not new:
                        wires = ", ".join(self._hierarchy.describe(wire) for wire in dict.fromkeys(loop.wires))
                        raise FastError(f"a combinational loop through {wires}") from None
                    self._split |= new
                    self._flattener = None
        finally:
            sys.setrecursionlimit(limit)

    def driven(self, names: Iterable[str]) -> list[str]:
        """Those of the signals that have a value: not what nothing drives, such as a port left open inside."""
        result = []
        for name in names:
            try:
                if name not in self._undriven:
                    self.values([name])
                    result.append(name)
            except FastError:
                self._undriven.add(name)
                self._flattener = None  # it stopped in the middle of a wire
        return result

    def chosen(self, names: Iterable[str] | None) -> list[str]:
        """Full names of the signals; one that is an instance stands for all below it, and None for all there are."""
        if names is None:
            return list(self.widths)
        result: dict[str, None] = {}
        for name in names:
            below = [other for other in self.widths if other.startswith(f"{name}.")]
            if name not in self._wires and below:
                result.update(dict.fromkeys(below))
            else:
                result[self.full_name(name)] = None
        return list(result)

    def _made(self) -> Flattener:
        if self._flattener is None:
            self._flattener = Flattener(self._hierarchy, self._split, self._ties)
            self._flattener.declare({})
        return self._flattener


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message: names like the wrong one, the same last part first."""
    names = list(known)
    last = name.rpartition(".")[2]
    same = [other for other in names if other.rpartition(".")[2] == last]
    found = list(dict.fromkeys([*same[:3], *difflib.get_close_matches(name, names, 3)]))[:4]
    if not found:
        found = sorted(names)[:8]
    return f"; there are {', '.join(found)} and others" if found else "; the design has none"
