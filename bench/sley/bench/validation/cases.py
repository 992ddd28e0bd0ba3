"""What is compared: products and layers on arrays of int8, on Sley and on its peers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sley.abi.config import ChipConfig, preset
from sley.abi.counters import CounterGroup
from sley.bench.conv.layers import choose, layers
from sley.bench.conv.measure import measure_conv
from sley.bench.gemm.measure import ON_CHIP, bench_problem, measure_gemm
from sley.bench.gemm.scalesim import Array, peers
from sley.bench.gemm.shapes import Size
from sley.bench.validation.zigzag import SUMS, ZigZagCycles, cycles_of
from sley.runtime import Device

ARRAYS = (8, 16, 32)
GEMMS: tuple[Size, ...] = ((64, 64, 64), (256, 256, 256), (1024, 64, 128), (64, 512, 512), (100, 100, 100))
"""M, N and K."""
LAYERS = ("l1_1x1c", "l2_3x3", "l4_3x3", "l4_1x1a")
"""Of ResNet-50: of both windows one with many pixels, and one with 7 x 7."""
OPTIONS = "memory=256M&cycles=on&values=off"
SIMULATED = 30_000
"""Longest run of SCALE-Sim in cycles; beyond it, its formula, with which every run agrees."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Case:
    """A product, or a layer as one: M pixels, N channels out, K taps and channels in.

    Attributes: ``on_chip``: cycles in which the matrix unit had what it worked on; ``whole``: from doorbell to fence,
    with DRAM; ``simulated``: SCALE-Sim was run, and did not stand for its formula.
    """

    array: int
    name: str
    size: Size
    on_chip: int
    whole: int
    scalesim: int
    simulated: bool
    zigzag: ZigZagCycles

    @property
    def macs(self) -> int:
        m, n, k = self.size
        return m * n * k

    @property
    def bound(self) -> int:
        """Cycles of all products at a full array, the same for all three."""
        return -(-self.macs // self.array**2)


def chip(array: int) -> ChipConfig:
    """Sley with an array of int8 alone, a product to an element and cycle, like its peers."""
    return preset("base").replace(
        name=f"int8_{array}",
        array=array,
        operand_types=("int8",),
        vector_lanes=array,
        vector_chains=0,
        vector_functions=(),
        accumulator_rows=SUMS,
    )


def measure_cases(
    scalesim_python: Path,
    say: Say,
    arrays: Sequence[int] = ARRAYS,
    gemms: Sequence[Size] = GEMMS,
    names: Sequence[str] = LAYERS,
) -> list[Case]:
    """Every case on every array. Raises ``ScaleSimError``, ``ZigZagError``."""
    found = []
    for array in arrays:
        measured = list(_sley(array, gemms, names, say))
        sizes = [size for _, size, _, _ in measured]
        simulated = peers(scalesim_python, Array(array, array), sizes, SIMULATED, say)
        say(f"ZigZag {array}x{array}: {len(sizes)} products")
        modelled = cycles_of(array, sizes)
        for (name, size, on_chip, whole), zigzag in zip(measured, modelled, strict=True):
            peer = simulated[size]
            found.append(Case(array, name, size, on_chip, whole, peer.cycles, peer.run, zigzag))
    return found


def _sley(array: int, gemms: Sequence[Size], names: Sequence[str], say: Say) -> Iterator[tuple[str, Size, int, int]]:
    """Name, size, cycles of the matrix unit and of all, of each product and layer."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "chip.json"
        file.write_text(chip(array).to_json())
        with Device.open(f"model:{file}?{OPTIONS}") as device:
            for size in gemms:
                say(f"Sley {array}x{array}: product {' x '.join(map(str, size))}")
                gemm = measure_gemm(device, bench_problem(size), counted=True)
                yield "product", size, gemm.matrix_cycles, gemm.cycles
            for layer in choose(layers(), ["resnet50"], names) if names else ():
                say(f"Sley {array}x{array}: {layer.layer}")
                conv = measure_conv(device, layer)
                matrix = conv.count.counters.cores[0][CounterGroup.MATRIX]
                size = (layer.out**2, layer.outputs, layer.taps**2 * layer.channels)
                yield layer.layer, size, sum(matrix[kind] for kind in ON_CHIP), conv.cycles
