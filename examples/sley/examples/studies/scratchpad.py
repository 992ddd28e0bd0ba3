"""Scratchpad: how much of it ResNet-50 needs."""

from sley.abi import PRESETS
from sley.examples.studies.study import Line, Result, Study
from sley.examples.studies.workloads import quantised_block
from sley.explore import cost

ROWS = (512, 1024, 2048, 4096, 8192)
BANDWIDTHS = (8, 32)


def run(small: bool) -> Result:
    network = quantised_block() if small else "resnet50-int8"
    rows, lines = [], []
    for bandwidth in BANDWIDTHS:
        cycles = []
        for count in ROWS:
            config = PRESETS["base"].replace(name=f"rows{count}", scratchpad_rows=count)
            found = cost(network, config, timing={"bandwidth": bandwidth})
            rows.append((count * config.row_bytes // 1024, bandwidth, found.cycles, found.bytes))
            cycles.append(found.cycles)
        kilobytes = [count * PRESETS["base"].row_bytes // 1024 for count in ROWS]
        lines.append(Line(f"{bandwidth} bytes a cycle", kilobytes, cycles))
    columns = ("scratchpad, KiB", "bytes a cycle of memory", "cycles", "bytes moved")
    return Result(columns, rows, lines, "scratchpad, KiB", "cycles", kilobytes)


TEXT = """\
One image on int8 on `base` with 512 to 8,192 rows of 32 bytes. The planners of products and convolutions choose
other tiles for each; what is left of a smaller memory is more traffic."""
STUDY = Study("scratchpad", "How much scratchpad does ResNet-50 need?", TEXT, run)
