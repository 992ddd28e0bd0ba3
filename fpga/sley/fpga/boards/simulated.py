"""The boards that ``sley fpga simulate`` runs; found through the entry points ``sley.boards``."""

from collections.abc import Callable
from dataclasses import dataclass

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig, preset
from sley.fpga.boards.known import BOARDS
from sley.fpga.memory.block_ram import BlockMemory
from sley.fpga.memory.sdram.memory import SdramMemory
from sley.fpga.memory.sdram.part import SdramPart
from sley.fpga.system import System
from sley.fpga.testing.sdram_chip import SdramChip, attach

BAUD = 25_000
"""Told to the host, which takes its time accordingly: a simulation is slower than any board."""
MEMORY_BYTES = 1 << 20
STORED_ROWS = 1024
"""Rows of an SDRAM that a simulation keeps, 1 KiB each; to use more of them is a fault."""


class SystemWithSdram(wiring.Component):
    """A system, and the SDRAM outside.

    Parameters
    ----------
    system : System
        Its memory is an ``SdramMemory`` for ``part`` and ``clock_hz``.
    part : SdramPart
        The part.
    clock_hz : int
        What its nanoseconds are counted with.

    Members
    -------
    uart_rx : In(1), uart_tx : Out(1)
        Line from and to the host.
    fault : Out(len(SdramRule))
        Rules of the part that were broken.
    """

    uart_rx: Signal
    uart_tx: Signal
    fault: Signal

    def __init__(self, system: System, part: SdramPart, clock_hz: int) -> None:
        self._system = system
        self._chip = SdramChip(part, clock_hz, STORED_ROWS)
        super().__init__(
            {"uart_rx": In(1, init=1), "uart_tx": Out(1, init=1), "fault": self._chip.signature.members["fault"]}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.system = system = self._system
        m.submodules.chip = chip = self._chip
        attach(m, system.sdram, chip)
        m.d.comb += [
            system.uart_rx.eq(self.uart_rx),
            self.uart_tx.eq(system.uart_tx),
            self.fault.eq(chip.fault),
        ]
        return m


@dataclass(frozen=True)
class Simulated:
    """A board: the ``config`` of its chip unless told otherwise, and what makes its design."""

    config: ChipConfig
    design: Callable[[ChipConfig, int, int | None], wiring.Component]


def _system(config: ChipConfig, clocks_per_bit: int, memory_bytes: int | None) -> System:
    return System(config, clocks_per_bit * BAUD, BAUD, BlockMemory(config, memory_bytes or MEMORY_BYTES))


def _with_sdram(name: str) -> Simulated:
    """What is on a board, with its SDRAM, as it is at the board's clock."""
    board = BOARDS[name]
    part, clock_hz = board.sdram, board.clock_hz
    assert part is not None

    def design(config: ChipConfig, clocks_per_bit: int, memory_bytes: int | None) -> SystemWithSdram:
        memory = SdramMemory(config, clock_hz, part, memory_bytes)
        return SystemWithSdram(System(config, clocks_per_bit * BAUD, BAUD, memory), part, clock_hz)

    return Simulated(board.config, design)


system = Simulated(preset("nano"), _system)
"""Chip, host bridge and on-chip memory."""
ulx3s = _with_sdram("ulx3s")
ulx3s_25f = _with_sdram("ulx3s_25f")
