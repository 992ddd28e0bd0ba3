"""Engine ``profile``: engine ``fast`` with an account of what its parts cost.

A fragment's share is the number of its runs, which the compiled chip counts, times the duration of a run, measured by
running its function many times in a row. That is a lower bound: in a row, code and data are in the nearest cache and
branches are predicted. What is left of a cycle's duration is that difference, the search for the fragments that must
run, the edge of the clock, and the DRAM.
"""

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sley.abi.config import configuration
from sley.abi.transport import EngineError
from sley.sim.build.cache import digest
from sley.sim.engines.design_text import cached_rtlil
from sley.sim.engines.fast import HOST, INCLUDES, TIES, FastTransport
from sley.sim.engines.options import parse_options
from sley.sim.fast.emit.manifest import Manifest
from sley.sim.fast.run.build import build_library
from sley.sim.fast.run.tier import BEST

PROFILE_HOST = Path(__file__).with_name("profile.c")
REPEATS, ROUNDS = 100, 20

PARTS = (
    ("processing element", r"(core\d+\.matrix\.array)\b"),
    ("rest of a matrix unit", r"(core\d+\.matrix)\b"),
    ("vector lane", r"(core\d+\.vector\.lane_\d+)\b"),
    ("rest of a vector unit", r"(core\d+\.vector)"),
    ("scratchpad", r"(core\d+\.scratchpad)\b"),
    ("accumulators", r"(core\d+\.accumulator)\b"),
    ("Load", r"(core\d+)\.load"),
    ("Store", r"(core\d+)\.store"),
    ("sequencer", r"(core\d+)\.(?:sequencer|fetch)"),
    ("rest of a core", r"(core\d+)\b"),
    ("router", r"(mesh\.\w+?_\d+_\d+)\b"),
    ("memory port", r"(memory)\b"),
    ("command processor", r"(command)\b"),
    ("registers and the rest", r"()"),
)
"""Kinds of parts: name, and what the path of an instance in one begins with; the group tells the part itself."""

_DIGITS = re.compile(r"\d+")


@dataclass
class PartCost:
    """A kind of parts: how many there are, runs of their fragments, and nanoseconds of these runs."""

    name: str
    count: int
    runs: int = 0
    nanoseconds: float = 0.0


class ProfileTransport(FastTransport):
    """A device of engine ``fast`` whose library can also run single fragments."""

    def _build(self, rtlil: str, bus_bytes: int) -> Path:
        plain = ctypes.CDLL(str(super()._build(rtlil, bus_bytes)))
        plain.fast_manifest.restype = ctypes.c_char_p
        count = len(Manifest.from_json(plain.fast_manifest().decode()).fragments)
        names = ",".join(f"f{number}" for number in range(count))
        defines = (f"-DBUS_BYTES={bus_bytes}", f"-DFRAGMENTS={names}", f"-DOF_{digest(HOST.read_bytes())}")
        return build_library(rtlil, None, PROFILE_HOST, INCLUDES, defines, TIES, self._tier)

    _before: tuple[int, ...] = ()

    def start_profile(self) -> None:
        """Runs before this moment do not count."""
        self._before = self._runs()

    def _runs(self) -> tuple[int, ...]:
        count = len(self.manifest.fragments)
        return tuple(self._view[self.manifest.runs : self.manifest.runs + 8 * count].cast("Q"))

    def part_costs(self) -> list[PartCost]:
        """What each kind of parts cost since ``start_profile``, or since the start."""
        fragments = self.manifest.fragments
        durations = (ctypes.c_double * len(fragments))()
        self._library.sley_profile.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p]
        if not self._library.sley_profile(self._handle, REPEATS, ROUNDS, durations):
            raise EngineError("there is no memory for a copy of the chip's state")
        now = self._runs()
        before = self._before or (0,) * len(now)
        costs = {name: PartCost(name, len(parts)) for name, parts in self._parts().items()}
        for fragment, first, last, duration in zip(fragments, before, now, durations, strict=True):
            name, _ = _part(fragment.partition("/")[0])
            cost = costs.setdefault(name, PartCost(name, 1))
            cost.runs += last - first
            cost.nanoseconds += (last - first) * duration
        return list(costs.values())

    def _parts(self) -> dict[str, set[str]]:
        """The parts of each kind that have registers."""
        found: dict[str, set[str]] = {name: set() for name, _ in PARTS}
        for register in self.manifest.registers:
            kind, part = _part(register.rpartition(".")[0])
            if kind == "processing element":
                found[kind].update(f"{part}.{element}" for element in _elements(register))
            else:
                found[kind].add(part)
        return {name: parts for name, parts in found.items() if parts}


def _part(path: str) -> tuple[str, str]:
    """Kind and name of the part that an instance is in. ``#`` stands for any number in the path of a loop."""
    inside = path.replace("#", "0").partition(".")[2]
    for name, pattern in PARTS:
        match = re.match(pattern, inside)
        if match:
            return name, match[1]
    raise AssertionError(path)


def _elements(register: str) -> Iterator[str]:
    """The element of the array that a register belongs to, if it is one's."""
    match = re.search(r"\.(element_\d+_\d+)\.", register)
    if match:
        yield match[1]


def open_transport(spec: str, options: dict[str, str]) -> ProfileTransport:
    """The chip of a preset or a JSON file (``base`` when empty), compiled on first use."""
    config = configuration(spec or "base")
    return ProfileTransport(
        cached_rtlil(config), config.bus_bytes, parse_options("profile", config, options, ()), tier=BEST
    )
