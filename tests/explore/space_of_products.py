"""A small space: a product on chips of 4 and 8 columns, with memories of two kinds."""

import numpy as np

from sley.runtime import Device, blas

base = "nano"
objectives = ["cycles", "area", "bytes"]
chip = {"array": [4, 8], "vector_lanes": "array", "scratchpad_rows": {"from": 16, "to": 512, "times": 32}}
memory = {"latency": [16, 64]}


def product(device: Device):
    """64 x 16 by 16 x 32, all ones."""
    a, b = device.array(np.ones((64, 16), np.int8)), device.array(np.ones((16, 32), np.int8))
    return lambda: blas.gemm(a, b)


networks = [product]
