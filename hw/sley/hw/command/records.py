"""What the parts of the command processor hand to each other."""

from enum import IntEnum

from amaranth.hdl import unsigned
from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.abi.packets import INLINE_ARGS, MAX_GRID

INDEX_BITS = 16
"""Width of a packet index (the field of the READ_INDEX register)."""
QUEUE_BITS = 3
"""Width of a queue number (``ChipConfig.queues`` is at most 8)."""
GRID_BITS = MAX_GRID.bit_length()
"""Width of a dimension of a grid."""


FaultRecord = data.StructLayout({"code": 8, "unit": 4, "core": 8, "pc": 16, "block": 32, "address": 32})
"""Error record of a queue; ``code`` 0 means no fault."""

LaunchResult = data.StructLayout({"queue": QUEUE_BITS, "fault": FaultRecord})
"""End of a grid: every block has ended; ``fault`` is the first one's, if any."""


class QueueEvent(IntEnum):
    """What the executor tells a queue."""

    NONE = 0
    TAKE = 1  # its next packet is executed from now on
    RETIRE = 2  # the packet is done: the read index moves
    FINISH = 3  # the queue is free for its next packet
    LAUNCH = 4  # the packet runs on the cores
    BLOCK = 5  # a wait is not satisfied: try the packet again later
    DEFER = 6  # the scheduler is taken: try the packet again when it is free
    FAULT = 7  # the packet stopped with an error record


def launch_command(config: ChipConfig) -> data.StructLayout:
    """A grid of blocks of a program; all fields checked. ``inline``: arguments from the packet."""
    return data.StructLayout(
        {
            "queue": unsigned(QUEUE_BITS),
            "program": 32,
            "program_words": 16,
            "tag": 32,
            "args": 32,
            "arg_words": 8,
            "gang": 1,
            "inline": data.ArrayLayout(32, INLINE_ARGS),
            "grid": data.ArrayLayout(GRID_BITS, 3),
        }
    )
