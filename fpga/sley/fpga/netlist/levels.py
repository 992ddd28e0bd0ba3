"""How many LUTs a signal of a netlist passes from one register to the next."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sley.fpga.devices.family import Family, Resources

CARRY_IN = frozenset({"CIN", "CI"})
"""The path along a carry chain is no level; the path into it is one."""
WRITE_SIDE = frozenset({"WD", "DI", "WAD", "WRE", "WCK", "D", "WE", "WCLK", "DIA", "DIB", "DIC", "DID"})
"""Pins of distributed RAM that end at the clock; its data follow the others at once."""
FREE = ("PFUMX", "L6MUX", "MUXF", "MUX2_LUT")
"""Multiplexers inside of a slice, which belong to the LUTs in front of them."""
CARRIES = ("SB_CARRY", "CARRY4", "CARRY8")
"""Carry chains that are counted with the LUTs beside them."""


@dataclass(frozen=True)
class LogicPath:
    """The longest path to an end: LUTs passed, and the names of the register or port where it begins and ends."""

    levels: int
    begin: str
    end: str


@dataclass(frozen=True)
class LogicPaths:
    """All paths of a netlist: how many ends are behind so many LUTs, and one of the longest to each register."""

    ends: Mapping[int, int]
    longest: tuple[LogicPath, ...]

    @property
    def deepest(self) -> int:
        """LUTs on the critical path."""
        return max(self.ends, default=0)


def read_paths(netlist: Path, top: str, family: Family) -> LogicPaths:
    """The paths in a flat netlist of ``family`` as Yosys' ``write_json`` leaves it.

    A path begins and ends at flip-flops, block RAMs, DSP blocks, pins and ports. Each LUT and each entry into a carry
    chain is a level, and an output that comes late (``Family.late``) begins with some; paths without any are left out.
    Raises ``ValueError`` for a combinational loop.
    """
    module = json.loads(netlist.read_text())["modules"][top]
    return _Netlist(module, family).paths()


class _Netlist:
    def __init__(self, module: Mapping[str, Any], family: Family) -> None:
        self._family = family
        invented = "|".join(map(re.escape, {cell["type"] for cell in module["cells"].values()}))
        self._names = _names(module["netnames"], re.compile(rf"(_\d+)?_({invented})_.*"))
        self._driver: dict[int, Any] = {}
        self._ends: list[tuple[int, str]] = []
        self._level: dict[int, tuple[int, int]] = {}
        for cell in module["cells"].values():
            for pin, bits in cell["connections"].items():
                if cell["port_directions"].get(pin) == "output":
                    self._driver.update((bit, cell) for bit in bits if isinstance(bit, int))
                    if late := family.late.get(cell["type"]):
                        self._level.update((bit, (late, bit)) for bit in bits if isinstance(bit, int))
        for name, cell in module["cells"].items():
            if self._is_boundary(cell):
                end = next((self._names[bit] for _, bit in _pins(cell, "output") if bit in self._names), name)
                self._ends += [(bit, end) for _, bit in _pins(cell, "input")]
            elif self._is_memory(cell):
                self._ends += [(bit, name) for pin, bit in _pins(cell, "input") if pin in WRITE_SIDE]
        for name, port in module["ports"].items():
            if port["direction"] == "output":
                self._ends += [(bit, name) for bit in port["bits"] if isinstance(bit, int)]

    def paths(self) -> LogicPaths:
        for bit, _ in self._ends:
            self._visit(bit)
        longest: dict[str, LogicPath] = {}
        counts: Counter[int] = Counter()
        for bit, end in self._ends:
            level, origin = self._level[bit]
            if not level:
                continue
            counts[level] += 1
            if end not in longest or longest[end].levels < level:
                longest[end] = LogicPath(level, self._names.get(origin, str(origin)), end)
        ordered = sorted(longest.values(), key=lambda path: (-path.levels, path.end))
        return LogicPaths(dict(sorted(counts.items(), reverse=True)), tuple(ordered))

    def _is_boundary(self, cell: Mapping[str, Any]) -> bool:
        taken = self._family.cells.get(cell["type"], Resources())
        return not (taken.lut or cell["type"].startswith(FREE + CARRIES))

    def _is_memory(self, cell: Mapping[str, Any]) -> bool:
        return not self._is_boundary(cell) and ("RAM" in cell["type"] or "DPR" in cell["type"])

    def _sources(self, bit: int) -> list[tuple[int, int]]:
        """Bits that this one follows without a clock, and the levels in between."""
        cell = self._driver.get(bit)
        if cell is None or self._is_boundary(cell):
            return []
        own = 0 if cell["type"].startswith(FREE) else 1
        ignored = WRITE_SIDE if self._is_memory(cell) else frozenset()
        return [(source, own * (pin not in CARRY_IN)) for pin, source in _pins(cell, "input") if pin not in ignored]

    def _visit(self, bit: int) -> None:
        stack, open_bits = [bit], set[int]()
        while stack:
            current = stack[-1]
            if current in self._level:
                stack.pop()
                continue
            sources = self._sources(current)
            missing = [source for source, _ in sources if source not in self._level]
            if missing and current in open_bits:
                raise ValueError(f"a combinational loop goes through {self._names.get(current, current)}")
            if missing:
                open_bits.add(current)
                stack += missing
                continue
            found = [(self._level[source][0] + own, self._level[source][1]) for source, own in sources]
            self._level[current] = max(found, default=(0, current))
            stack.pop()


def _pins(cell: Mapping[str, Any], direction: str) -> Iterator[tuple[str, int]]:
    for pin, bits in cell["connections"].items():
        if cell["port_directions"].get(pin) == direction:
            yield from ((pin, bit) for bit in bits if isinstance(bit, int))


def _names(nets: Mapping[str, Any], invented: re.Pattern[str]) -> dict[int, str]:
    """A name for each bit: of several the gateware's, nearest to the top; else the one that Yosys made its own of."""
    found: dict[int, tuple[tuple[bool, bool, int, int], str]] = {}
    for name, net in nets.items():
        known = invented.sub("", name)
        rank = (known != name, "$" in name, net["hide_name"], name.count("."))
        for bit in net["bits"]:
            if isinstance(bit, int) and (bit not in found or rank < found[bit][0]):
                found[bit] = (rank, known)
    return {bit: name for bit, (_, name) in found.items()}
