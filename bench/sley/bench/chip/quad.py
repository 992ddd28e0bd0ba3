"""Four cores against one: the same products on ``base`` and on ``quad``, whose cores share their loads.

Cycles do not depend on the machine that simulates. Fails when ``quad`` is not as many times as fast as promised. Takes
some minutes; ``sley bench quad 512`` runs the products up to that size, in a tenth of the time.
"""

from rich.console import Console
from rich.table import Table

from sley.abi.counters import CounterGroup, ReadCycle
from sley.bench.gemm.measure import GemmMeasurement, bench_problem, measure_gemm
from sley.runtime import Device
from sley.runtime.kernels.gemm.tiling import tiling_text

ONE, FOUR = "fast:base?memory=32M", "fast:quad?memory=32M"
PROMISED = {("int8", 512): 3.6, ("bf16", 512): 3.8, ("int8", 1024): 3.9, ("bf16", 1024): 3.9}
SIZES = [("int8", 256), ("bf16", 256), *PROMISED]


def read_bytes(measured: GemmMeasurement) -> int:
    """What left the memory, for all cores together."""
    assert measured.count is not None
    counters = measured.count.counters
    return counters.chip[CounterGroup.READ][ReadCycle.BEAT] * counters.config.bus_bytes


def measure(largest: int = 1024) -> list[str]:
    """Prints the table; returns what was missed."""
    table = Table("M = N = K", "chip", "cycles", "of peak MACs", "bytes read", "tiling", title=f"{ONE}, {FOUR}")
    missed = []
    with Device.open(ONE) as one, Device.open(FOUR) as four:
        for dtype, size in SIZES:
            if size > largest:
                continue
            problem = bench_problem((size, size, size), dtype)
            cycles = []
            for device in (one, four):
                r = measure_gemm(device, problem, counted=True)
                cycles.append(r.cycles)
                cells = f"{r.cycles:,}", f"{r.share_of_peak:.1%}", f"{read_bytes(r):,}", tiling_text(r.plan)
                table.add_row(f"{size} {dtype}", device.config.name, *cells)
            ratio = cycles[0] / cycles[1]
            promised = PROMISED.get((dtype, size), 0)
            table.add_row("", "ratio", f"{ratio:.3f}", end_section=True)
            if ratio < promised:
                missed.append(f"{size} {dtype}: {ratio:.3f} times as fast, promised {promised}")
    Console().print(table)
    return missed
