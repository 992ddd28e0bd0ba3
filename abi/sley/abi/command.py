"""Numbers of the command processor that its gateware and the model of its cycles share."""

from enum import IntEnum

READ_STROBES = ("CHIP.TIME_LO",)
"""Registers whose reading has an effect."""
SHARED = (
    *("QUEUE.WATCHDOG", "QUEUE.READBACK"),
    *("QUEUE.ERROR", "QUEUE.ERROR_PC", "QUEUE.ERROR_BLOCK", "QUEUE.ERROR_ADDRESS"),
    *("QUEUE.DOORBELL_TIME_LO", "QUEUE.DOORBELL_TIME_HI", "DOORBELL.WRITE_INDEX"),
)
"""Registers of a queue that are of use for one queue at a time: that of the packet that executes, the one that software
reads, the one whose doorbell rings."""


class QueueEvent(IntEnum):
    """What the executor tells a queue. A bit each, so that none waits for what decides of another."""

    NONE = 0
    TAKE = 1  # its next packet is executed from now on
    RETIRE = 2  # the packet is done: the read index moves
    FINISH = 4  # the queue is free for its next packet
    LAUNCH = 8  # the packet runs on the cores
    BLOCK = 16  # a wait is not satisfied: try the packet again later
    ENTER = 32  # the packets of a buffer come first, then the read index moves
    FAULT = 64  # the packet stopped with an error record


class ErrorAddress(IntEnum):
    """Where the address of a queue's error record is."""

    NONE = 0  # it is 0
    FAULT = 1  # in the executor's record, with all but the code
    DOORBELL = 2  # it is the index of the last doorbell
    READBACK = 3  # it is where the read index should have gone
