"""Performance counters: every one once, with what it counts.

A group is up to 16 counters with one number of 4 bits each. There are two kinds of groups:

* *classes*: in every cycle exactly one counter of the group goes up by 1: of all that holds in the cycle, the first in
  the order of the list. So the counters of such a group add up to the cycles counted, without a rest.
* *amounts*: each counter by itself goes up by what happens in a cycle.

All counters count modulo 2^32 and stand still while ``COUNTER_CONTROL.freeze`` is 1. A reset of the chip leaves them as
they are; only differences mean something.
"""

from enum import Enum, IntEnum

from sley.abi.faults import Unit

COUNTER_BITS = 32
GROUP_COUNTERS = 16
"""Most counters of a group."""


class Counts(Enum):
    """What a counter counts."""

    CYCLES = "cycles"
    BEATS = "beats"
    BYTES = "bytes"
    BURSTS = "bursts"
    ROWS = "rows"


class Counter(IntEnum):
    """A counter: its number in its group, what it counts, one sentence."""

    counts: Counts
    exact: bool
    """Says how much was done, not how long it took: the same on every engine, also on one without cycles."""
    doc: str

    def __new__(cls, number: int, doc: str, counts: Counts = Counts.CYCLES, exact: bool = False) -> "Counter":
        member = int.__new__(cls, number)
        member._value_ = number
        member.doc, member.counts, member.exact = doc, counts, exact
        return member


class SequencerCycle(Counter):
    """What the sequencer does."""

    LAUNCH = 0, "A launch message arrives, or registers are being cleared for it."
    FETCH = 1, "Arguments, or the next instruction, are not here yet from memory."
    LOAD_QUEUE = 2, "An instruction for a unit cannot be handed out because the queue of Load is full."
    STORE_QUEUE = 3, "The same; the queue of Store is full."
    MATRIX_QUEUE = 4, "The same; the queue of the matrix unit is full."
    VECTOR_QUEUE = 5, "The same; the queue of the vector unit is full."
    SYNC_WAIT = 6, "SYNC waits for semaphores to be above zero."
    SYNC_SIGNAL = 7, "SYNC waits for a full semaphore."
    END = 8, "END waits until all units are idle."
    REPORT = 9, "The end of the block is reported, after a fault once all is quiet."
    EXECUTE = 10, "Instructions are read and executed."
    IDLE = 11, "No block is here."


class LoadCycle(Counter):
    """What the load unit does."""

    BEAT = 0, "A beat from memory is taken."
    ROW = 1, "No beat is taken, but a row is written: zeros, or data that waited."
    BANK = 2, "A write to scratchpad or accumulators is not granted."
    MEMORY = 3, "The unit waits for data that it asked memory for."
    SIGNAL = 4, "A full semaphore holds up the end of a command."
    COMMAND = 5, "Commands are taken and checked, and their first requests leave."
    SEMAPHORE = 6, "The next command waits for its semaphores."
    EMPTY = 7, "A block runs, and no command for the unit is here."
    IDLE = 8, "No block is here."


class StoreCycle(Counter):
    """What the store unit does."""

    BEAT = 0, "A beat is handed over for memory."
    MEMORY = 1, "A beat is ready, and the way to memory does not take it."
    BANK = 2, "A read of scratchpad or accumulators is not granted."
    SIGNAL = 3, "A full semaphore holds up the end of a command."
    ACKNOWLEDGE = 4, "All beats are handed over; memory has not acknowledged all of them."
    COMMAND = 5, "Commands are taken and checked, and their first rows are read."
    SEMAPHORE = 6, "The next command waits for its semaphores."
    EMPTY = 7, "A block runs, and no command for the unit is here."
    IDLE = 8, "No block is here."


class MatrixCycle(Counter):
    """What the matrix unit does."""

    ROW_INT8 = 0, "A row of int8 activations is read and enters the array.", Counts.CYCLES, True
    ROW_BF16 = 1, "A row of bf16 activations is read and enters the array.", Counts.CYCLES, True
    OPERANDS = 2, "A row of activations, or of weights that activations wait for, is not granted."
    WEIGHTS = 3, "The first row of a MATMUL waits for its weights."
    HAZARD = 4, "The first row of a MATMUL waits for rows in flight."
    SIGNAL = 5, "A full semaphore holds up the end of a command."
    SEMAPHORE = 6, "The next command waits for its semaphores."
    COMMAND = 7, "Commands are taken and checked, or weights are read for a MATMUL that is not here."
    DRAIN = 8, "The last rows pass through the array; no command is here."
    EMPTY = 9, "A block runs, and no command for the unit is here."
    IDLE = 10, "No block is here."


class VectorCycle(Counter):
    """What the vector unit does."""

    ROW = 0, "A row is read and enters the lanes."
    OPERANDS = 1, "A read of a source row is not granted."
    RESULTS = 2, "No row can start because too many results wait to be written."
    DRAIN = 3, "No row is read, and rows of commands before pass through the lanes or wait to be written."
    SIGNAL = 4, "A full semaphore holds up the end of a command."
    COMMAND = 5, "A command is taken and checked."
    SEMAPHORE = 6, "The next command waits for its semaphores."
    EMPTY = 7, "A block runs, and no command for the unit is here."
    IDLE = 8, "No block is here."


class Traffic(Counter):
    """What moves between a core and memory, and what is refused by the core's own memories.

    A refused request counts in every cycle in which it is not granted.
    """

    LOAD_BEATS = 0, "Bus beats that came for Load; those that cores share count for each.", Counts.BEATS, True
    LOAD_BYTES = 1, "Bytes of the runs that Load asked for.", Counts.BYTES, True
    STORE_BEATS = 2, "Bus beats that were written for Store.", Counts.BEATS, True
    STORE_BYTES = 3, "Bytes of the runs that Store wrote.", Counts.BYTES, True
    FETCH_BEATS = 4, "Bus beats of programs and arguments.", Counts.BEATS
    SCRATCHPAD_WEIGHTS = 5, "Scratchpad: reads of weights refused."
    SCRATCHPAD_VECTOR_A = 6, "Scratchpad: reads of the vector unit's A refused."
    SCRATCHPAD_VECTOR_B = 7, "Scratchpad: reads of the vector unit's B refused."
    SCRATCHPAD_STORE = 8, "Scratchpad: reads of Store refused."
    SCRATCHPAD_VECTOR_OUT = 9, "Scratchpad: writes of the vector unit refused."
    ACCUMULATOR_VECTOR_A = 10, "Accumulators: reads of the vector unit's A refused."
    ACCUMULATOR_VECTOR_B = 11, "Accumulators: reads of the vector unit's B refused."
    ACCUMULATOR_STORE = 12, "Accumulators: reads of Store refused."
    ACCUMULATOR_LOAD = 13, "Accumulators: writes of Load refused."
    ACCUMULATOR_VECTOR_OUT = 14, "Accumulators: writes of the vector unit refused."


class Rows(Counter):
    """Accesses of a core's memories that were granted. One that needs a part of a row counts as a row."""

    SCRATCHPAD_READ = 0, "Rows that were read from the scratchpad.", Counts.ROWS
    SCRATCHPAD_WRITTEN = 1, "Rows that were written to the scratchpad.", Counts.ROWS
    ACCUMULATOR_READ = 2, "Rows that were read from the accumulators.", Counts.ROWS
    ACCUMULATOR_WRITTEN = 3, "Rows that were written to the accumulators.", Counts.ROWS


class ReadCycle(Counter):
    """What the read side of the memory bus does."""

    BEAT = 0, "A beat of data moves."
    REFUSED = 1, "A beat is offered and not taken."
    WAIT = 2, "Reads are outstanding, and no beat is offered."
    IDLE = 3, "Nothing is outstanding."


class WriteCycle(Counter):
    """What the write side of the memory bus does."""

    BEAT = 0, "A beat of data moves."
    REFUSED = 1, "A beat is offered and not taken."
    WAIT = 2, "Bursts are begun and not acknowledged, and no beat is offered."
    IDLE = 3, "Nothing is outstanding."


class Bus(Counter):
    """The memory bus, and the clock of all counters."""

    CYCLES = 0, "Cycles that were counted."
    READ_BURSTS = 1, "Read bursts that memory accepted.", Counts.BURSTS
    WRITE_BURSTS = 2, "Write bursts that memory accepted.", Counts.BURSTS


class CounterGroup(IntEnum):
    """Groups of counters. Those of units have the unit's number."""

    SEQUENCER = Unit.SEQUENCER
    LOAD = Unit.LOAD
    STORE = Unit.STORE
    MATRIX = Unit.MATRIX
    VECTOR = Unit.VECTOR
    TRAFFIC = 5
    ROWS = 6
    READ = 8
    WRITE = 9
    BUS = 10


COUNTERS: dict[CounterGroup, type[Counter]] = {
    CounterGroup.SEQUENCER: SequencerCycle,
    CounterGroup.LOAD: LoadCycle,
    CounterGroup.STORE: StoreCycle,
    CounterGroup.MATRIX: MatrixCycle,
    CounterGroup.VECTOR: VectorCycle,
    CounterGroup.TRAFFIC: Traffic,
    CounterGroup.ROWS: Rows,
    CounterGroup.READ: ReadCycle,
    CounterGroup.WRITE: WriteCycle,
    CounterGroup.BUS: Bus,
}
"""The counters of each group."""
UNIT_GROUPS = tuple(CounterGroup(unit) for unit in Unit if unit is not Unit.COMMAND)
"""Groups of the units of a core: classes."""
AMOUNT_GROUPS = (CounterGroup.TRAFFIC, CounterGroup.ROWS)
"""The other groups of a core: amounts."""
CHIP_GROUPS = (CounterGroup.READ, CounterGroup.WRITE, CounterGroup.BUS)
"""Groups of which there is one, at the memory port."""


def is_classes(group: CounterGroup) -> bool:
    """Whether exactly one counter of the group goes up in a cycle."""
    return group not in (*AMOUNT_GROUPS, CounterGroup.BUS)
