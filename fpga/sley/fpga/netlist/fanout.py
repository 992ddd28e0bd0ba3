"""Copies of what drives many cells, each for the cells of one neighbourhood."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sley.fpga.devices.family import Family
from sley.fpga.netlist.edit import edited

MOST = 64
"""Cells that one driver may lead to, unless it resets them."""
MOST_RESETS = 512
"""Flip-flops that one driver may reset: all eight of a tile have the same reset or none, so copies keep them apart."""
OUTPUTS = {"ecp5": {"LUT4": "Z", "TRELLIS_FF": "Q"}}
"""What is copied, by family, and its output."""
RESET, ENABLE = "LSR", "CE"
CLOCKS = frozenset({"CLK", "WCK", "CLKA", "CLKB", "CLKI", "CLKR", "CLKW", "CLK0", "SCLK"})


def copy_drivers(netlist: Path, family: Family, most: int = MOST, most_resets: int = MOST_RESETS) -> int:
    """Copies each LUT and flip-flop that leads to more than ``most`` cells, or resets more than ``most_resets``.

    Other families than ECP5 stay as they are. ``netlist`` is Yosys' JSON of a flat design, which is rewritten. The
    cells are shared out in the order of their names, so that those of a block stay together. Those that are enabled or
    reset have shares of their own: what decides of the next cycle does not lie far off with the data. Clocks stay.
    Returns how many copies were made.
    """
    outputs = OUTPUTS.get(family.name)
    if outputs is None:
        return 0
    with edited(netlist) as modules:
        return sum(_copy_in(module, outputs, most, most_resets) for module in modules)


def _copy_in(module: dict[str, Any], outputs: Mapping[str, str], most: int, most_resets: int) -> int:
    cells: dict[str, Any] = module["cells"]
    ends: dict[int, list[tuple[str, str, int]]] = defaultdict(list)
    for name in sorted(cells):
        for pin, bits in cells[name]["connections"].items():
            if cells[name]["port_directions"][pin] != "output":
                for index, bit in enumerate(bits):
                    ends[bit].append((name, pin, index))
    ports = {bit for port in module["ports"].values() for bit in port["bits"]}
    unused = 1 + max(bit for net in module["netnames"].values() for bit in net["bits"] if isinstance(bit, int))
    made = 0
    for name, cell in sorted(cells.items()):
        if cell["type"] not in outputs:
            continue
        output = outputs[cell["type"]]
        (bit,) = cell["connections"][output]
        if bit in ports or any(pin in CLOCKS for _, pin, _ in ends[bit]):
            continue
        resets = [end for end in ends[bit] if end[1] == RESET]
        enables = [end for end in ends[bit] if end[1] == ENABLE]
        others = [end for end in ends[bit] if end[1] not in (RESET, ENABLE)]
        if len(others) + len(enables) <= most and len(resets) <= most_resets:
            continue
        groups = [*_shares(others, most), *_shares(enables, most), *_shares(resets, most_resets)]
        for number, group in enumerate(groups[1:], 1):
            copy = f"{name}_copy{number}"
            connections = {pin: [*bits] for pin, bits in cell["connections"].items()} | {output: [unused]}
            cells[copy] = {**cell, "connections": connections}
            module["netnames"][f"{copy}_{output}"] = {"hide_name": 1, "bits": [unused], "attributes": {}}
            for end, pin, index in group:
                cells[end]["connections"][pin][index] = unused
            unused += 1
        made += len(groups) - 1
    return made


def _shares(ends: list[tuple[str, str, int]], most: int) -> list[list[tuple[str, str, int]]]:
    """As few shares as hold all ends, of nearly one size."""
    count = -(-len(ends) // most)
    return [ends[len(ends) * k // count : len(ends) * (k + 1) // count] for k in range(count)]
