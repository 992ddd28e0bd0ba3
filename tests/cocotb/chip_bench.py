"""A bench to copy: the chip of preset nano, driven by the driver's own code over cocotb."""

import random

import cocotb
import numpy as np
from cocotb.task import bridge

from sley.abi.config import preset
from sley.driver.device import Driver
from sley.driver.hardware.probe import probe
from sley.runtime import blas
from sley.runtime.device.device import Device
from sley.sim.cocotb.axi_transport import AxiTransport


@cocotb.test(timeout_time=100, timeout_unit="us")
async def probe_finds_the_chip(dut):
    transport = AxiTransport(dut)
    await transport.reset()
    assert await bridge(probe)(transport) == preset("nano")


@cocotb.test(timeout_time=100, timeout_unit="us")
async def memory_keeps_what_was_written(dut):
    transport = AxiTransport(dut)
    await transport.reset()
    data = random.Random(1).randbytes(100)
    transport.write_memory(1001, data)
    assert transport.read_memory(1001, 100) == data


def multiply(transport: AxiTransport) -> None:
    """A session of the runtime: products of odd shapes, through driver, rings and doorbells."""
    values = np.random.default_rng(4)
    with Device(Driver(transport, hang_cycles=20_000)) as device:
        for m, n, k in ((1, 1, 1), (5, 3, 7), (13, 9, 11)):
            a, b = (values.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
            product = blas.gemm(device.array(a), device.array(b)).numpy()
            np.testing.assert_array_equal(product, a.astype(np.int32) @ b.astype(np.int32))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def products_are_exact(dut):
    transport = AxiTransport(dut)
    await transport.reset()
    await bridge(multiply)(transport)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def products_are_exact_with_gaps_on_every_channel(dut):
    transport = AxiTransport(dut)
    await transport.reset()
    transport.disturb(seed=1)
    await bridge(multiply)(transport)
