"""The same work on every way to run a chip, and what must be equal afterwards: results, and the cycle of everything."""

from typing import Any

import numpy as np

from sley.driver.device import Driver
from sley.runtime import blas
from sley.runtime.device.device import Device

STATUS = ("CHIP.PROGRESS", "CHIP.TIME_LO", "QUEUE0.DOORBELL_TIME_LO")


def run_session(transport: Any, shapes: list[list[int]]) -> dict[str, Any]:
    """Products of these shapes, checked; the time of every fence and register that tells one."""
    values = np.random.default_rng(4)
    times = []
    with Device(Driver(transport, hang_cycles=20_000)) as device:
        probed = transport.cycles
        for m, n, k in shapes:
            a, b = (values.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
            product = blas.gemm(device.array(a), device.array(b)).numpy()
            np.testing.assert_array_equal(product, a.astype(np.int32) @ b.astype(np.int32))
            record = device.stream.record()
            times += [record.time, transport.cycles]
        status = {name: device.driver.registers.read(name) for name in STATUS}
        return {"probed": probed, "times": times, "registers": status, "cycles": transport.cycles}
