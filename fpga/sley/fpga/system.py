"""Everything of a board that does not depend on the board: chip, host bridge and memory."""

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from sley.abi.config import ChipConfig
from sley.fpga.bridge.bridge import HostBridge
from sley.fpga.memory.arbiter import AxiArbiter
from sley.hw.bus.axi_lite import AxiLiteTarget
from sley.hw.chip import Chip


def _pins(memory: Any) -> dict[str, Any]:
    """What a system has to the outside: line, interrupt, and the part that holds its memory, if there is one."""
    outside = {name: member for name, member in memory.signature.members.items() if name == "sdram"}
    return {"uart_rx": In(1, init=1), "uart_tx": Out(1, init=1), "irq": Out(1), **outside}


class System(wiring.Component):
    """A chip that a host reaches through a serial line, in one clock domain.

    Parameters
    ----------
    config : ChipConfig
        The chip.
    clock_hz, baud, buffer_bytes : int
        See ``HostBridge``.
    memory : component
        Device memory: an AXI4 target as member ``bus``, of the chip's ``axi4_signature``, that returns the ID and keeps
        the order within one, and its size as ``memory_bytes``. If it has a member ``sdram``, a part outside, so has the
        system.

    Members
    -------
    uart_rx, uart_tx : In(1), Out(1)
        Line from and to the host.
    irq : Out(1)
        The chip's interrupt line.
    sdram : Out(sdram_signature)
        The part that holds the memory, if it is an SDRAM.
    """

    uart_rx: Signal
    uart_tx: Signal
    irq: Signal
    sdram: Any

    def __init__(self, config: ChipConfig, clock_hz: int, baud: int, memory: Any, buffer_bytes: int = 512) -> None:
        self.config = config
        self._memory = memory
        self._bridge = HostBridge(config, memory.memory_bytes, clock_hz=clock_hz, baud=baud, buffer_bytes=buffer_bytes)
        super().__init__(_pins(memory))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.chip = chip = Chip(self.config)
        m.submodules.bridge = bridge = self._bridge
        m.submodules.arbiter = arbiter = AxiArbiter(self.config)
        m.submodules.memory = memory = self._memory
        connect(m, bridge.registers, chip.s_axil)
        connect(m, chip.m_axi, arbiter.managers[0])
        connect(m, bridge.memory, arbiter.managers[1])
        connect(m, arbiter.target, memory.bus)
        if "sdram" in self.signature.members:
            connect(m, memory.sdram, flipped(self.sdram))
        m.d.comb += [
            bridge.rx.eq(self.uart_rx),
            self.uart_tx.eq(bridge.tx),
            bridge.irq.eq(chip.irq),
            self.irq.eq(chip.irq),
        ]
        return m


class BareSystem(wiring.Component):
    """``System`` without its chip, to try a board's line and memory. Every register is an error.

    Parameters
    ----------
    config : ChipConfig
        Of the memory's bus.
    clock_hz, baud, buffer_bytes : int
        See ``HostBridge``.
    memory : component
        See ``System``.

    Members
    -------
    uart_rx : In(1), uart_tx : Out(1)
        Line from and to the host.
    irq : Out(1)
        Low.
    sdram : Out(sdram_signature)
        The part that holds the memory, if it is an SDRAM.
    """

    uart_rx: Signal
    uart_tx: Signal
    irq: Signal
    sdram: Any

    def __init__(self, config: ChipConfig, clock_hz: int, baud: int, memory: Any, buffer_bytes: int = 512) -> None:
        self._memory = memory
        self._bridge = HostBridge(config, memory.memory_bytes, clock_hz=clock_hz, baud=baud, buffer_bytes=buffer_bytes)
        super().__init__(_pins(memory))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bridge = bridge = self._bridge
        m.submodules.memory = memory = self._memory
        m.submodules.target = target = AxiLiteTarget()
        connect(m, bridge.registers, target.bus)
        connect(m, bridge.memory, memory.bus)
        if "sdram" in self.signature.members:
            connect(m, memory.sdram, flipped(self.sdram))
        m.d.comb += [
            target.registers.read_error.eq(1),
            target.registers.write_error.eq(1),
            bridge.rx.eq(self.uart_rx),
            self.uart_tx.eq(bridge.tx),
        ]
        return m
