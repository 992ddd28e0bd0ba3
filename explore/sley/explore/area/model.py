"""Area of a chip on an ECP5, by a model that was fitted to synthesised blocks."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

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
    """Of a whole chip as a flat netlist, without host bridge and memory, with as many DSP blocks as it likes."""
    flat, sums = _fitted()["flat"], _sums(config).values()
    return Area(*(round(flat[name] * sum(row[k] for row in sums)) for k, name in enumerate(RESOURCES)))


def block_areas(config: ChipConfig) -> dict[str, Area]:
    """Of all blocks of a kind, each synthesised alone: what they have in common is in each of them."""
    return {name: Area(*map(round, row)) for name, row in _sums(config).items()}


def _sums(config: ChipConfig) -> dict[str, list[float]]:
    """By block and resource."""
    found, fitted = {}, _fitted()["blocks"]
    for name, part in PARTS.items():
        values = dict(zip(part.features, part.values(config), strict=True))
        found[name] = [
            part.count(config) * sum(number * values[feature] for feature, number in fitted[name][resource].items())
            for resource in RESOURCES
        ]
    return found


@cache
def _fitted() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(COEFFICIENTS.read_text())
    return found
