"""The kit on a small chip with chains: operators of ``nn`` and recorded work against the exact model, gaps, errors."""

from typing import Any

import cocotb
import numpy as np
import pytest
from cocotb.task import bridge
from cocotbext.axi import AxiResp
from kit_chip import KIT

from sley.abi.config import preset
from sley.abi.faults import Unit
from sley.driver import Driver, QueueFault
from sley.runtime import Device, nn
from sley.sim.cocotb.axi_transport import AxiTransport
from sley.sim.cocotb.scoreboard import Results, ScoreboardError, compare
from sley.sim.cocotb.transport import CycleTransport

MEMORY = 1 << 20


def network(transport: Any, results: Results) -> None:
    """A layer and its softmax, eagerly; then recorded, and launched with two inputs."""
    values = np.random.default_rng(5)
    with Device(Driver(transport, hang_cycles=50_000)) as device:
        x, weight = (device.array(values.integers(-9, 10, shape, np.int8)) for shape in ((3, 7), (5, 7)))
        results.add("linear", nn.linear(x, weight).numpy())
        logits = device.array(values.standard_normal((3, 5)).astype(np.float32))
        out = device.empty((3, 5), np.float32)
        with device.stream.capture() as graph:
            nn.softmax(logits, out=out)
        for scale in (1, 3):
            logits.write(values.standard_normal((3, 5)).astype(np.float32) * scale)
            graph.launch()
            results.add(f"softmax of {scale}", out.numpy())


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def results_and_cycles_are_those_of_the_model(dut):
    transport = CycleTransport(dut, MEMORY)
    await transport.reset()
    found = await compare(network, transport, KIT)
    assert [result.name for result in found] == ["linear", "softmax of 1", "softmax of 3"]
    np.testing.assert_allclose(found[1].values.sum(1), 1, rtol=1e-6)
    assert found[0].cycle < found[1].cycle < found[2].cycle


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def results_are_those_of_the_model_with_gaps(dut):
    transport = AxiTransport(dut, MEMORY)
    await transport.reset()
    transport.disturb(seed=1, chance=0.3, longest=20)
    await compare(network, transport, KIT)


def product(device: Device) -> np.ndarray:
    a = device.array(np.arange(12, dtype=np.int8).reshape(3, 4))
    return nn.linear(a, a).numpy()


def refused(transport: AxiTransport) -> None:
    """Errors of memory at each unit that uses it: a fault that names it, and the device goes on."""
    ram = transport.ram
    with Device(Driver(transport, hang_cycles=50_000)) as device:
        right = product(device)
        a = device.array(np.arange(12, dtype=np.int8).reshape(3, 4))
        out = device.empty((3, 3), np.int32)
        for array, unit, response in ((a, Unit.LOAD, AxiResp.SLVERR), (out, Unit.STORE, AxiResp.DECERR)):
            place = device.context.space.physical(array.address, 1)
            fault = ram.fail(place + 1, response=response)
            nn.linear(a, a, out=out)
            with pytest.raises(QueueFault, match="BUS_ERROR in the") as caught:
                device.stream.synchronize()
            assert caught.value.unit is unit, str(caught.value)
            assert fault.hits
            cocotb.log.info("%s: %s", response.name, caught.value)
            ram.faults.remove(fault)
            np.testing.assert_array_equal(product(device), right)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def errors_of_memory_are_reported_and_the_device_goes_on(dut):
    transport = AxiTransport(dut, MEMORY)
    await transport.reset()
    transport.disturb(seed=2, chance=0.2, longest=3)
    await bridge(refused)(transport)


def reads_beyond(transport: AxiTransport) -> None:
    with pytest.raises(OSError, match="outside the device's"):
        transport.read_memory(MEMORY - 1, 2)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def the_scoreboard_sees_a_wrong_element(dut):
    """A chip with another model: the sessions differ in what they find of the chip."""
    transport = CycleTransport(dut, MEMORY)
    await transport.reset()

    def session(other: Any, results: Results) -> None:
        found = np.arange(6).reshape(2, 3)
        results.add("same", found)
        results.add("hurt", found + (other is transport) * np.eye(2, 3, 1, int))

    with pytest.raises(ScoreboardError, match=r"hurt: 2 of 6 elements differ: \(0, 1\): 1 expected, 2 found"):
        await compare(session, transport, preset("nano"))
    await bridge(reads_beyond)(AxiTransport(dut, MEMORY))
