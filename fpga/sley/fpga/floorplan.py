"""Where the DSP blocks of systolic arrays lie on an ECP5."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from sley.fpga.device import Device

BLOCK = "MULT18X18D"
ELEMENT = re.compile(r"(.*)element_(\d+)_(\d+)\.multiplier.*")
"""Names of an array's blocks: of the array, row and column of the element."""

ROWS = {"ecp5-25f": (13,), "ecp5-45f": (22, 46), "ecp5-85f": (10, 34, 58)}
GROUPS = {
    "ecp5-25f": (4, 13, 22, 33, 42, 51, 60),
    "ecp5-45f": (4, 13, 22, 31, 42, 51, 60, 69, 78),
    "ecp5-85f": (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114),
}
"""Rows of a device's DSP blocks, and columns in which their groups of four begin: nextpnr's places for them."""
OFFSETS = ((0, 4), (0, 1, 4), (0, 1, 4, 5))
"""Columns and numbers of blocks of a group: of two, three, or all. As few as possible: they share four enables, and the
ways to their operands."""

T = TypeVar("T")


def place_multipliers(netlist: Path, device: Device) -> None:
    """Writes into ``netlist``, Yosys' JSON of a design, the places of its arrays' DSP blocks.

    nextpnr keeps to them and puts the logic of each element around them. Left alone it puts blocks wherever there is
    one left, up to 80 columns from their element. Other blocks, and other families, stay as they are.
    """
    if device.places not in ROWS:
        return
    design = json.loads(netlist.read_text())
    blocks = {
        name: cell
        for module in design["modules"].values()
        for name, cell in module["cells"].items()
        if cell["type"] == BLOCK
    }
    for name, place in places(blocks, device).items():
        blocks[name]["attributes"]["BEL"] = place
    netlist.write_text(json.dumps(design))


def places(names: Iterable[str], device: Device) -> dict[str, str]:
    """nextpnr's place of each of these DSP blocks that is an array's.

    Array rows are shared out over as few rows of the device as hold them, those in the middle, and array columns lie
    side by side in each, so that neighbours in the array are neighbours on the device.
    """
    found = [(match[1], int(match[2]), int(match[3]), match[0]) for match in map(ELEMENT.fullmatch, names) if match]
    groups, bands = GROUPS[device.places], ROWS[device.places]
    offsets = next(offsets for offsets in OFFSETS if len(found) <= len(bands) * len(groups) * len(offsets))
    rows = _middle(bands, -(-len(found) // (len(groups) * len(offsets))))
    found.sort()
    placed = {}
    for k, y in enumerate(rows):
        share = found[k * len(found) // len(rows) : (k + 1) * len(found) // len(rows)]
        share.sort(key=lambda block: (block[2], block))
        used = _middle(groups, -(-len(share) // len(offsets)))
        columns = [(group, offset) for group in used for offset in offsets]
        for (group, offset), (*_, name) in zip(columns, share, strict=False):
            placed[name] = f"X{group + offset}/Y{y}/MULT18_{offset}"
    return placed


def _middle(places: Sequence[T], count: int) -> Sequence[T]:
    start = (len(places) - count + 1) // 2
    return places[start : start + count]
