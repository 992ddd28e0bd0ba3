"""The best chip for SmolLM2 that an ECP5-85F holds."""

from itertools import product

from sley.abi import PRESETS, ChipConfig
from sley.examples.studies.study import Line, Result, Study
from sley.examples.studies.workloads import token
from sley.explore import area_of
from sley.explore.area.model import DEVICE

ARRAYS, ROWS, SUMS = (4, 8, 16), (1024, 2048, 4096), (256, 512, 1024)
NAMES = ("lut", "ff", "dsp", "bram")


def chips() -> list[ChipConfig]:
    """All of the space."""
    base, found = PRESETS["base"], []
    for array, rows, sums in product(ARRAYS, ROWS, SUMS):
        sizes = {"array": array, "vector_lanes": array, "scratchpad_rows": rows, "accumulator_rows": sums}
        found.append(base.replace(name=f"array{array}-{rows}-{sums}", **sizes))
    return found


def fits(config: ChipConfig) -> bool:
    """Whether the device has as much of everything."""
    area = area_of(config)
    return all(getattr(area, name) <= most for name, most in zip(NAMES, DEVICE, strict=True))


def run(small: bool) -> Result:
    inside = [config for config in chips() if fits(config)]
    found = [(token(config, small).launch, config) for config in (inside[:2] if small else inside)]
    found.sort(key=lambda pair: (pair[0], area_of(pair[1]).lut))
    rows = []
    for cycles, config in found:
        area = area_of(config)
        memories = [config.scratchpad_rows * config.row_bytes, config.accumulator_rows * config.array * 4]
        sizes = (int(area.lut), int(area.dsp), int(area.bram))
        rows.append((config.array, *(bytes // 1024 for bytes in memories), cycles, *sizes))
    columns = ("array", "scratchpad, KiB", "accumulators, KiB", "cycles of a token", "LUTs", "DSP blocks", "block RAMs")
    lines = []
    for array in ARRAYS:
        own = sorted((area_of(config).lut, cycles) for cycles, config in found if config.array == array)
        if own:
            lines.append(Line(f"array {array}", [lut for lut, _ in own], [cycles for _, cycles in own]))
    return Result(columns, rows, lines, "LUTs", "cycles of a token")


TEXT = """\
A token of SmolLM2-135M that sees 256 keys, on all chips like `base` with an array of 4, 8 or 16, 1,024 to 4,096
rows of scratchpad and 256 to 1,024 rows of sums that the device has room for, by the [fitted
model](../guides/explore.md) of area. The best one is in the first row."""
STUDY = Study("best-chip", "Which chip for SmolLM2 fits into an ECP5-85F?", TEXT, run)
