"""Lanes and functions of the vector unit: what attention needs of them."""

from sley.abi import PRESETS
from sley.examples.studies.study import Line, Result, Study
from sley.examples.studies.workloads import attention
from sley.explore import area_of, cost

LANES = (8, 16, 32)
NEEDED = ("exp2", "reciprocal")
"""Functions that attention calls."""


def run(small: bool) -> Result:
    heads, tokens, dim = (1, 64, 32) if small else (12, 512, 64)
    base = PRESETS["base"]
    rows, lines = [], []
    for name, functions in (("all", base.vector_functions), ("of attention", NEEDED)):
        cycles = []
        for lanes in LANES:
            sizes = {"array": lanes, "vector_lanes": lanes, "scratchpad_rows": 8192, "accumulator_rows": 2048}
            config = base.replace(name=f"lanes{lanes}", vector_functions=functions, **sizes)
            found, area = cost(attention(heads, tokens, dim), config), area_of(config)
            bound = 2 * heads * dim * tokens * (tokens + 1) // 2 // lanes**2
            rows.append((lanes, name, found.cycles, f"{bound / found.cycles:.1%}", int(area.lut), int(area.dsp)))
            cycles.append(found.cycles)
        lines.append(Line(f"functions: {name}", LANES, cycles))
    columns = ("lanes", "functions", "cycles", "of the array's bound", "LUTs of the chip", "DSP blocks")
    return Result(columns, rows, lines, "lanes of the vector unit", "cycles", LANES)


TEXT = """\
Causal flash attention of bf16 on `base` with memories of twice as many rows, 12 heads of 512 tokens and 64
elements. A chain takes a lane for each column of the array, so lanes and array grow together, and so does the
bus: a row passes in a cycle. The functions are all of `base`, or those that attention calls. Area is that of the
[fitted model](../guides/explore.md) for an ECP5."""
STUDY = Study("vector-unit", "How many lanes, and which functions, does attention need?", TEXT, run)
