"""A chip among the AXI models of cocotbext-axi: an independent host and memory, with random gaps and errors."""

import logging
from typing import Any

from cocotb.clock import Clock
from cocotb.task import resume
from cocotb.triggers import ClockCycles, First, RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiResp

from sley.abi.transport import TransportError, memory_span, register_address
from sley.sim.cocotb.axi_memory import AxiMemory
from sley.sim.cocotb.gaps import random_gaps
from sley.sim.cocotb.transport import PERIOD_NS, RESET_CYCLES


class AxiTransport:
    """Blocking access to the chip in ``dut``, for code that runs in a thread started with ``cocotb.task.bridge``.

    ``await reset()`` first. Cycles are those of cocotbext-axi, which follow no rule of Sley's; for those of the engines
    take ``CycleTransport``.

    Parameters
    ----------
    dut
        A module with ``clk``, ``rst``, ``irq`` and the two buses.
    memory_bytes
        Size of device memory.
    host, memory
        What the names of the ports of the chip's AXI4-Lite target and of the AXI4 manager begin with.

    Attributes
    ----------
    host, ram
        The models, free for a bench's own use: ``AxiLiteMaster`` and ``AxiMemory``.
    """

    timing = None
    """No rule of the memory's timing, by which the model could take the same cycles."""

    def __init__(self, dut: Any, memory_bytes: int = 1 << 20, host: str = "s_axil", memory: str = "m_axi") -> None:
        self.dut = dut
        self.memory_bytes = memory_bytes
        for port in (host, memory):  # a line per access otherwise
            logging.getLogger(f"cocotb.{dut._name}.{port}").setLevel(logging.ERROR)
        Clock(dut.clk, PERIOD_NS, unit="ns").start()
        self.host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, host), dut.clk, dut.rst)
        self.ram = AxiMemory(AxiBus.from_prefix(dut, memory), dut.clk, dut.rst, memory_bytes)
        for answer in ("bid", "rid"):  # by which an interconnect chooses whose ready it is; X until a first answer else
            getattr(dut, f"{memory}_{answer}").value = 0

    async def reset(self) -> None:
        """Resets the chip and both models."""
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, RESET_CYCLES)
        self.dut.rst.value = 0
        await ClockCycles(self.dut.clk, 2)

    def disturb(self, seed: int, chance: float = 0.4, longest: int = 1) -> None:
        """Lets all channels of both buses pause at random, each by itself; see ``random_gaps``."""
        for number, channel in enumerate(self.channels):
            channel.set_pause_generator(random_gaps(seed + number, chance, longest))

    @property
    def channels(self) -> list[Any]:
        """All channels of both models."""
        return [
            getattr(side, f"{name}_channel")
            for model in (self.ram, self.host)
            for side, names in ((model.write_if, ("aw", "w", "b")), (model.read_if, ("ar", "r")))
            for name in names
        ]

    @resume
    async def read32(self, address: int) -> int:
        answer = await self.host.read(register_address(address), 4)
        self._check(answer.resp, "read", address)
        return int.from_bytes(answer.data, "little")

    @resume
    async def write32(self, address: int, value: int) -> None:
        answer = await self.host.write(register_address(address), (value & 0xFFFFFFFF).to_bytes(4, "little"))
        self._check(answer.resp, "write", address)

    def read_memory(self, address: int, length: int) -> bytes:
        memory_span(address, length, self.memory_bytes)
        return bytes(self.ram.read(address, length))

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        raw = bytes(data)
        memory_span(address, len(raw), self.memory_bytes)
        self.ram.write(address, raw)

    def barrier(self) -> None:
        """Every write has been answered when its call returns."""

    @resume
    async def wait_irq(self, cycles: int) -> bool:
        if not int(self.dut.irq.value):
            await First(RisingEdge(self.dut.irq), ClockCycles(self.dut.clk, cycles))
        return bool(int(self.dut.irq.value))

    @resume
    async def advance(self, cycles: int) -> None:
        if cycles > 0:
            await ClockCycles(self.dut.clk, cycles)

    def close(self) -> None:
        """The simulator ends with the bench."""

    @staticmethod
    def _check(response: Any, what: str, address: int) -> None:
        if response != AxiResp.OKAY:
            raise TransportError(f"{what} of register {address:#06x} was answered with {response.name}")
