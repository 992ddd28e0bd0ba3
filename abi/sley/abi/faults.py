"""Why a queue stopped: the numbered catalogue of faults, and the units that raise them."""

from enum import IntEnum


class FaultCode(IntEnum):
    """Reason in a queue's error record."""

    NONE = 0
    BAD_PACKET = 1  # the opcode of a packet is not defined
    BAD_FIELD = 2  # a reserved bit is set or a field of a packet is outside its range
    BAD_DOORBELL = 3  # the write index is further ahead of the read index than the ring is long
    BUS_ERROR = 4  # memory answered SLVERR or DECERR
    BAD_ADDRESS = 5  # a memory address is outside the chip's address width
    ILLEGAL_INSTRUCTION = 6  # undefined opcode, reserved bit set, or an operand outside its range
    PC_OUT_OF_RANGE = 7  # execution, a branch or a loop end left the program
    LOOP_OVERFLOW = 8  # more nested loops than the sequencer has frames
    BRANCH_OUT_OF_LOOP = 9  # a branch left the body of the innermost loop
    LOCAL_ADDRESS = 10  # a scratchpad or accumulator row that does not exist
    BAD_PARAMETER = 11  # unit parameters contradict each other (for example a run longer than its chunks)
    SEMAPHORE_LEFTOVER = 12  # a block ended with a semaphore above zero


class Unit(IntEnum):
    """The part of a core, in the order of their fixed priorities."""

    SEQUENCER = 0
    LOAD = 1
    STORE = 2
    MATRIX = 3
    VECTOR = 4
    COMMAND = 7  # not in a core: the command processor itself


class UnitState(IntEnum):
    """What a unit is doing, as the debug registers and a device dump show it."""

    IDLE = 0
    WAIT = 1  # for its semaphores to be above zero
    RUN = 2
    SIGNAL = 3  # for a full semaphore to drain


class QueueState(IntEnum):
    """What a hardware queue is doing."""

    DISABLED = 0
    READY = 1  # empty, or waiting for the command processor
    ACTIVE = 2  # one of its packets executes
    BLOCKED = 3  # a semaphore wait is not satisfied yet
    LAUNCHED = 4  # a grid of blocks runs
    ERROR = 5  # stopped; see the error record
