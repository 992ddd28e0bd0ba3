"""A board: its platform, and what of it a chip uses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amaranth import ClockDomain, Elaboratable, Module
from amaranth.lib import io
from amaranth.lib.wiring import Component, connect

from sley.abi.config import ChipConfig
from sley.fpga.boards.clock import GATED, PllClock
from sley.fpga.devices.device import device_of
from sley.fpga.memory.block_ram import BlockMemory
from sley.fpga.memory.sdram.memory import SdramMemory
from sley.fpga.memory.sdram.part import SdramPart
from sley.fpga.memory.sdram.pins import SdramClock, SdramPins, check_pin_clock
from sley.fpga.system import BareSystem, System

SDRAM, ON_CHIP = "sdram", "on-chip"
"""What device memory can be made of."""


@dataclass(frozen=True)
class Board:
    """A board with an FPGA, a clock and a serial line to the host.

    ``platform`` makes the Amaranth platform, ``config`` is the chip that fits and ``clock_hz`` the frequency that it
    reaches, ``memory_bytes`` the on-chip RAM that is left for device memory, ``baud`` the rate of the line, ``sdram``
    the part outside, if there is one, which then is the device memory unless told otherwise. Where not ``fits``, no
    chip is small enough: ``config`` is that of the line's bus, ``clock_hz`` that of the line.
    """

    name: str
    about: str
    platform: Callable[[], Any]
    config: ChipConfig
    clock_hz: int
    memory_bytes: int
    baud: int
    sdram: SdramPart | None = None
    fits: bool = True

    @property
    def memory_kinds(self) -> dict[str, int]:
        """What device memory can be made of, and its bytes; the first one unless told otherwise."""
        return {**({SDRAM: self.sdram.memory_bytes} if self.sdram else {}), ON_CHIP: self.memory_bytes}

    def memory(self, config: ChipConfig, clock_hz: int, kind: str | None = None) -> Any:
        """Device memory. Raises ``ValueError`` if the board has none of that kind, or the clock is not for it."""
        kind = kind or next(iter(self.memory_kinds))
        if kind not in self.memory_kinds:
            raise ValueError(f"memory is {kind!r}; {self.name} has {', '.join(self.memory_kinds)}")
        if kind == ON_CHIP or self.sdram is None:
            return BlockMemory(config, self.memory_bytes)
        check_pin_clock(self.sdram, clock_hz)
        return SdramMemory(config, clock_hz, self.sdram)

    def system(
        self, config: ChipConfig | None = None, clock_hz: int | None = None, memory: str | None = None
    ) -> System:
        """Chip, bridge and memory. Raises ``ValueError`` if rate, clock and memory do not go together."""
        config, clock_hz = config or self.config, clock_hz or self.clock_hz
        return System(config, clock_hz, self.baud, self.memory(config, clock_hz, memory))

    def line(self, clock_hz: int | None = None, memory: str | None = None) -> BareSystem:
        """Bridge and memory without a chip, which every board has room for. Raises ``ValueError`` likewise."""
        clock_hz = clock_hz or self.clock_hz
        return BareSystem(self.config, clock_hz, self.baud, self.memory(self.config, clock_hz, memory))


class BoardTop(Elaboratable):
    """A design with a serial line on a board: clock and pins around it.

    ``design`` has the members ``uart_rx``, ``uart_tx`` and ``irq``; the last one lights LED 0, of a coloured one its
    green. It may have ``sdram``. ``clock_hz`` is the frequency of its clock.
    """

    def __init__(self, design: Component, clock_hz: int) -> None:
        self._design = design
        self.clock_hz = clock_hz

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        design: Any = self._design
        family = device_of(platform).family.name
        m.domains.sync = sync = ClockDomain(reset_less=family in GATED)
        m.submodules.clock = PllClock(sync, family, int(platform.default_clk_frequency), self.clock_hz)
        m.submodules.system = design
        uart = platform.request("uart", 0, dir="-")
        coloured = ("led", 0) not in platform.resources
        led = platform.request("rgb_led", 0, dir="-").g if coloured else platform.request("led", 0, dir="-")
        m.submodules.rx = rx = io.Buffer("i", uart.rx)
        m.submodules.tx = tx = io.Buffer("o", uart.tx)
        m.submodules.led = lamp = io.Buffer("o", led)
        m.d.comb += [design.uart_rx.eq(rx.i), tx.o.eq(design.uart_tx), lamp.o.eq(design.irq)]
        if "sdram" in design.signature.members:
            ports = platform.request("sdram", 0, dir="-")
            m.submodules.sdram = pins = SdramPins(len(design.sdram.address), ports)
            m.submodules.sdram_clock = SdramClock(ports.clk)
            connect(m, design.sdram, pins.sdram)
        return m
