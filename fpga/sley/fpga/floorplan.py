"""Where the DSP blocks of systolic arrays and the block RAMs of a core's memories lie on an ECP5."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from sley.fpga.device import Device

MULTIPLIER, MEMORY = "MULT18X18D", "DP16KD"
ELEMENT = re.compile(r"(.*)element_(\d+)_(\d+)\.multiplier.*")
"""Names of an array's blocks: of the array, row and column of the element."""
BANK = re.compile(r"(.*)\.(scratchpad|accumulator)\.bank(\d+)\.(\d+)\.(\d+)")
"""Names of a core's block RAMs: of the core and its memory, bank, part of its rows and part of its columns."""

ROWS = {"ecp5-25f": (13,), "ecp5-45f": (22, 46), "ecp5-85f": (10, 34, 58)}
GROUPS = {
    "ecp5-25f": (4, 13, 22, 33, 42, 51, 60),
    "ecp5-45f": (4, 13, 22, 31, 42, 51, 60, 69, 78),
    "ecp5-85f": (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114),
}
"""Rows of a device's DSP blocks, and columns in which their groups of four, and those of block RAMs, begin: nextpnr's
places for them."""
OFFSETS = ((0, 4), (0, 1, 4), (0, 1, 4, 5))
"""Columns and numbers of the DSP blocks of a group: of two, three, or all. As few as possible: they share four enables,
and the ways to their operands."""
MEMORY_ROWS = {"ecp5-85f": {"scratchpad": 22, "accumulator": 46}}
"""Rows of block RAMs between those of DSP blocks: a memory is beside the edge of the array that it feeds. Smaller
devices have too few to choose from."""
MEMORY_NUMBERS = ((0, 2), (0, 1, 2), (0, 1, 2, 3))
"""Numbers of the block RAMs of a group, which are two columns each: of two, three, or all. As few as possible: beside
neighbours more wires end than there are."""

T = TypeVar("T")


def place_blocks(netlist: Path, device: Device) -> None:
    """Writes into ``netlist``, Yosys' JSON of a design, the places of its arrays' DSP blocks and its cores' block RAMs.

    nextpnr keeps to them and puts the logic of each element around them. Left alone it puts DSP blocks wherever there
    is one left, up to 80 columns from their element, and block RAMs so close to each other that its router does not get
    through. Other blocks, and other families, stay as they are.
    """
    if device.places not in ROWS:
        return
    design = json.loads(netlist.read_text())
    blocks = {
        name: cell
        for module in design["modules"].values()
        for name, cell in module["cells"].items()
        if cell["type"] in (MULTIPLIER, MEMORY)
    }
    for name, place in (places(blocks, device) | memory_places(blocks, device)).items():
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


def memory_places(names: Iterable[str], device: Device) -> dict[str, str]:
    """nextpnr's place of each of these block RAMs that is of a core's memories.

    A memory has a row of the device, in which the same columns of all its banks lie side by side, in the order of the
    array's. One that needs more than a row stays as it is.
    """
    groups, placed = GROUPS[device.places], {}
    for memory, y in MEMORY_ROWS.get(device.places, {}).items():
        matches = [match for match in map(BANK.fullmatch, names) if match and match[2] == memory]
        matches.sort(key=lambda match: (int(match[5]), match[1], int(match[3]), int(match[4])))
        found = [match[0] for match in matches]
        numbers = next((numbers for numbers in MEMORY_NUMBERS if len(found) <= len(groups) * len(numbers)), ())
        used = _middle(groups, -(-len(found) // max(len(numbers), 1)))
        columns = [(group, number) for group in used for number in numbers]
        for (group, number), name in zip(columns, found, strict=False):
            placed[name] = f"X{group + 2 * number}/Y{y}/EBR{number}"
    return placed


def _middle(places: Sequence[T], count: int) -> Sequence[T]:
    start = (len(places) - count + 1) // 2
    return places[start : start + count]
