"""Published energies of whole int8 accelerators, beside a chip of the same size on the same kind of work.

* NVDLA, 2048 MACs: 0.265 pJ a MAC at 16 nm, the average of ResNet-50. Beside it a chip of 32 x 32 x 2 MACs with
  512 KiB of scratchpad in 16 banks, on the 53 convolutions of ResNet-50.
* OpenGeMM, 512 MACs: 0.43 pJ a MAC at 16 nm, products of matrices. Beside it the preset ``base``, 16 x 16 x 2 MACs, on
  a product of 512 x 512 x 512.

Both are without DRAM.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path

from sley.abi.config import ChipConfig, preset
from sley.bench.conv.layers import choose, layers
from sley.bench.conv.measure import measure_conv
from sley.bench.gemm.measure import bench_problem, measure_gemm
from sley.driver import Counters
from sley.runtime import Device
from sley.runtime.energy.activity import MATRIX
from sley.runtime.energy.estimate import Energy, estimate
from sley.runtime.energy.table import published

NODES = ("7nm", "45nm")
"""Tables on both sides of the published chips' technology."""
NANOMETRES = {"7nm": 7.0, "45nm": 45.0}
PUBLISHED_NM = 16.0
MAC_TABLES = (*NODES, "AccelForge", "ZigZag")
"""Tables that have a MAC of int8."""
PRODUCT = 512
OPTIONS = "memory=256M&cycles=on&values=off"
"""Of the model: no counter depends on values."""

LIKE_NVDLA = preset("base").replace(
    name="nvdla2048", array=32, vector_lanes=32, scratchpad_rows=8192, scratchpad_banks=16, accumulator_banks=4
)


@dataclass(frozen=True)
class Compared:
    """A published accelerator, and what a chip like it takes on the chip, without DRAM, by each table.

    Attributes: ``macs``: of the work, those of padding not among them; ``published``: picojoules a MAC; ``estimates``:
    by table.
    """

    name: str
    chip: str
    work: str
    macs: int
    cycles: int
    published: float
    estimates: dict[str, Energy]

    def each(self, node: str) -> float:
        """Picojoules on the chip for each MAC of the work."""
        return self.estimates[node].on_chip / self.macs * 1e12

    def of_unit(self, node: str, unit: str) -> float:
        """Picojoules of a unit for each MAC of the work."""
        return self.estimates[node].by_unit[unit] / self.macs * 1e12

    def between(self, *left_out: str) -> float:
        """Picojoules a MAC at the published technology, without these units: on the straight line between both tables,
        on logarithmic scales of nanometres and energy."""
        small, large = (self.each(node) - sum(self.of_unit(node, unit) for unit in left_out) for node in NODES)
        lengths = [NANOMETRES[node] for node in NODES]
        share = math.log(PUBLISHED_NM / lengths[0]) / math.log(lengths[1] / lengths[0])
        return math.exp(math.log(small) * (1 - share) + math.log(large) * share)

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the most that tables say: the smaller technology with the cheapest MAC of any table, and the
        larger one."""
        small, large = NODES
        (macs,) = (s for s in self.estimates[small].spent if s.activity.work == "int8 MACs")
        cheapest = min(published(node).operation("int8 MAC").low for node in MAC_TABLES)
        return self.each(small) - self.of_unit(small, MATRIX) + macs.activity.amount * cheapest / self.macs, self.each(
            large
        )


def compare(say: Callable[[str], None], names: Sequence[str] = ()) -> list[Compared]:
    """Both accelerators. ``names``: layers of ResNet-50, if not all of them."""
    return [_nvdla(say, names), _opengemm(say)]


def _nvdla(say: Callable[[str], None], names: Sequence[str]) -> Compared:
    found, macs, cycles = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "chip.json"
        file.write_text(LIKE_NVDLA.to_json())
        with Device.open(f"model:{file}?{OPTIONS}") as device:
            for layer in choose(layers(), ["resnet50"], names):
                say(f"{layer.layer} on {LIKE_NVDLA.name}")
                measured = measure_conv(device, layer)
                macs += layer.count * layer.macs
                cycles += layer.count * measured.cycles
                found += layer.count * [_by_tables(measured.count.counters, device.config)]
    estimates = {node: reduce(add, (each[node] for each in found)) for node in NODES}
    return Compared(
        "NVDLA", LIKE_NVDLA.name, "convolutions of ResNet-50", macs, cycles, _of_accelerator("NVDLA"), estimates
    )


def _opengemm(say: Callable[[str], None]) -> Compared:
    say(f"a product of {PRODUCT}³ on base")
    with Device.open(f"model:base?{OPTIONS}") as device:
        measured = measure_gemm(device, bench_problem((PRODUCT,) * 3, "int8", "int8"), counted=True)
        assert measured.count is not None
        estimates = _by_tables(measured.count.counters, device.config)
    work = f"product of {PRODUCT} x {PRODUCT} x {PRODUCT}"
    return Compared("OpenGeMM", "base", work, measured.macs, measured.cycles, _of_accelerator("OpenGeMM"), estimates)


def _by_tables(counters: Counters, config: ChipConfig) -> dict[str, Energy]:
    return {node: estimate(counters, config, table=published(node)) for node in NODES}


def _of_accelerator(name: str) -> float:
    """Picojoules a MAC, of the only row of that node."""
    (row,) = published(name).rows.values()
    return row.middle
