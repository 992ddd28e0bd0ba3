"""The MMIO register map of a chip: one privileged page, then one doorbell page for each queue.

All registers are 32 bits wide and are accessed as whole words.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache

from sley.abi.config import ABI_MAJOR, ABI_MINOR, ChipConfig
from sley.abi.counters import CounterGroup
from sley.abi.faults import FAULT, QueueState, Unit, UnitState
from sley.abi.layout import Field, Layout
from sley.abi.pages import CONTEXT_BITS, PAGE_BITS, PAGE_BYTES, AddressMode

ID_VALUE = int.from_bytes(b"SLEY", "big")
WORD_BYTES = 4
MMIO_BYTES = 16 * PAGE_BYTES
"""MMIO space: the registers of the chip and a doorbell page for each queue."""
PRIORITY_BITS = 2
"""Width of a queue's priority."""
PATIENCE = 16
"""A queue to which others were preferred so many times in a row goes before all to which they were not."""


class Access(Enum):
    """How software may use a register."""

    CONST = "const"
    """Read-only; the same value for ever (the fields' reset values)."""
    RO = "ro"
    """Read-only; the hardware drives it."""
    RW = "rw"
    """Read and write; the register stores what software wrote."""
    W1C = "w1c"
    """The hardware sets bits, software clears those it writes 1 to."""
    WO = "wo"
    """Writing triggers an action with the value; reads as zero."""


@dataclass(frozen=True)
class Register:
    """One 32-bit register at byte ``offset`` of its block."""

    name: str
    offset: int
    access: Access
    doc: str
    fields: tuple[Field, ...]

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.name, 8 * WORD_BYTES, self.fields)


@dataclass(frozen=True)
class RegisterBlock:
    """``count`` copies of the same registers, ``stride`` bytes apart from ``base``."""

    name: str
    base: int
    stride: int
    count: int
    doc: str
    registers: tuple[Register, ...]


@dataclass(frozen=True)
class PlacedRegister:
    """A register of one block copy, with its absolute byte address."""

    block: RegisterBlock
    index: int
    register: Register
    layout: Layout

    @property
    def address(self) -> int:
        return self.block.base + self.index * self.block.stride + self.register.offset

    @property
    def name(self) -> str:
        """Full name, for example ``CHIP.CONTROL`` or ``QUEUE1.STATE``."""
        index = str(self.index) if self.block.count > 1 or self.block.name != "CHIP" else ""
        return f"{self.block.name}{index}.{self.register.name}"


class RegisterMap:
    """Every register of a chip with ``config``, by full name and by address."""

    def __init__(self, config: ChipConfig):
        self.config = config
        self.blocks, self.registers, self.by_address = _placed(config)

    def __iter__(self) -> Iterator[PlacedRegister]:
        return iter(self.registers.values())

    def __getitem__(self, name: str) -> PlacedRegister:
        return self.registers[name]

    @property
    def size(self) -> int:
        """Bytes of MMIO space, a power of two."""
        return MMIO_BYTES


@lru_cache(maxsize=16)
def _placed(
    config: ChipConfig,
) -> tuple[tuple[RegisterBlock, ...], Mapping[str, PlacedRegister], Mapping[int, PlacedRegister]]:
    """Blocks, and registers by name and by address: once for a chip, as each device that is opened asks for them."""
    blocks = _chip_block(config), _queue_block(config), _context_block(config), _doorbell_block(config)
    placed = [
        PlacedRegister(block, index, register, register.layout)
        for block in blocks
        for index in range(block.count)
        for register in block.registers
    ]
    return blocks, {register.name: register for register in placed}, {register.address: register for register in placed}


def _word(name: str, doc: str, reset: int = 0) -> tuple[Field, ...]:
    return (Field(name, 32, doc, reset=reset),)


def _chip_block(c: ChipConfig) -> RegisterBlock:
    const, ro, rw, w1c, wo = Access.CONST, Access.RO, Access.RW, Access.W1C, Access.WO

    def capability(*parameters: tuple[str, int]) -> tuple[Field, ...]:
        values = c.capabilities
        return tuple(Field(p, width, f"`ChipConfig.{p}`.", reset=values[p]) for p, width in parameters)

    def unit_state(unit: Unit) -> Field:
        return Field(unit.name.lower(), 4, f"State of the {unit.name.lower()} unit.", enum=UnitState)

    layout: list[tuple[str, Access, str, tuple[Field, ...]]] = [
        ("ID", const, "Identifies the device.", _word("id", "ASCII `SLEY`.", ID_VALUE)),
        (
            "ABI_VERSION",
            const,
            "Version of registers, packets and instructions; software refuses another major, and an older minor.",
            (
                Field("minor", 16, "Additions that old software may ignore.", reset=ABI_MINOR),
                Field("major", 16, "Incompatible changes.", reset=ABI_MAJOR),
            ),
        ),
        ("CONFIG_HASH", const, "Hash of the configuration.", _word("hash", "`ChipConfig.hash`.", c.hash)),
        (
            "CAP_ARRAY",
            const,
            "The systolic array and the mesh of cores.",
            capability(("array", 8), ("cores_x", 4), ("cores_y", 4), ("queues", 4), ("vector_lanes", 8)),
        ),
        ("CAP_TYPES", const, "Bit t: the element type with code t.", capability(("operand_types", 16))),
        (
            "CAP_VECTOR",
            const,
            "The vector unit of each core.",
            capability(("vector_chains", 4)),
        ),
        (
            "CAP_FUNCTIONS",
            const,
            "Bit f: chains can have the function with code f.",
            capability(("vector_functions", 32)),
        ),
        (
            "CAP_SCRATCHPAD",
            const,
            "The scratchpad of each core.",
            capability(("scratchpad_rows", 16), ("scratchpad_banks", 8)),
        ),
        (
            "CAP_ACCUMULATOR",
            const,
            "The accumulators of each core, and whether runs are moved by lists in them.",
            capability(("accumulator_rows", 16), ("accumulator_banks", 8), ("gather", 1)),
        ),
        (
            "CAP_PROGRAM",
            const,
            "The sequencer of each core.",
            capability(("program_words", 16), ("unit_queue", 8)),
        ),
        (
            "CAP_MEMORY",
            const,
            "The memory bus.",
            capability(("addr_bits", 8), ("max_burst", 12), ("contexts", 8), ("tlb_entries", 4)),
        ),
        (
            "CONTROL",
            wo,
            "Commands to the whole chip.",
            (
                Field(
                    "reset",
                    1,
                    "Drain the memory bus, then reset all but the settings in these registers; queues come back empty.",
                ),
            ),
        ),
        (
            "STATUS",
            ro,
            "State of the whole chip.",
            (
                Field("resetting", 1, "A reset is in progress; queues do not start."),
                Field("invalidating", 1, "An INVALIDATE has not taken effect everywhere."),
            ),
        ),
        (
            "INVALIDATE",
            wo,
            "Forgets translations of a context. Accesses already translated may still reach memory: software stops the "
            "context's work first if a page must not be touched any more.",
            (
                Field("context", CONTEXT_BITS, "Whose."),
                Field("contents", 1, "Cores forget besides whose data they hold, so the next block finds zeros."),
            ),
        ),
        (
            "IRQ_STATUS",
            w1c,
            "Pending interrupt causes.",
            (
                Field("fence", 8, "One bit per queue: a fence with its interrupt flag was written."),
                Field("error", 8, "One bit per queue: the queue stopped with an error record."),
            ),
        ),
        (
            "IRQ_ENABLE",
            rw,
            "Causes that raise the interrupt line.",
            (
                Field("fence", 8, "Mask for `IRQ_STATUS.fence`."),
                Field("error", 8, "Mask for `IRQ_STATUS.error`."),
            ),
        ),
        (
            "IRQ_COALESCE",
            rw,
            "Fewer interrupts for many fences: the line rises when so many enabled fence interrupts were raised since "
            "software last cleared all of them, or so long after the first. Errors raise it at once.",
            (
                Field("count", 8, "How many; up to 1: no delay."),
                Field("cycles", 24, "How long."),
            ),
        ),
        ("TIME_LO", ro, "Cycles since reset; reading latches `TIME_HI`.", _word("cycles", "Low word.")),
        (
            "TIME_HI",
            ro,
            "High word of the time at the last read of `TIME_LO`.",
            _word("cycles", "High word."),
        ),
        (
            "PROGRESS",
            ro,
            "Moves whenever work is done; a watchdog compares two readings.",
            _word("count", "Packets, blocks and unit instructions finished since reset, modulo 2^32."),
        ),
        (
            "CORE_SELECT",
            rw,
            "Chooses the core that the CORE_ registers and COUNTER show.",
            (Field("core", 8, "Core number, y * cores_x + x."),),
        ),
        (
            "CORE_PC",
            ro,
            "Sequencer of the selected core.",
            (
                Field("pc", 16, "Index of the instruction being executed."),
                Field("running", 1, "A block is running."),
            ),
        ),
        (
            "CORE_UNITS",
            ro,
            "Units of the selected core.",
            tuple(unit_state(u) for u in Unit if u != Unit.COMMAND),
        ),
        (
            "CORE_SEMAPHORES_LO",
            ro,
            "Semaphores 0 to 7 of the selected core.",
            _word("values", "Four bits per semaphore, number 0 lowest."),
        ),
        (
            "CORE_SEMAPHORES_HI",
            ro,
            "Semaphores 8 to 15 of the selected core.",
            _word("values", "Four bits per semaphore, number 8 lowest."),
        ),
        (
            "COUNTER_CONTROL",
            rw,
            "Controls the performance counters, all of the chip at once.",
            (Field("freeze", 1, "All counters stand still, from one cycle on. They can be read 16 cycles later."),),
        ),
        (
            "COUNTER_SELECT",
            rw,
            "Chooses the counter that COUNTER shows; one that a core has is of the selected core.",
            (
                Field("counter", 4, "Number of the counter in its group."),
                Field("group", 4, "See `CounterGroup`.", enum=CounterGroup),
            ),
        ),
        (
            "COUNTER",
            ro,
            "The selected counter, while the counters stand still.",
            _word("value", "Modulo 2^32; undefined while the counters count, 0 for a counter that does not exist."),
        ),
    ]
    registers = tuple(Register(n, WORD_BYTES * i, a, doc, f) for i, (n, a, doc, f) in enumerate(layout))
    return RegisterBlock("CHIP", 0, 0, 1, "Identity, capabilities, interrupts and debugging.", registers)


def _queue_block(c: ChipConfig) -> RegisterBlock:
    ro, rw = Access.RO, Access.RW
    index = "Index of a packet; counts to twice the ring's length, so that full and empty differ."
    layout: list[tuple[str, Access, str, tuple[Field, ...]]] = [
        (
            "CONTROL",
            rw,
            "Turns the queue on; while off its indices and error record are cleared.",
            (
                Field("enable", 1, "Set after the other registers of the queue are written."),
                Field(
                    "abort",
                    1,
                    "Ends blocks and copies, starts no packet; the queue stops with ABORTED.",
                ),
            ),
        ),
        (
            "OWNER",
            rw,
            "Whose queue it is, and how urgent.",
            (
                Field("context", CONTEXT_BITS, "Ring, read index and whatever packets and programs touch are its."),
                Field("priority", PRIORITY_BITS, "Higher goes first; see the command processor.", lsb=8),
            ),
        ),
        (
            "WATCHDOG",
            rw,
            "Ends a block in which no instruction finishes.",
            _word("cycles", "So many cycles without one are a fault; 0: never."),
        ),
        ("BASE", rw, "Byte address of the ring, a multiple of 64.", _word("address", "Address of packet 0.")),
        (
            "SIZE",
            rw,
            "Length of the ring.",
            (Field("log2", 4, "The ring holds 2^log2 packets (0 to 15)."),),
        ),
        (
            "READBACK",
            rw,
            "Byte address, a multiple of 4, where the read index is written after every packet; 0 for nowhere.",
            _word("address", "Address of a 32-bit word."),
        ),
        ("READ_INDEX", ro, "Next packet to finish.", (Field("index", 16, index),)),
        ("WRITE_INDEX", ro, "The last doorbell.", (Field("index", 16, index),)),
        (
            "BUFFER_INDEX",
            ro,
            "Where the queue is inside the INDIRECT packet that READ_INDEX is at; holds in an error.",
            (
                Field("index", 16, "Next packet of the buffer to finish, the first one is 0."),
                Field("in_buffer", 1, "The next packet is one of the buffer, not the one in the ring."),
            ),
        ),
        ("STATE", ro, "What the queue is doing.", (Field("state", 4, "See `QueueState`.", enum=QueueState),)),
        (
            "ERROR",
            ro,
            "Error record: what and who.",
            tuple(FAULT.fields[name].field for name in ("code", "unit", "core")),
        ),
        (
            "ERROR_PC",
            ro,
            "Error record: instruction index inside the program.",
            (FAULT.fields["pc"].field,),
        ),
        (
            "ERROR_BLOCK",
            ro,
            "Error record: the block in the grid.",
            (FAULT.fields["block"].field,),
        ),
        (
            "ERROR_ADDRESS",
            ro,
            "Error record: the memory address, local row or value at fault.",
            (FAULT.fields["address"].field,),
        ),
        ("DOORBELL_TIME_LO", ro, "Time of the last doorbell.", _word("cycles", "Low word.")),
        ("DOORBELL_TIME_HI", ro, "Time of the last doorbell.", _word("cycles", "High word.")),
    ]
    registers = tuple(Register(n, WORD_BYTES * i, a, doc, f) for i, (n, a, doc, f) in enumerate(layout))
    return RegisterBlock("QUEUE", 0x400, 0x80, c.queues, "Set-up and state of a hardware queue.", registers)


def _context_block(c: ChipConfig) -> RegisterBlock:
    register = Register(
        "ROOT",
        0,
        Access.RW,
        "Where addresses of the context lead. INVALIDATE after a change.",
        (
            Field("mode", 2, "See `AddressMode`.", enum=AddressMode),
            Field("page", 20, "Bits 31:12 of the address of the upper table.", lsb=PAGE_BITS),
        ),
    )
    return RegisterBlock("CONTEXT", 0x800, WORD_BYTES, c.contexts, "Address spaces, by context number.", (register,))


def _doorbell_block(c: ChipConfig) -> RegisterBlock:
    register = Register(
        "WRITE_INDEX",
        0,
        Access.WO,
        "Tells the chip that packets up to this index are in the ring.",
        (Field("index", 16, "The new write index."),),
    )
    doc = "The page of a queue that may be handed to its user."
    return RegisterBlock("DOORBELL", PAGE_BYTES, PAGE_BYTES, c.queues, doc, (register,))
