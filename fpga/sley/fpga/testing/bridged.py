"""A host bridge with something small behind it that notices every access, for benches of bridge and link."""

from enum import IntEnum

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from sley.abi.config import ChipConfig
from sley.fpga.bridge.bridge import HostBridge
from sley.fpga.memory.block_ram import BlockMemory
from sley.hw.bus.axi_lite import DATA_BITS, AxiLiteTarget

MEMORY_BYTES = 16384
BAUD = 25_000


class Register(IntEnum):
    """Addresses; all others are answered with an error."""

    WRITES = 0x00
    """Writes of registers so far."""
    READS = 0x04
    """Reads of this register so far, this one not included."""
    LAST = 0x08
    """What was written last, wherever."""
    CYCLES = 0x0C
    """Cycles so far."""
    ALARM = 0x10
    """Cycles until the interrupt line rises; writing 0 lowers it."""


class Bridged(wiring.Component):
    """``HostBridge``, the registers above, and on-chip memory whose second half answers with errors.

    The bridge reports twice as much memory as there is.

    Parameters
    ----------
    config : ChipConfig
        Of the memory bus.
    clocks_per_bit : int
        Of the line.
    memory_bytes : int
        Memory without errors; ``MEMORY_BYTES`` if not given.

    Members
    -------
    uart_rx : In(1), uart_tx : Out(1)
        Line from and to the host.
    """

    uart_rx: Signal
    uart_tx: Signal

    def __init__(self, config: ChipConfig, clocks_per_bit: int, memory_bytes: int | None = None) -> None:
        self._config = config
        self._clocks = clocks_per_bit
        self._bytes = memory_bytes or MEMORY_BYTES
        super().__init__({"uart_rx": In(1, init=1), "uart_tx": Out(1, init=1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bridge = bridge = HostBridge(
            self._config, 2 * self._bytes, clock_hz=self._clocks * BAUD, baud=BAUD
        )
        m.submodules.memory = memory = BlockMemory(self._config, self._bytes)
        m.submodules.target = target = AxiLiteTarget()
        connect(m, bridge.memory, memory.bus)
        connect(m, bridge.registers, target.bus)
        bus = target.registers
        writes, reads, last = Signal(DATA_BITS), Signal(DATA_BITS), Signal(DATA_BITS)
        cycles, alarm, irq = Signal(DATA_BITS), Signal(DATA_BITS), Signal()
        values = {
            Register.WRITES: writes,
            Register.READS: reads,
            Register.LAST: last,
            Register.CYCLES: cycles,
            Register.ALARM: alarm,
        }
        m.d.comb += [bridge.rx.eq(self.uart_rx), self.uart_tx.eq(bridge.tx), bridge.irq.eq(irq)]
        m.d.sync += [cycles.eq(cycles + 1), alarm.eq(Mux(alarm != 0, alarm - 1, 0))]
        with m.If(alarm == 1):
            m.d.sync += irq.eq(1)
        with m.If(bus.read):
            m.d.sync += [bus.read_error.eq(1), bus.read_data.eq(0)]
            with m.Switch(bus.read_address):
                for address, value in values.items():
                    with m.Case(address):
                        m.d.sync += [bus.read_error.eq(0), bus.read_data.eq(value)]
            m.d.sync += reads.eq(reads + (bus.read_address == Register.READS))
        with m.If(bus.write):
            m.d.sync += [writes.eq(writes + 1), last.eq(bus.write_data)]
            m.d.sync += bus.write_error.eq(bus.write_address > max(Register))
            with m.If(bus.write_address == Register.ALARM):
                m.d.sync += [alarm.eq(bus.write_data), irq.eq(0)]
        return m
