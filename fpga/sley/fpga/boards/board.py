"""A board: its platform, and what of it a chip uses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amaranth import ClockDomain, Elaboratable, Module
from amaranth.lib import io
from amaranth.lib.wiring import Component

from sley.abi.config import ChipConfig
from sley.fpga.clock import PllClock
from sley.fpga.device import device_of
from sley.fpga.memory.block_ram import BlockMemory
from sley.fpga.system import BareSystem, System


@dataclass(frozen=True)
class Board:
    """A board with an FPGA, a clock and a serial line to the host.

    ``platform`` makes the Amaranth platform, ``config`` is the chip that fits and ``clock_hz`` the frequency that it
    reaches, ``memory_bytes`` the on-chip RAM that is left for device memory, ``baud`` the rate of the line. Where not
    ``fits``, no chip is small enough: ``config`` is that of the line's bus, ``clock_hz`` that of the line.
    """

    name: str
    about: str
    platform: Callable[[], Any]
    config: ChipConfig
    clock_hz: int
    memory_bytes: int
    baud: int
    fits: bool = True

    def system(self, config: ChipConfig | None = None, clock_hz: int | None = None) -> System:
        """Chip, bridge and memory. Raises ``ValueError`` if rate and clock do not go together."""
        config = config or self.config
        memory = BlockMemory(config, self.memory_bytes)
        return System(config, clock_hz or self.clock_hz, self.baud, memory)

    def line(self, clock_hz: int | None = None) -> BareSystem:
        """Bridge and memory without a chip, which every board has room for."""
        memory = BlockMemory(self.config, self.memory_bytes)
        return BareSystem(self.config, clock_hz or self.clock_hz, self.baud, memory)


class BoardTop(Elaboratable):
    """A design with a serial line on a board: clock and pins around it.

    ``design`` has the members ``uart_rx``, ``uart_tx`` and ``irq``; the last one lights LED 0.
    """

    def __init__(self, design: Component, clock_hz: int) -> None:
        self._design = design
        self._clock_hz = clock_hz

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        design: Any = self._design
        m.domains.sync = sync = ClockDomain()
        family = device_of(platform).family.name
        m.submodules.clock = PllClock(sync, family, int(platform.default_clk_frequency), self._clock_hz)
        m.submodules.system = design
        uart, led = platform.request("uart", 0, dir="-"), platform.request("led", 0, dir="-")
        m.submodules.rx = rx = io.Buffer("i", uart.rx)
        m.submodules.tx = tx = io.Buffer("o", uart.tx)
        m.submodules.led = lamp = io.Buffer("o", led)
        m.d.comb += [design.uart_rx.eq(rx.i), tx.o.eq(design.uart_tx), lamp.o.eq(design.irq)]
        return m
