"""A block of a grid as a core gets it: its launch, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sley.abi.faults import UNITS, FaultCode, Unit

Command = dict[str, int]
"""A command as it is handed to a unit, by the names of its fields."""


@dataclass
class Block:
    """A launch, and after the run what came of it."""

    program: list[int]
    args: Sequence[int] = ()
    index: tuple[int, int, int] = (0, 0, 0)
    grid: tuple[int, int, int] = (1, 1, 1)
    tag: int = 0
    context: int = 0
    queue: int = 0
    watchdog: int = 0
    program_address: int = 0x1000
    args_address: int = 0x100
    code: FaultCode | None = None
    unit: Unit | None = None
    core: int | None = None
    pc: int = 0
    address: int = 0
    commands: dict[Unit, list[Command]] = field(default_factory=lambda: {unit: [] for unit in UNITS})
    path: list[int] = field(default_factory=list)
    """Of what the interpreter makes of it: pc of each instruction that it executed."""
    issued: list[int] = field(default_factory=list)
    """Clock edge of each command's acceptance, over all units."""
    launched: int = 0
    """Clock edge at which the last flit of the launch was accepted."""
    reported: int = 0
    """Clock edge at which the first done flit was accepted."""
    runs: list[tuple[int, int]] = field(default_factory=list)
    """Address and length of what was fetched."""
    asked: list[int] = field(default_factory=list)
    """Clock edge of each run's acceptance."""
    beats: list[int] = field(default_factory=list)
    """Clock edge of each beat's acceptance."""

    @property
    def status(self) -> tuple[FaultCode | None, Unit | None, int, int]:
        return self.code, self.unit, self.pc, self.address
