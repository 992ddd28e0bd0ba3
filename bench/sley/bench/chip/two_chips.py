"""Two chips in two threads of one process against one chip alone: seconds for the same products on each.

A ratio near 1 means that each runs at full speed on its core of the host.
"""

import threading
import time

import numpy as np

from sley.runtime import Buffer, Device, blas

ENGINE, SIZE, PRODUCTS, ROUNDS = "fast:base?memory=16M", 512, 4, 3

Job = tuple[Device, Buffer, Buffer]


def prepare() -> Job:
    device, random = Device.open(ENGINE), np.random.default_rng(1)
    a, b = (device.array(random.integers(-128, 128, (SIZE, SIZE), np.int8)) for _ in range(2))
    return device, a, b


def work(device: Device, a: Buffer, b: Buffer) -> None:
    for _ in range(PRODUCTS):
        blas.gemm(a, b)
        device.synchronize()


def seconds(jobs: list[Job]) -> float:
    threads = [threading.Thread(target=work, args=job) for job in jobs]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def measure() -> list[str]:
    """Prints the seconds of each round; nothing is promised, since they depend on the machine."""
    jobs = [prepare(), prepare()]
    seconds(jobs)  # the first product also makes programs
    for _ in range(ROUNDS):
        one, two = seconds(jobs[:1]), seconds(jobs)
        print(f"one chip {one:.2f} s, two at once {two:.2f} s, ratio {two / one:.2f}")
    for device, _, _ in jobs:
        device.close()
    return []
