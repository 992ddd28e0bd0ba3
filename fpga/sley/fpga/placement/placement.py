"""A placed design of an ECP5 as nextpnr writes it: where each cell lies, and where else it may."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sley.fpga.placement.floorplan import MULTIPLIER

LUT, FLIP_FLOP, WRITE_PORT = "TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW"
SLICES = "ABCD"
PLACE = re.compile(r"X(\d+)/Y(\d+)/(.*)")
FIXED = f"{4:032b}"
"""nextpnr's strength of a place that its placer leaves alone."""
RUN_SETTINGS = ("target_freq", "timing/allowFail", "placer")
"""nextpnr's settings from ``--freq``, ``--timing-allow-fail`` and ``--placer``."""
SHARED = ("CLK", "CE", "RST")
"""Signals of which the multipliers of a group have four each, at most."""
LOGIC, CARRY, RAM, RAM_WRITE = "LOGIC", "CCU2", "DPRAM", "RAMW_BLOCK"
LUT_RAM = (RAM, RAM_WRITE)
"""nextpnr's modes of LUTs: as such, in a carry chain, as RAM or taken by its write port."""
IN_SLICE = ("K0", "K1", "FF0", "FF1", "RAMW")
"""nextpnr's names of what is in a slice."""
JOINED = ("M", "OFX", "F1", "FXA", "FXB")
"""Ports by which LUTs are joined to wider ones, which have to lie beside each other."""
Slot = tuple[str, int]
"""Of a tile: the slice, and which half of it."""
Tile = tuple[int, int]
"""Column and row."""


@dataclass(frozen=True)
class Movable:
    """What moves as one, by the numbers of its cells: a LUT, a LUT with the flip-flop that it feeds, or a flip-flop."""

    lut: int | None
    flip_flop: int | None

    @property
    def cells(self) -> tuple[int, ...]:
        return tuple(cell for cell in (self.lut, self.flip_flop) if cell is not None)

    @property
    def offsets(self) -> tuple[int, ...]:
        """All lie in one tile."""
        return (0,) * len(self.cells)


@dataclass(frozen=True)
class Chain:
    """A carry chain with the flip-flops that it feeds, and how many columns each of them lies behind the first.

    It moves as a whole, into the same slots of other tiles.
    """

    cells: tuple[int, ...]
    offsets: tuple[int, ...]


class Placement:
    """Cells by number, in the order of nextpnr's file: ``names``, ``kinds`` (nextpnr's types), and the tiles in which
    they lie, in columns ``x`` and rows ``y``, with their ``slots`` there.

    ``movables`` and ``chains`` are what may be moved: not what is joined to neighbours by other wires of a tile, RAM
    and wide LUTs, and nothing that has a place by name. ``drivers`` has the cell that drives each of nextpnr's nets,
    ``feeds`` the LUT in front of each flip-flop, in the same slot, or None, and ``rules`` what each flip-flop shares
    with all others of its tile, and with the other one of its slice.
    """

    def __init__(self, design: dict[str, Any]) -> None:
        self._design = design
        (self._module,) = design["modules"].values()
        self.cells: list[Mapping[str, Any]] = list(self._module["cells"].values())
        self.names = list(self._module["cells"])
        self.kinds = [cell["type"] for cell in self.cells]
        self.drivers = {
            net: number
            for number, cell in enumerate(self.cells)
            for port, nets in cell["connections"].items()
            if cell["port_directions"][port] == "output"
            for net in nets
        }
        places = [PLACE.fullmatch(cell["attributes"].get("NEXTPNR_BEL", "")) for cell in self.cells]
        self.x = np.array([int(place[1]) if place else 0 for place in places])
        self.y = np.array([int(place[2]) if place else 0 for place in places])
        self.slots = [place[3] if place else "" for place in places]
        self._tiles: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
        self._fill()
        self.feeds = {number: self._feed(number) for number, kind in enumerate(self.kinds) if kind == FLIP_FLOP}
        self.rules = {number: _rules(self.cells[number]) for number in self.feeds}
        self._fed = {lut: flip_flop for flip_flop, lut in self.feeds.items() if lut is not None}
        self.movables = list(self._movables())
        self._of_cell = {cell: movable for movable in self.movables for cell in movable.cells}
        self.chains = list(self._chains())
        self.logic = np.zeros((self.x.max() + 1, self.y.max() + 1), bool)
        for place in self._tiles:
            self.logic[place] = True

    @classmethod
    def read(cls, path: Path) -> "Placement":
        """Of what ``nextpnr-ecp5 --no-route --write`` has written."""
        return cls(json.loads(path.read_text()))

    def write(self, path: Path, timing: bool = True) -> None:
        """For ``nextpnr-ecp5 --no-pack``: its placer checks all places and leaves them as they are; its router minds
        ``timing``, or wires alone.

        What the run that has placed was told is left out: it would count in place of what the next one is told.
        """
        for name in RUN_SETTINGS:
            self._module["settings"].pop(name, None)
        self._module["settings"]["timing_driven"] = f"{timing:032b}"
        for number, cell in enumerate(self.cells):
            if self.slots[number]:
                place = f"X{self.x[number]}/Y{self.y[number]}/{self.slots[number]}"
                cell["attributes"].update(NEXTPNR_BEL=place, BEL_STRENGTH=FIXED)
            if self.kinds[number] == MULTIPLIER:  # the check reads ports that it does not make when nothing is there
                for port in (f"{signal}{k}" for signal in SHARED for k in range(4)):
                    cell["connections"][port] = cell["connections"].get(port) or ["x"]
        path.write_text(json.dumps(self._design))

    def mode(self, lut: int) -> str:
        """nextpnr's mode of a LUT."""
        mode: str = self.cells[lut]["parameters"].get("MODE", LOGIC)
        return mode

    def logic_within(self, x: int, y: int, reach: int) -> Iterator[Tile]:
        """The tiles of logic at most so many columns and rows from there."""
        columns, rows = self.logic.shape
        for column in range(max(0, x - reach), min(columns, x + reach + 1)):
            for row in range(max(0, y - reach), min(rows, y + reach + 1)):
                if self.logic[column, row]:
                    yield column, row

    def slot_of(self, cell: int) -> Slot:
        """Where a LUT or flip-flop lies in its tile."""
        name = self.slots[cell]
        return name[len("SLICE")], int(name[-1])

    def slot(self, movable: Movable, x: int, y: int) -> Slot | None:
        """A free slot of a tile in which ``movable`` may lie, or None."""
        return next((slot for slot, leaving in self.slots_of(movable, x, y) if not leaving), None)

    def slots_of(self, movable: Movable, x: int, y: int) -> Iterator[tuple[Slot, list[Movable]]]:
        """The slots of a tile in which ``movable`` may lie when others have left, and which."""
        tile = self._tiles[x, y]
        conflicting = self._conflicting(movable.flip_flop, tile)
        for name in SLICES:
            if movable.lut is not None and any(self.bound(tile.get(f"SLICE{name}.K{half}")) for half in (0, 1)):
                continue
            for half in (0, 1):
                leaving = [*conflicting]
                lut, flip_flop = tile.get(f"SLICE{name}.K{half}"), tile.get(f"SLICE{name}.FF{half}")
                if lut is not None and (movable.lut is not None or self.wide(lut)):
                    leaving.append(lut)
                if movable.flip_flop is not None:
                    if flip_flop is not None:
                        leaving.append(flip_flop)
                    other = tile.get(f"SLICE{name}.FF{1 - half}")
                    if other is not None and self.rules[other][1] != self.rules[movable.flip_flop][1]:
                        leaving.append(other)
                leaving = [cell for cell in leaving if cell not in movable.cells]
                if all(cell in self._of_cell for cell in leaving):
                    yield (name, half), list(dict.fromkeys(self._of_cell[cell] for cell in leaving))

    def move(self, movable: Movable, x: int, y: int, slot: Slot) -> None:
        """To a slot that is free."""
        for cell in movable.cells:
            del self._tile(cell)[self.slots[cell]]
        self._set(movable, x, y, slot)
        for cell in movable.cells:
            self._tile(cell)[self.slots[cell]] = cell

    def occupants(self, chain: Chain, x: int, y: int) -> list[Movable] | None:
        """What has to leave for ``chain`` to begin in this tile; None if that would not do."""
        in_its_slices: list[int] = []
        conflicting: list[int] = []
        for cell, offset in zip(chain.cells, chain.offsets, strict=True):
            place = x + offset, y
            if not 0 <= place[0] < len(self.logic) or not self.logic[place]:
                return None
            tile, (slice_, _) = self._tiles[place], self.slots[cell].split(".")
            in_its_slices += [tile[f"{slice_}.{name}"] for name in IN_SLICE if f"{slice_}.{name}" in tile]
            conflicting += self._conflicting(cell if self.kinds[cell] == FLIP_FLOP else None, tile)
        others = [other for other in (*in_its_slices, *conflicting) if other not in chain.cells]
        if not all(other in self._of_cell for other in others):
            return None
        return list(dict.fromkeys(self._of_cell[other] for other in others))

    def move_chain(self, chain: Chain, x: int, y: int) -> None:
        """To where ``occupants`` has said that nothing is in the way any more."""
        for cell in chain.cells:
            del self._tile(cell)[self.slots[cell]]
        for cell, offset in zip(chain.cells, chain.offsets, strict=True):
            self.x[cell], self.y[cell] = x + offset, y
            self._tile(cell)[self.slots[cell]] = cell

    def interchangeable(self, movable: Movable, x: int, y: int) -> Iterator[Movable]:
        """What of a tile may change places with ``movable``."""
        for cell in self._tiles[x, y].values():
            other = self._of_cell.get(cell)
            if other and cell == other.cells[0] and self._shape(other) == self._shape(movable):
                yield other

    def exchange(self, one: Movable, other: Movable) -> None:
        """Two that are alike change places."""
        pairs = list(zip(one.cells, other.cells, strict=True))
        for a, b in pairs:
            self.x[a], self.x[b] = self.x[b], self.x[a]
            self.y[a], self.y[b] = self.y[b], self.y[a]
            self.slots[a], self.slots[b] = self.slots[b], self.slots[a]
            for cell in (a, b):
                self._tile(cell)[self.slots[cell]] = cell

    def _shape(self, movable: Movable) -> tuple[Any, ...]:
        """What has to be the same for two to change places."""
        rules = None if movable.flip_flop is None else self.rules[movable.flip_flop]
        return movable.lut is not None, rules

    def rearrange(self, places: Mapping[Movable, tuple[int, int, Slot]]) -> None:
        """All that moves at once: to column, row and slot."""
        for movable, place in places.items():
            self._set(movable, *place)
        self._tiles.clear()
        self._fill()

    def places(self) -> tuple[Any, Any, list[str]]:
        """Of all cells, to come back to."""
        return self.x.copy(), self.y.copy(), list(self.slots)

    def restore(self, places: tuple[Any, Any, list[str]]) -> None:
        """All cells to where they were."""
        moved = [cell for movable in self.movables for cell in movable.cells]
        moved += [cell for chain in self.chains for cell in chain.cells]
        for cell in moved:
            del self._tile(cell)[self.slots[cell]]
        self.x, self.y, self.slots = places[0].copy(), places[1].copy(), list(places[2])
        for cell in moved:
            self._tile(cell)[self.slots[cell]] = cell

    def _set(self, movable: Movable, x: int, y: int, slot: Slot) -> None:
        for cell in movable.cells:
            self.x[cell], self.y[cell] = x, y
            self.slots[cell] = f"SLICE{slot[0]}.{'K' if cell == movable.lut else 'FF'}{slot[1]}"

    def _fill(self) -> None:
        """The tiles, with what lies in slots."""
        for number, kind in enumerate(self.kinds):
            if kind in (LUT, FLIP_FLOP, WRITE_PORT):
                self._tile(number)[self.slots[number]] = number

    def _tile(self, cell: int) -> dict[str, int]:
        return self._tiles[int(self.x[cell]), int(self.y[cell])]

    def _feed(self, flip_flop: int) -> int | None:
        """The LUT in front of a flip-flop, in the same slot."""
        nets = self.cells[flip_flop]["connections"].get("DI")
        return self.drivers[nets[0]] if nets else None

    def _movables(self) -> Iterator[Movable]:
        joined = {
            self.drivers.get(net)
            for cell in self.cells
            if cell["type"] == LUT
            for port in JOINED
            if cell["port_directions"].get(port) == "input"
            for net in cell["connections"].get(port, ())
        }
        for number, cell in enumerate(self.cells):
            if "BEL" in cell["attributes"]:
                continue
            if self.kinds[number] == LUT and number not in joined and not self.bound(number):
                if not any(cell["connections"].get(port) for port in JOINED):
                    yield Movable(number, self._fed.get(number))
            elif self.kinds[number] == FLIP_FLOP and self.feeds[number] is None:
                yield Movable(None, number)

    def _chains(self) -> Iterator[Chain]:
        carries = [cell for cell, kind in enumerate(self.kinds) if kind == LUT and self.mode(cell) == CARRY]
        following = {}  # the cell behind each one
        for cell in carries:
            nets = self.cells[cell]["connections"].get("FCI")
            if nets and nets[0] in self.drivers:
                following[self.drivers[nets[0]]] = cell
        for first in set(carries) - set(following.values()):
            luts = [first]
            while luts[-1] in following:
                luts.append(following[luts[-1]])
            cells = [cell for lut in luts for cell in (lut, self._fed.get(lut)) if cell is not None]
            if not any("BEL" in self.cells[cell]["attributes"] for cell in cells):
                offsets = (int(self.x[cell] - self.x[first]) for cell in cells)
                yield Chain(tuple(cells), tuple(offsets))

    def bound(self, cell: int | None) -> bool:
        """Whether a cell is a LUT of a carry chain or of RAM, which keeps others out of its slice."""
        return cell is not None and self.mode(cell) != LOGIC

    def wide(self, cell: int | None) -> bool:
        """Whether a LUT takes the wire M of its slot, the only one to a flip-flop without a LUT."""
        return cell is not None and bool(self.cells[cell]["connections"].get("M"))

    def _conflicting(self, flip_flop: int | None, tile: Mapping[str, int]) -> list[int]:
        """What may not be in a tile with a flip-flop: the flip-flops of one share clock and reset, and LUT RAM takes
        both for itself."""
        if flip_flop is None:
            return []
        return [
            cell
            for cell in tile.values()
            if (
                self.rules[cell][0] != self.rules[flip_flop][0]
                if self.kinds[cell] == FLIP_FLOP
                else self.mode(cell) in LUT_RAM
            )
        ]


def _rules(cell: Mapping[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What a flip-flop shares with all others of its tile, and with the other one of its slice."""
    parameters, nets = cell["parameters"], cell["connections"]
    tile = (nets.get("CLK"), nets.get("LSR") or None, *map(parameters.get, ("CLKMUX", "LSRMUX", "SRMODE")))
    return tile, (nets.get("CE") or None, *map(parameters.get, ("CEMUX", "GSR")))
