"""Area of a chip on an ECP5, by a model that was fitted to synthesised blocks."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

from sley.abi.config import ChipConfig
from sley.explore.area.features import PARTS

COEFFICIENTS = Path(__file__).with_name("coefficients.json")
"""Made by ``sley fpga fit-area``."""
RESOURCES = ("lut", "ff", "dsp", "bram")
DEVICE = (83_640, 83_640, 156, 208)
"""Of an ECP5-85F."""


@dataclass(frozen=True)
class Area:
    """LUTs, flip-flops, DSP blocks and block RAMs of 18 Kbit."""

    lut: int
    ff: int
    dsp: int
    bram: int

    @property
    def share(self) -> float:
        """The mean share of the four resources of an ECP5-85F: one number in which each counts."""
        return float(sum(own / whole for own, whole in zip(astuple(self), DEVICE, strict=True)) / len(DEVICE))

    @property
    def fits(self) -> bool:
        """Whether an ECP5-85F has that much of each."""
        return all(own <= whole for own, whole in zip(astuple(self), DEVICE, strict=True))


def area_of(config: ChipConfig) -> Area:
    """Of a whole chip, without host bridge and memory, with as many DSP blocks as it likes."""
    blocks = block_areas(config).values()
    return Area(*(round(sum(getattr(block, name) for block in blocks)) for name in RESOURCES))


def block_areas(config: ChipConfig) -> dict[str, Area]:
    """By block, of all those that the chip has."""
    found = {}
    for name, part in PARTS.items():
        values, count = part.values(config), part.count(config)
        sums = (sum(a * b for a, b in zip(row, values, strict=True)) for row in _coefficients()[name])
        found[name] = Area(*(max(0, round(count * total)) for total in sums))
    return found


@cache
def _coefficients() -> dict[str, list[list[float]]]:
    """By block: for each resource a number for each feature."""
    found = json.loads(COEFFICIENTS.read_text())["blocks"]
    return {
        name: [[found[name][resource].get(feature, 0.0) for feature in part.features] for resource in RESOURCES]
        for name, part in PARTS.items()
    }
