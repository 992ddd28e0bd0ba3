"""The best chip for SmolLM2 that an ECP5-85F holds."""

from itertools import product

from sley.abi import PRESETS, ChipConfig
from sley.examples.studies.study import Cell, Line, Result, Study
from sley.examples.studies.workloads import token
from sley.explore import area_of
from sley.explore.area.model import DEVICE

ARRAYS, ROWS, WAITING = (4, 8, 16), (4096, 8192), (16, 32)
FUNCTIONS = ("exp2", "reciprocal", "round", "rsqrt", "sigmoid")
"""Those that the model calls."""
SUMS = 4096
"""Rows of sums; on the smallest array its kernels need more than 2,048, and 4,096 rows of scratchpad."""
NAMES = ("lut", "ff", "dsp", "bram")


def chips() -> list[ChipConfig]:
    """All of the space."""
    base, found = PRESETS["base"].replace(vector_functions=FUNCTIONS, accumulator_rows=SUMS, queues=2), []
    for array, rows, waiting in product(ARRAYS, ROWS, WAITING):
        sizes = {"array": array, "vector_lanes": array, "scratchpad_rows": rows, "unit_queue": waiting}
        found.append(base.replace(name=f"array{array}-{rows}-{waiting}", **sizes))
    return found


def fits(config: ChipConfig) -> bool:
    """Whether the device has as much of everything."""
    area = area_of(config)
    return all(getattr(area, name) <= most for name, most in zip(NAMES, DEVICE, strict=True))


def run(small: bool) -> Result:
    inside = [config for config in chips() if fits(config)]
    found = [(token(config, small).launch, config) for config in (inside[:2] if small else inside)]
    found.sort(key=lambda pair: (pair[0], area_of(pair[1]).lut))
    outside: list[tuple[str | int, ChipConfig]] = [("too large", config) for config in chips() if not fits(config)]
    rows: list[list[Cell]] = []
    for cycles, config in (*found, *outside):
        area = area_of(config)
        sizes = (int(area.lut), int(area.dsp), int(area.bram))
        kilobytes = config.scratchpad_rows * config.row_bytes // 1024
        rows.append([config.array, kilobytes, config.unit_queue, cycles, *sizes])
    columns = ("array", "scratchpad, KiB", "unit queue", "cycles of a token", "LUTs", "DSP blocks", "block RAMs")
    lines = []
    for array in ARRAYS:
        own = sorted((area_of(config).lut, cycles) for cycles, config in found if config.array == array)
        if own:
            lines.append(Line(f"array {array}", [lut for lut, _ in own], [cycles for _, cycles in own]))
    return Result(columns, rows, lines, "LUTs", "cycles of a token")


TEXT = """\
A token of SmolLM2-135M that sees 256 keys. The chips are like `base`, with the functions that the model calls and
4,096 rows of sums: an array of 4, 8 or 16, 4,096 or 8,192 rows of scratchpad, 16 or 32 instructions in front of
each unit. The device has 83,640 LUTs, 156 DSP blocks and 208 block RAMs; area is that of the
[fitted model](../guides/explore.md). The best one is in the first row."""
STUDY = Study("best-chip", "Which chip for SmolLM2 fits into an ECP5-85F?", TEXT, run)
