"""What the multipliers of an array are made of on an FPGA."""

from enum import Enum

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.hw.elaboration.platform import is_ecp5


class Multiplier(Enum):
    """A DSP block whose weight register has an enable of its own, one without, one for two elements side by side, or
    logic.

    Blocks that lie side by side share their enables, so those with enables of their own need room between them. The
    others can be crowded; they have a choice in front of the register.
    """

    BLOCK = 0
    CROWDED_BLOCK = 1
    PAIR = 2
    LOGIC = 3


def multipliers(config: ChipConfig, platform: object) -> list[Multiplier]:
    """The multiplier of each element of the array, row by row.

    ``platform.dsp_blocks`` is the number of DSP blocks of the FPGA, if it is known. The arrays of all cores together
    take ``platform.array_blocks`` of them at most, or three quarters, as other units need some too, and share them out
    evenly; with more than three fifths they are crowded. Where there are too few, as many pairs of elements as need it
    have one for both (on an ECP5), and what is left is of logic. Elements that know bf16 always have blocks, of one
    kind whatever it is called: without an enable, as their weights are registers of the element.
    """
    elements = config.array * config.array
    available = getattr(platform, "dsp_blocks", None)
    if available is None:
        return [Multiplier.BLOCK] * elements
    required = elements * config.lane_elements()
    limit = getattr(platform, "array_blocks", None)
    usable = available * 3 // 4 if limit is None else min(limit, available)
    blocks = required if config.has(ElementType.BF16) else min(required, usable // config.cores)
    kind = Multiplier.CROWDED_BLOCK if 5 * blocks * config.cores > 3 * available else Multiplier.BLOCK
    if blocks == required or not is_ecp5(platform):
        return _shared_out(elements, blocks * elements // required, kind, Multiplier.LOGIC)
    pairs = min(blocks, elements - blocks)
    others = kind if pairs < blocks else Multiplier.LOGIC
    return [each for each in _shared_out(elements // 2, pairs, Multiplier.PAIR, others) for _ in range(2)]


def _shared_out(places: int, count: int, kind: Multiplier, others: Multiplier) -> list[Multiplier]:
    """``count`` of that kind among so many places."""
    return [kind if (i + 1) * count // places > i * count // places else others for i in range(places)]
