"""What the multipliers of an array are made of on an FPGA."""

from enum import Enum
from typing import Any

from sley.abi.config import ChipConfig


class Multiplier(Enum):
    """A DSP block whose weight register has an enable of its own, one without, or logic.

    Blocks that lie side by side share their enables, so those with enables of their own need room between them. The
    others can be crowded; they have a choice in front of the register.
    """

    BLOCK = 0
    CROWDED_BLOCK = 1
    LOGIC = 2


def multipliers(config: ChipConfig, platform: Any) -> list[Multiplier]:
    """The multiplier of each element of the array, row by row.

    ``platform.dsp_blocks`` is the number of DSP blocks of the FPGA, if it is known. The arrays of all cores together
    take four fifths of them at most, as other units need some too, and share them out evenly; with more than three
    fifths they are crowded. Elements that know bf16 always have blocks, of one kind whatever it is called: without an
    enable, as their weights are registers of the element.
    """
    elements = config.array * config.array
    there = getattr(platform, "dsp_blocks", None)
    if there is None:
        return [Multiplier.BLOCK] * elements
    wanted = elements * config.lane_elements
    blocks = wanted if config.bf16 else min(wanted, there * 4 // 5 // config.cores)
    kind = Multiplier.CROWDED_BLOCK if 5 * blocks * config.cores > 3 * there else Multiplier.BLOCK
    return [kind if (i + 1) * blocks // wanted > i * blocks // wanted else Multiplier.LOGIC for i in range(elements)]
