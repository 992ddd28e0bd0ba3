"""Why a queue stopped: the numbered catalogue of faults, the units that raise them, and the record that they leave."""

from dataclasses import dataclass
from enum import IntEnum

from sley.abi.layout import Field, Layout


class FaultCode(IntEnum):
    """Reason in a queue's error record; ``MEANING`` explains each."""

    NONE = 0
    BAD_PACKET = 1
    BAD_FIELD = 2
    BAD_DOORBELL = 3
    BUS_ERROR = 4
    BAD_ADDRESS = 5
    ILLEGAL_INSTRUCTION = 6
    PC_OUT_OF_RANGE = 7
    LOOP_OVERFLOW = 8
    BRANCH_OUT_OF_LOOP = 9
    LOCAL_ADDRESS = 10
    BAD_PARAMETER = 11
    SEMAPHORE_LEFTOVER = 12
    PAGE_FAULT = 13
    PERMISSION = 14
    WATCHDOG = 15
    ABORTED = 16


MEANING: dict[FaultCode, tuple[str, str]] = {
    FaultCode.NONE: ("no fault", "nothing to do"),
    FaultCode.BAD_PACKET: ("the opcode of a packet is not defined", "write packets with `encode_packet`"),
    FaultCode.BAD_FIELD: (
        "a reserved bit is set, or a field is misaligned or outside its range",
        "compare the packet with its table",
    ),
    FaultCode.BAD_DOORBELL: (
        "the write index is further ahead of the read index than the ring is long",
        "wait for free slots before ringing",
    ),
    FaultCode.BUS_ERROR: (
        "memory answered SLVERR or DECERR, or no other core of the gang asks for what a shared LOAD asks for",
        "keep addresses inside the memory; let all cores of a gang share the same loads in the same order",
    ),
    FaultCode.BAD_ADDRESS: ("a memory address is outside the chip's address width", "check pointers and strides"),
    FaultCode.ILLEGAL_INSTRUCTION: (
        "undefined opcode, a reserved bit, or an operand that this chip cannot have",
        "disassemble the program at the program counter",
    ),
    FaultCode.PC_OUT_OF_RANGE: (
        "execution, a branch or a loop end left the program",
        "end every path with END and check targets",
    ),
    FaultCode.LOOP_OVERFLOW: ("more nested loops than the sequencer has frames", "nest less deeply"),
    FaultCode.BRANCH_OUT_OF_LOOP: (
        "a branch left the body of the innermost loop",
        "let loops run to their end; use a count of the right size",
    ),
    FaultCode.LOCAL_ADDRESS: (
        "a scratchpad or accumulator row that does not exist",
        "check row operands, counts and strides against the capabilities",
    ),
    FaultCode.BAD_PARAMETER: (
        "a count above 65535 (WEIGHTS: not 1 to N), a parameter the unit does not have or too large for its width, "
        "a run longer than its CHUNKS, or more CHUNKS than a LOAD that interleaves or transposes may have",
        "check the count, and the SET instructions before it",
    ),
    FaultCode.SEMAPHORE_LEFTOVER: (
        "a block ended with a semaphore above zero",
        "match every signal with a wait, or drain with SYNC",
    ),
    FaultCode.PAGE_FAULT: (
        "the context has nothing mapped at an address",
        "map a buffer there, or correct the pointer or stride",
    ),
    FaultCode.PERMISSION: (
        "a page does not allow what was done with it",
        "map the buffer with the right to read, write or execute",
    ),
    FaultCode.WATCHDOG: (
        "no instruction of a block finished for as long as its queue allows",
        "look for a wait without a signal or a loop without an end at the program counter",
    ),
    FaultCode.ABORTED: ("software ended the queue's work", "submit the work again"),
}
"""Meaning and remedy of every code, for messages and documentation."""


class Unit(IntEnum):
    """The part of a core, in the order of their fixed priorities."""

    SEQUENCER = 0
    LOAD = 1
    STORE = 2
    MATRIX = 3
    VECTOR = 4
    COMMAND = 7  # not in a core: the command processor itself


UNITS = (Unit.LOAD, Unit.STORE, Unit.MATRIX, Unit.VECTOR)
"""The units that take commands, in the order of everything that is an array over them."""


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


FAULT = Layout(
    "FAULT",
    100,
    (
        Field("code", 8, "See `FaultCode`.", enum=FaultCode),
        Field("unit", 4, "Unit that found the fault.", enum=Unit),
        Field("core", 8, "Core that ran the block (0 when the unit is COMMAND)."),
        Field("pc", 16, "Instruction index inside the program; 0 for packets."),
        Field("block", 32, "The block in the grid: (z * grid_y + y) * grid_x + x."),
        Field("address", 32, "The memory address, local row or value at fault; its meaning depends on the code."),
    ),
)
"""An error record, from the unit that finds a fault to the registers of its queue. A unit knows ``code``, ``pc`` and
``address``; the sequencer adds ``unit``, the scheduler ``core`` and ``block``."""
CODE_BITS = FAULT.fields["code"].width
PC_BITS = FAULT.fields["pc"].width
"""Width of an instruction index."""


@dataclass(frozen=True)
class FaultRecord:
    """The contents of an error record; by default that of a queue without a fault."""

    code: FaultCode = FaultCode.NONE
    unit: Unit = Unit.SEQUENCER
    core: int = 0
    pc: int = 0
    block: int = 0
    address: int = 0

    @property
    def where(self) -> str:
        """Who found the fault, in words."""
        if self.unit is Unit.COMMAND:
            return "the command processor"
        return f"the {self.unit.name.lower()} unit of core {self.core}, instruction {self.pc} of block {self.block}"

    def explain(self) -> str:
        """A sentence: meaning, the value in ``address``, remedy."""
        if self.code is FaultCode.LOCAL_ADDRESS:
            value = f"row {self.address - (1 << 32) if self.address >> 31 else self.address}"
        elif self.code is FaultCode.SEMAPHORE_LEFTOVER:
            value = "semaphores " + ", ".join(str(i) for i in range(32) if self.address >> i & 1)
        else:
            value = f"{self.address:#x}"
        meaning, remedy = MEANING[self.code]
        return f"{meaning} ({value}); {remedy}"
