"""The host bridge: a serial line on one side, the buses of a chip on the other."""

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from sley.abi.config import ChipConfig
from sley.abi.pages import PAGE_BYTES
from sley.fpga.bridge.executor import CommandExecutor
from sley.fpga.bridge.frames import MAGIC, VERSION, Identity, payload_bytes
from sley.fpga.bridge.receiver import FrameReceiver
from sley.fpga.bridge.transmitter import FrameTransmitter
from sley.fpga.bridge.uart import UartReceiver, UartTransmitter
from sley.hw.bus.axi_lite import AxiLite
from sley.hw.memory.axi import axi4_signature

MAX_RATE_ERROR = 0.02
"""Share by which the line may be faster or slower than it is said to be."""


class HostBridge(wiring.Component):
    """Gives a host at a serial line access to registers, memory, interrupt and time of a chip.

    ``docs/theory/host-bridge.md`` describes the protocol.

    Parameters
    ----------
    config : ChipConfig
        Of the memory bus.
    memory_bytes : int
        Size of device memory, a multiple of 4096; reported to the host.
    clock_hz, baud : int
        Frequency of the clock, reported to the host, and rate of the line. A bit takes a whole number of cycles, at
        least 4, that must fit the rate within 2 %.
    buffer_bytes : int
        For frames that wait to be executed: a power of two, at least 256. More of it lets the host send more before it
        looks at replies.

    Members
    -------
    rx : In(1), tx : Out(1)
        Line from and to the host.
    registers : Out(AxiLite())
        To the chip's registers.
    memory : Out(axi4_signature(config))
        To device memory: single beats, ID 0, one at a time.
    irq : In(1)
        The chip's interrupt line.

    Raises
    ------
    ValueError
        For a size of memory or buffer that is not allowed, and for a rate that the clock does not make.

    Cost
    ----
    Measured numbers are in ``docs/theory/host-bridge.md``.
    """

    rx: Signal
    tx: Signal
    registers: Any
    memory: Any
    irq: Signal

    def __init__(
        self, config: ChipConfig, memory_bytes: int, *, clock_hz: int, baud: int, buffer_bytes: int = 512
    ) -> None:
        if memory_bytes < PAGE_BYTES or memory_bytes % PAGE_BYTES or memory_bytes > 1 << config.addr_bits:
            most = 1 << config.addr_bits
            raise ValueError(f"memory_bytes is {memory_bytes}; it must be a multiple of {PAGE_BYTES}, at most {most}")
        if not 256 <= buffer_bytes <= 1 << 15 or buffer_bytes & (buffer_bytes - 1):
            raise ValueError(f"buffer_bytes is {buffer_bytes}; it must be a power of two in 256..32768")
        if payload_bytes(buffer_bytes, config.bus_bytes) == 0:
            raise ValueError(f"buffer_bytes is {buffer_bytes}; a beat of {config.bus_bytes} bytes needs more")
        clocks = round(clock_hz / baud)
        if clocks < 1 or abs(clock_hz / clocks - baud) > MAX_RATE_ERROR * baud:
            near = clock_hz // max(1, clocks)
            raise ValueError(f"baud is {baud}; with a clock of {clock_hz} Hz the nearest rate is {near}")
        self._config = config
        self._clocks = clocks
        self._identity = Identity(
            magic=MAGIC,
            version=VERSION,
            bus_bytes=config.bus_bytes,
            payload_bytes=payload_bytes(buffer_bytes, config.bus_bytes),
            buffer_bytes=buffer_bytes - 1,
            memory_bytes=memory_bytes,
            clock_hz=clock_hz,
        )
        super().__init__(
            {
                "rx": In(1, init=1),
                "tx": Out(1, init=1),
                "registers": Out(AxiLite()),
                "memory": Out(axi4_signature(config)),
                "irq": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.uart_receiver = uart_receiver = UartReceiver(self._clocks)
        m.submodules.uart_transmitter = uart_transmitter = UartTransmitter(self._clocks)
        m.submodules.receiver = receiver = FrameReceiver(self._identity.buffer_bytes + 1)
        m.submodules.transmitter = transmitter = FrameTransmitter()
        m.submodules.executor = executor = CommandExecutor(self._config, self._identity)
        connect(m, uart_receiver.o, receiver.i)
        connect(m, receiver.o, executor.i)
        connect(m, executor.o, transmitter.i)
        connect(m, transmitter.o, uart_transmitter.i)
        connect(m, executor.registers, flipped(self.registers))
        connect(m, executor.memory, flipped(self.memory))
        m.d.comb += [
            uart_receiver.pin.eq(self.rx),
            self.tx.eq(uart_transmitter.pin),
            executor.bad.eq(receiver.bad),
            executor.irq.eq(self.irq),
        ]
        return m
