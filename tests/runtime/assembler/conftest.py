"""A kernel whose result is one register."""

from collections.abc import Callable

import numpy as np
import pytest

from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorRow
from sley.runtime import ZERO, Device, KernelBuilder, Register


class ReportingKernel:
    """A kernel under construction; its first argument, ``out``, is the place where it reports a register."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.k = KernelBuilder("test", device.config)
        self.out = self.k.arg("out")

    def report(self, value: Register) -> None:
        """Instructions that write the register to memory, by way of the vector unit, and end the block."""
        k = self.k
        zeroed, ready = k.semaphore("zeroed"), k.semaphore("ready")
        one = k.reg("one", 1)
        k.set(Unit.LOAD, run_bytes=0)
        k.load(ZERO, 0, one, space=Space.ACCUMULATOR, signal=zeroed)
        k.vrow(VectorRow.BIAS, value, splat=True)
        k.vector(0, 0, one, bias=True, wait=zeroed, signal=ready)
        k.set(Unit.STORE, run_bytes=4)
        k.store(self.out, 0, one, space=Space.ACCUMULATOR, wait=ready)
        k.end()

    def result(self, value: Register, *args: int) -> int:
        """What is in the register when the kernel has run with these arguments."""
        self.report(value)
        out = self.device.array(np.zeros(1, np.int32))
        self.device.stream.launch(self.k.build(), [out, *args])
        return int(out.numpy()[0])


@pytest.fixture
def reporting(device: Device) -> Callable[[], ReportingKernel]:
    """Makes kernels that report."""
    return lambda: ReportingKernel(device)
