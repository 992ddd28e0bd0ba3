"""A cocotb bench of the gateware of softplus: every result equals the definition, with pauses between operands."""

import random

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from sley_softplus import Softplus, softplus

CORNERS = (0, 0x80000000, 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0x41000000, 0xC1000000, 0x40FFFFFF, 0xC1000001)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def equals_the_definition(dut):
    source = random.Random(1)
    near = [int(np.float32(source.uniform(-12, 12)).view(np.uint32)) for _ in range(1000)]
    operands = [*CORNERS, *near, *(source.getrandbits(32) for _ in range(1000))]
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value, dut.use.value = 0, 1
    await FallingEdge(dut.clk)
    for start in range(0, len(operands), 100):
        part = operands[start : start + 100]
        got = []
        for cycle in range(len(part) + Softplus.LATENCY - 1):
            dut.i.value = part[min(cycle, len(part) - 1)]
            await FallingEdge(dut.clk)
            if cycle >= Softplus.LATENCY - 1:
                got.append(int(dut.o.value))
        assert got == softplus(np.array(part, np.uint32)).tolist(), f"operands {start} to {start + len(part)}"
        dut.use.value = 0  # a pause, in which the result is 0
        await FallingEdge(dut.clk)
        assert int(dut.o.value) == 0
        dut.use.value = 1
