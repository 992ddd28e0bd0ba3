"""A list of matrix products, each measured on a device and compared with its bound and with SCALE-Sim."""

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.bench.gemm.measure import GemmMeasurement, bench_problem, measure_gemm
from sley.bench.gemm.scalesim import Array, Peer
from sley.bench.gemm.shapes import Layer, Size
from sley.runtime import Device
from sley.runtime.kernels.gemm.limits import check_problem, device_bytes
from sley.runtime.kernels.gemm.problem import Problem


@dataclass(frozen=True)
class Result:
    """A layer, what its product took, and what it takes on SCALE-Sim's arrays, with the rows that were run."""

    layer: Layer
    measured: GemmMeasurement
    peers: Mapping[Array, Peer]

    @property
    def whole(self) -> bool:
        """Whether all rows were run."""
        return self.measured.problem.m == self.layer.size[0]

    def ratio(self, array: Array) -> float:
        """Cycles of SCALE-Sim for each one of ours, doorbell to fence."""
        return self.peers[array].cycles / self.measured.cycles

    def matrix_ratio(self, array: Array) -> float:
        """Cycles of SCALE-Sim, whose operands are on chip, for each one that our matrix unit had work at hand."""
        return self.peers[array].cycles / self.measured.matrix_cycles


def size_to_run(layer: Layer, max_macs: int, config: ChipConfig) -> Size:
    """The layer's product, with as many rows as the budget allows: whole multiples of the array's, but at least one."""
    m, n, k = layer.size
    rows = max(max_macs // (n * k), 1)
    if rows >= m:
        return layer.size
    return (rows // config.array * config.array or rows, n, k)


def problems(
    device: Device, layers: Iterable[Layer], max_macs: int, dtype: str, result: str | None, say: Callable[[str], None]
) -> dict[Layer, Problem]:
    """The product of each layer, without those that need more memory than there is. Raises what ``blas.gemm`` does for
    one that the chip cannot do."""
    found = {}
    for layer in layers:
        problem = bench_problem(size_to_run(layer, max_macs, device.config), dtype, result)
        check_problem(device.config, problem)
        if (needed := device_bytes(problem)) > device.memory.largest_free:
            say(f"left out: {layer.family} {layer.name} needs {needed:,} bytes of device memory; memory=... in -e")
        else:
            found[layer] = problem
    return found


def measure(device: Device, problems: Iterable[Problem], say: Callable[[str], None]) -> dict[Problem, GemmMeasurement]:
    """Every product once, with the program in place. Every result is compared with numpy's."""
    found = {}
    todo = list(dict.fromkeys(problems))
    for number, p in enumerate(todo, 1):
        say(f"{number} of {len(todo)}: {p.m} x {p.n} x {p.k}")
        found[p] = measure_gemm(device, p, counted=True)
    return found


def arrays_to_compare(config: ChipConfig, dtype: ElementType) -> list[Array]:
    """SCALE-Sim's array with the chip's elements, and the one with the chip's MACs if an element makes several.

    SCALE-Sim has a single array, so a chip with several cores has no peer.
    """
    if config.cores > 1:
        return []
    return list(dict.fromkeys(Array(rows, config.array) for rows in (config.array, config.fold_depth(dtype))))


def distinct(results: Iterable[Result]) -> list[Result]:
    """The first result of every size: several layers may share one."""
    return list({r.measured.problem: r for r in reversed(list(results))}.values())[::-1]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def write_csv(path: Path, engine: str, results: Sequence[Result]) -> None:
    """One line for each layer, with every number."""
    lines = [dict(_numbers(engine, result)) for result in results]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)


def _numbers(engine: str, result: Result) -> Iterator[tuple[str, object]]:
    layer, measured = result.layer, result.measured
    yield "engine", engine
    yield from zip(("family", "layer", "M", "N", "K"), (layer.family, layer.name, *layer.size), strict=True)
    yield "count", layer.count
    yield "rows_run", measured.problem.m
    yield "dtype", measured.problem.dtype.name.lower()
    yield "result", measured.problem.epilogue.result.info.numpy
    yield "cycles", measured.cycles
    yield "estimate", measured.plan.estimate
    yield "matrix_cycles", measured.matrix_cycles
    yield "share_of_peak", f"{measured.share_of_peak:.6f}"
    yield "share_of_beats", f"{measured.share_of_beats:.6f}"
    yield "bound", measured.bound.cycles
    yield "bound_compute", measured.bound.compute
    yield "bound_read", measured.bound.read
    yield "bound_write", measured.bound.write
    for array, peer in result.peers.items():
        yield f"scalesim_{array}", peer.cycles
        yield f"scalesim_{array}_source", "run" if peer.run else "formula"
        yield f"scalesim_{array}_ratio", f"{result.ratio(array):.6f}"
        yield f"scalesim_{array}_matrix_ratio", f"{result.matrix_ratio(array):.6f}"
