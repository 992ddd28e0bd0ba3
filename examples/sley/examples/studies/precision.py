"""int8 against bf16: cycles, bytes and energy of ResNet-50."""

from sley.examples.studies.study import Cell, Line, Result, Study
from sley.examples.studies.workloads import block, quantised_block
from sley.explore import cost
from sley.runtime.energy.estimate import estimate
from sley.runtime.energy.table import published

NODES = (7, 45)
"""Technologies with published energies, in nm."""


def run(small: bool) -> Result:
    networks = {"int8": quantised_block() if small else "resnet50-int8", "bf16": block() if small else "resnet50"}
    rows: list[list[Cell]] = []
    lines = []
    for name, network in networks.items():
        found = cost(network, "base", schedule={"precision": "medium"})
        chip, whole = [], []
        for node in NODES:
            energy = estimate(found.counters, found.config, table=published(f"{node}nm"))
            chip.append(1e3 * energy.on_chip)
            whole.append(1e3 * energy.joules)
        rows.append([name, found.cycles, found.bytes, *chip, *whole])
        lines.append(Line(name, NODES, chip))
    energies = [f"mJ {place}, {node} nm" for place in ("on chip", "with DRAM") for node in NODES]
    columns = ("type", "cycles", "bytes moved", *energies)
    return Result(columns, rows, lines, "technology, nm", "energy of an image on the chip, mJ")


TEXT = """\
One image of ResNet-50 on `base`, quantised by `sley quantize`, and with products of bf16 and sums of fp32.
Energy is counted activity by [published picojoules](../guides/energy.md), without leakage."""
STUDY = Study("precision", "What does int8 save against bf16?", TEXT, run)
