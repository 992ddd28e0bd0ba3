"""Array 8 to 32: how fast ResNet-50 becomes with more elements at the same memory."""

from sley.abi import PRESETS
from sley.examples.studies.study import Line, Result, Study
from sley.examples.studies.workloads import quantised_block
from sley.explore import cost

SIDES = (8, 16, 32)
BYTES_A_CYCLE = (8, 32)
"""Of memory; the bus of each chip is at least as wide as the smaller one."""


def run(small: bool) -> Result:
    network = quantised_block() if small else "resnet50-int8"
    rows, lines = [], []
    for bandwidth in BYTES_A_CYCLE:
        cycles = []
        for side in SIDES:
            config = PRESETS["base"].replace(name=f"array{side}", array=side, vector_lanes=side)
            found = cost(network, config, timing={"bandwidth": min(bandwidth, config.bus_bytes)})
            share = found.macs / (found.cycles * config.peak_macs)
            rows.append((side, min(bandwidth, config.bus_bytes), found.cycles, f"{share:.1%}", found.bytes))
            cycles.append(found.cycles)
        lines.append(Line(f"{bandwidth} bytes a cycle", SIDES, cycles))
    columns = ("side of the array", "bytes a cycle of memory", "cycles", "of peak", "bytes moved")
    return Result(columns, rows, lines, "side of the array", "cycles", SIDES)


TEXT = """\
ResNet-50 on int8, one image, on `base` with other arrays; rows of both memories stay as many, so they become
wider with the array. Memory moves 8 or 32 bytes a cycle, or what the bus has. *Of peak*: multiply-accumulates,
with those of padding, of what the array could do in this time."""
STUDY = Study("array-size", "How much faster is an array of 32 x 32 than one of 8 x 8?", TEXT, run)
