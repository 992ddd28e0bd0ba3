"""A bench to copy: the chip of preset nano, driven by the driver's own code over cocotb."""

import random

import cocotb
from cocotb.task import bridge
from cocotb_transport import CocotbTransport

from sley.abi.config import preset
from sley.driver.probe import probe


@cocotb.test(timeout_time=100, timeout_unit="us")
async def probe_finds_the_chip(dut):
    transport = CocotbTransport(dut)
    await transport.reset()
    assert await bridge(probe)(transport) == preset("nano")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def memory_keeps_what_was_written(dut):
    transport = CocotbTransport(dut)
    await transport.reset()
    data = random.Random(1).randbytes(100)
    transport.write_memory(1001, data)
    assert transport.read_memory(1001, 100) == data
