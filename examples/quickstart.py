"""Open a device, copy arrays in, multiply, copy the result out. Usage: quickstart.py [engine URL]"""

import sys

import numpy as np

from sley.runtime import Device, blas

with Device.open(sys.argv[1] if len(sys.argv) > 1 else "fast:base") as device:
    a = device.array(np.arange(12, dtype=np.int8).reshape(3, 4))
    b = device.array(np.ones((4, 5), np.int8))
    print(blas.gemm(a, b).numpy())
