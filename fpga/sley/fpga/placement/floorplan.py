"""Where the DSP blocks of systolic arrays and the block RAMs of a core's memories lie on an ECP5."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sley.fpga.devices.device import Device
from sley.fpga.netlist.edit import edited

MULTIPLIER, MEMORY = "MULT18X18D", "DP16KD"
ELEMENT = re.compile(r"(.*)(?:element|pair)_(\d+)_(\d+)\.multiplier.*")
"""Names of an array's blocks: of the array, row and column of the element, or of the first of two."""
BANK = re.compile(r"(.*)\.(\w+)\.bank(\d+)\.(\d+)\.(\d+)")
"""Names of a core's block RAMs: of the core and its memory, bank, part of its rows and part of its columns."""
STORAGE = re.compile(r".*\.storage\.memory\.\d+\.(\d+)")
"""Names of the block RAMs of a system's memory on chip: of their number."""

ROWS = {"ecp5-25f": (13,), "ecp5-45f": (46, 22), "ecp5-85f": (34, 58, 10)}
GROUPS = {
    "ecp5-25f": (4, 13, 22, 33, 42, 51, 60),
    "ecp5-45f": (4, 13, 22, 31, 42, 51, 60, 69, 78),
    "ecp5-85f": (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114),
}
"""Rows of a device's DSP blocks, those in the middle first, and columns in which their groups of four, and those of
block RAMs, begin: nextpnr's places for them."""
OFFSETS = ((0, 4), (0, 1, 4), (0, 1, 4, 5))
"""Columns and numbers of the DSP blocks of a group: of two, three, or all. As few as possible: they share four enables,
and the paths to their operands."""
MEMORY_ROWS = {"ecp5-85f": {"scratchpad": (22,), "accumulator": (46, 70), "transposer": (82,)}}
"""Rows of block RAMs: those of the scratchpad and the accumulators between, and south of, those of DSP blocks; the last
where wires are left. Smaller devices have too few to choose from."""
MEMORY_NUMBERS = ((0, 2), (0, 1, 2), (0, 1, 2, 3))
"""Numbers of the block RAMs of a group, which are two columns each: of two, three, or all. As few as possible: beside
neighbours more wires end than there are."""

Block = tuple[tuple[object, ...], int, str]
"""What decides in which row a block is, its column, and its name."""


def place_blocks(netlist: Path, device: Device) -> None:
    """Writes into ``netlist``, Yosys' JSON of a design, the places of its arrays' DSP blocks and its cores' block RAMs.

    nextpnr keeps to them and puts the logic of each element around them. Left alone it puts DSP blocks wherever there
    is one left, up to 80 columns from their element, and block RAMs so close to each other that its router does not get
    through. Other blocks, and other families, stay as they are.
    """
    if device.places not in ROWS:
        return
    with edited(netlist) as modules:
        blocks = {
            name: cell
            for module in modules
            for name, cell in module["cells"].items()
            if cell["type"] in (MULTIPLIER, MEMORY)
        }
        for name, place in (array_places(blocks, device) | memory_places(blocks, device)).items():
            blocks[name]["attributes"]["BEL"] = place


def array_places(names: Iterable[str], device: Device) -> dict[str, str]:
    """nextpnr's place of each of these DSP blocks that is an array's.

    Array rows are shared out over as few rows of the device as hold them, those in the middle, and array columns lie
    side by side in each, so that neighbours in the array are neighbours on the device.
    """
    matches = [match for match in map(ELEMENT.fullmatch, names) if match]
    found: list[Block] = [((match[1], int(match[2])), int(match[3]), match[0]) for match in matches]
    spots = _spots(found, ROWS[device.places], GROUPS[device.places], OFFSETS)
    return {name: f"X{group + offset}/Y{y}/MULT18_{offset}" for name, group, offset, y in spots}


def memory_places(names: Iterable[str], device: Device) -> dict[str, str]:
    """nextpnr's place of each of these block RAMs that is of a core's memories.

    Banks are shared out over as few rows of the device as hold them, and the same columns of all banks lie side by side
    in each, in the order of the array's. A memory that needs more rows than there are for it stays as it is. What is
    left of their groups goes to the system's memory on chip, of which hardly any wires end at each block.
    """
    names = list(names)
    placed: dict[str, str] = {}
    beside: list[str] = []
    for memory, rows in MEMORY_ROWS.get(device.places, {}).items():
        matches = [match for match in map(BANK.fullmatch, names) if match and match[2] == memory]
        found: list[Block] = [((match[1], int(match[3]), int(match[4])), int(match[5]), match[0]) for match in matches]
        spots = {name: spot for name, *spot in _spots(found, rows, GROUPS[device.places], MEMORY_NUMBERS)}
        placed |= {name: _ram(*spot) for name, spot in spots.items()}
        groups = sorted({(group, y) for group, _, y in spots.values()})
        beside += [_ram(group, number, y) for group, y in groups for number in MEMORY_NUMBERS[-1]]
    free = [place for place in beside if place not in placed.values()]
    storage = sorted((int(match[1]), match[0]) for match in map(STORAGE.fullmatch, names) if match)
    return placed | {name: place for (_, name), place in zip(storage, free, strict=False)}


def _ram(group: int, number: int, y: int) -> str:
    return f"X{group + 2 * number}/Y{y}/EBR{number}"


def _spots(
    blocks: list[Block], rows: Sequence[int], groups: Sequence[int], choices: Sequence[Sequence[int]]
) -> Iterator[tuple[str, int, int, int]]:
    """For each block its name, its group, which of the group it is, and its row: none if there are more than places.

    The first of ``rows`` are used, as few as hold the blocks with the fewest in a group that hold them at all; of each,
    the groups in the middle.
    """
    of_group = next((numbers for numbers in choices if len(blocks) <= len(rows) * len(groups) * len(numbers)), None)
    if of_group is None:
        return
    used = sorted(rows[: -(-len(blocks) // (len(groups) * len(of_group)))])
    blocks = sorted(blocks)
    for k, y in enumerate(used):
        share = blocks[k * len(blocks) // len(used) : (k + 1) * len(blocks) // len(used)]
        share.sort(key=lambda block: (block[1], block))
        count = -(-len(share) // len(of_group))
        start = (len(groups) - count + 1) // 2
        spots = [(group, number) for group in groups[start : start + count] for number in of_group]
        for (group, number), (*_, name) in zip(spots, share, strict=False):
            yield name, group, number, y
