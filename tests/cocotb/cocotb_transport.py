"""The driver's Transport over cocotb: AXI-Lite master and AXI memory of cocotbext-axi around the chip."""

import logging

from cocotb.clock import Clock
from cocotb.task import resume
from cocotb.triggers import ClockCycles, First, RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiResp

from sley.abi.transport import TransportError


class CocotbTransport:
    """Blocking access to the chip ``dut``, for code that runs in a thread started with ``cocotb.task.bridge``.

    ``await reset()`` first. ``host`` and ``ram`` are the cocotbext-axi models, free for a bench's own use.
    """

    def __init__(self, dut, memory_bytes=1 << 20):
        self.dut = dut
        self.memory_bytes = memory_bytes
        for port in ("s_axil", "m_axi"):  # a line per access otherwise
            logging.getLogger(f"cocotb.{dut._name}.{port}").setLevel(logging.WARNING)
        Clock(dut.clk, 10, unit="ns").start()
        self.host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        self.ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=memory_bytes)

    async def reset(self):
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 4)
        self.dut.rst.value = 0
        await ClockCycles(self.dut.clk, 2)

    @resume
    async def read32(self, address):
        answer = await self.host.read(address, 4)
        self._check(answer.resp, "read", address)
        return int.from_bytes(answer.data, "little")

    @resume
    async def write32(self, address, value):
        answer = await self.host.write(address, value.to_bytes(4, "little"))
        self._check(answer.resp, "write", address)

    def read_memory(self, address, length):
        return bytes(self.ram.read(address, length))

    def write_memory(self, address, data):
        self.ram.write(address, bytes(data))

    def barrier(self):
        """Every write has been answered when its call returns."""

    @resume
    async def wait_irq(self, cycles):
        if not int(self.dut.irq.value):
            await First(RisingEdge(self.dut.irq), ClockCycles(self.dut.clk, cycles))
        return bool(int(self.dut.irq.value))

    @resume
    async def advance(self, cycles):
        await ClockCycles(self.dut.clk, cycles)

    def close(self):
        pass

    @staticmethod
    def _check(response, what, address):
        if response != AxiResp.OKAY:
            raise TransportError(f"{what} of register {address:#06x} was answered with {response.name}")
