"""What more memory ports would bring to four cores, by the exact model.

A chip has one memory port. Four cores with two ports, two cores at each, that share nothing but the work are two chips
of two cores, each with half of the work and a memory of its own: so the cycles of the half on such a chip are those of
the whole on the one with two ports. What cores of both halves read is read at both ports, as it would be.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from ml_dtypes import bfloat16

from sley.abi.config import ChipConfig, preset
from sley.driver import Driver
from sley.runtime import Device, nn
from sley.runtime.device.buffer import Buffer
from sley.sim.engines.options import EngineOptions
from sley.sim.engines.timed import TimedTransport
from sley.sim.memory.dram import DramTiming

MEMORY_BYTES = 64 << 20
QUAD = preset("quad")
PARTS = {1: QUAD, 2: QUAD.replace(name="half", cores_y=1), 4: QUAD.replace(name="quarter", cores_x=1, cores_y=1)}
"""By the number of ports: the cores at each of them."""

Make = Callable[[Device, int], Callable[[], object]]
"""Makes the arrays of one part in so many, and returns what runs on them."""


@dataclass(frozen=True)
class Workload:
    """Work that divides into equal parts without communication. Attributes: ``name``, ``make``."""

    name: str
    make: Make


def _matrix(device: Device, rows: int, columns: int, dtype: type) -> Buffer:
    return device.empty((rows, columns), dtype)


def _linear(rows: int, outputs: int, inputs: int, dtype: type, divided: str) -> Make:
    """x [rows, inputs] · weight^T [inputs, outputs], divided along its rows or its outputs."""

    def make(device: Device, parts: int) -> Callable[[], object]:
        m, n = (rows // parts, outputs) if divided == "rows" else (rows, outputs // parts)
        x, weight = _matrix(device, m, inputs, dtype), _matrix(device, n, inputs, dtype)
        out = _matrix(device, m, n, np.int32 if dtype is np.int8 else dtype)
        return lambda: nn.linear(x, weight, out=out)

    return make


def _sum(elements: int) -> Make:
    def make(device: Device, parts: int) -> Callable[[], object]:
        a, b, out = (_matrix(device, elements // parts // 1024, 1024, bfloat16) for _ in range(3))
        return lambda: nn.add(a, b, out=out)

    return make


def _softmax(rows: int, columns: int) -> Make:
    def make(device: Device, parts: int) -> Callable[[], object]:
        x, out = (_matrix(device, rows // parts, columns, bfloat16) for _ in range(2))
        return lambda: nn.softmax(x, out=out)

    return make


def _attention(heads: int, length: int, dim: int) -> Make:
    def make(device: Device, parts: int) -> Callable[[], object]:
        q, k, v, out = (device.empty((1, heads // parts, length, dim), bfloat16) for _ in range(4))
        return lambda: nn.attention(q, k, v, out=out)

    return make


def workloads(size: int = 512) -> list[Workload]:
    """From products of ``size``, which reuse what they read, to work that reads everything once."""
    return [
        Workload(f"product {size}³, int8", _linear(size, size, size, np.int8, "rows")),
        Workload(f"product {size}³, bf16", _linear(size, size, size, bfloat16, "rows")),
        Workload(f"attention, 8 heads of {size // 2} x 64, bf16", _attention(8, size // 2, 64)),
        Workload(f"16 tokens x {2 * size} x {2 * size}, bf16", _linear(16, 2 * size, 2 * size, bfloat16, "outputs")),
        Workload(f"1 token x {2 * size} x {2 * size}, bf16", _linear(1, 2 * size, 2 * size, bfloat16, "outputs")),
        Workload(f"softmax {2 * size} x {size // 2}, bf16", _softmax(2 * size, size // 2)),
        Workload(f"sum of {size * size:,} elements, bf16", _sum(size * size)),
    ]


def cycles(config: ChipConfig, work: Workload, parts: int, dram: DramTiming) -> int:
    """Of one part of the work, doorbell to fence, the second time it runs."""
    with closing(Device(Driver(TimedTransport(config, EngineOptions(MEMORY_BYTES, dram), values=False)))) as device:
        run = work.make(device, parts)
        for _ in range(2):
            with device.stream.timed() as timing:
                run()
    return timing.cycles


def study(works: Sequence[Workload], bandwidth: int = 0) -> Iterator[tuple[Workload, list[int]]]:
    """Cycles of each with one, two and four ports. ``bandwidth``: bytes a cycle of each port's memory, 0: the bus's."""
    dram = DramTiming(bandwidth=bandwidth)
    for work in works:
        yield work, [cycles(config, work, ports, dram) for ports, config in PARTS.items()]
