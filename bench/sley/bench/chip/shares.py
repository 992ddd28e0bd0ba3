"""GEMM from memory to memory, doorbell to fence, as a share of peak MACs.

Cycles do not depend on the machine that simulates. Fails when a share is below the one that the project promises.
"""

from rich.console import Console
from rich.table import Table

from sley.bench.gemm.measure import bench_problem, measure_gemm
from sley.runtime import Device

PROMISED = {(256, 256, 256): 0.96}
SHAPES = [(16, 16, 16), (64, 64, 64), (128, 128, 128), (256, 256, 256), (300, 200, 500)]
ENGINE = "fast:base?memory=16M"


def measure() -> list[str]:
    """Prints the table; returns what was missed."""
    table = Table("M x N x K", "result", "cycles", "lower bound", "cycles / bound", "of peak MACs", title=ENGINE)
    missed = []
    with Device.open(ENGINE) as device:
        for int8 in (False, True):
            for shape in SHAPES:
                r = measure_gemm(device, bench_problem(shape, result="int8" if int8 else None))
                ratio, share = f"{r.cycles / r.bound.cycles:.3f}", f"{r.share_of_peak:.1%}"
                name = " x ".join(map(str, shape))
                table.add_row(name, "int8" if int8 else "int32", f"{r.cycles:,}", f"{r.bound.cycles:,}", ratio, share)
                if r.share_of_peak < PROMISED.get(shape, 0):
                    missed.append(f"{name}: {share} of peak, promised {PROMISED[shape]:.0%}")
    Console().print(table)
    return missed
