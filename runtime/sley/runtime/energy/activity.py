"""What a chip did, from its counters, in the amounts that tables of energy price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sley.abi.config import ChipConfig
from sley.abi.counters import (
    Counter,
    CounterGroup,
    MatrixCycle,
    ReadCycle,
    Rows,
    SequencerCycle,
    Traffic,
    VectorCycle,
    WriteCycle,
)
from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.placement import core_hops
from sley.driver import Counters

SEQUENCER, MATRIX, VECTOR, SCRATCHPAD, ACCUMULATORS, NETWORK, DRAM = UNITS = (
    *("sequencer", "matrix", "vector", "scratchpad", "accumulators", "network", "dram"),
)
EXECUTE_CYCLES = 2
"""Of the sequencer for an instruction."""


class Operation(NamedTuple):
    """An arithmetic operation that a table has by name."""

    name: str


class Access(NamedTuple):
    """A read or write of so many bytes of a bank of an SRAM that holds so many."""

    bank_bytes: int
    bytes: int
    write: bool


class DramByte(NamedTuple):
    """A byte between the chip and DRAM."""


class Hop(NamedTuple):
    """A byte from a router of the network to the next."""


Item = Operation | Access | DramByte | Hop


@dataclass(frozen=True)
class Activity:
    """``amount`` times ``item``, in a unit of the chip; ``work`` says what it was."""

    unit: str
    work: str
    amount: int
    item: Item


def activities(counters: Counters, config: ChipConfig) -> list[Activity]:
    """All that is priced. Raises ``NoCycleCounts`` on an engine without cycles: rows of the vector unit, instructions
    and beats of the bus are not counted there."""
    _ = counters.cycles
    found = [activity for core in range(config.cores) for activity in _core(counters, config, core)]
    beats = counters.chip[CounterGroup.READ][ReadCycle.BEAT] + counters.chip[CounterGroup.WRITE][WriteCycle.BEAT]
    found.append(Activity(DRAM, "bytes of the memory bus", beats * config.bus_bytes, DramByte()))
    return _joined(found)


def _core(counters: Counters, config: ChipConfig, core: int) -> Iterator[Activity]:
    values = counters.cores[core]
    traffic, matrix = values[CounterGroup.TRAFFIC], values[CounterGroup.MATRIX]
    executed = values[CounterGroup.SEQUENCER][SequencerCycle.EXECUTE] // EXECUTE_CYCLES
    program = Access(config.program_words * INSTRUCTION_BYTES, INSTRUCTION_BYTES, write=False)
    yield Activity(SEQUENCER, "instructions read", executed, program)
    yield Activity(SEQUENCER, "integer operations of instructions", executed, Operation("int32 add"))

    int8, bf16 = matrix[MatrixCycle.ROW_INT8], matrix[MatrixCycle.ROW_BF16]
    yield Activity(MATRIX, "int8 MACs", int8 * config.array * config.fold_depth(), Operation("int8 MAC"))
    yield Activity(MATRIX, "bf16 MACs", bf16 * config.array**2, Operation("bf16 MAC"))

    lanes = values[CounterGroup.VECTOR][VectorCycle.ROW] * config.vector_lanes
    yield Activity(VECTOR, "fp32 multiplications", lanes, Operation("fp32 multiply"))
    yield Activity(VECTOR, "fp32 additions", lanes, Operation("fp32 add"))

    yield from _rows(values[CounterGroup.ROWS], config)

    beats = sum(traffic[beat] for beat in (Traffic.LOAD_BEATS, Traffic.STORE_BEATS, Traffic.FETCH_BEATS))
    yield Activity(NETWORK, "bytes times hops", beats * config.bus_bytes * core_hops(config, core), Hop())


def _rows(rows: Mapping[Counter, int], config: ChipConfig) -> Iterator[Activity]:
    """Rows of a core's memories. A bank reads a whole row, whatever part of it is needed."""
    c = config
    scratchpad = c.scratchpad_rows // c.scratchpad_banks * c.row_bytes, c.row_bytes
    sums = c.accumulator_rows // c.accumulator_banks * c.accumulator_row_bytes, c.accumulator_row_bytes
    yield Activity(SCRATCHPAD, "rows read", rows[Rows.SCRATCHPAD_READ], Access(*scratchpad, write=False))
    yield Activity(SCRATCHPAD, "rows written", rows[Rows.SCRATCHPAD_WRITTEN], Access(*scratchpad, write=True))
    yield Activity(ACCUMULATORS, "rows read", rows[Rows.ACCUMULATOR_READ], Access(*sums, write=False))
    yield Activity(ACCUMULATORS, "rows written", rows[Rows.ACCUMULATOR_WRITTEN], Access(*sums, write=True))


def _joined(found: list[Activity]) -> list[Activity]:
    """One of each kind, in the order of units; the same of several cores together."""
    amounts: dict[tuple[str, str, Item], int] = {}
    for a in found:
        amounts[a.unit, a.work, a.item] = amounts.get((a.unit, a.work, a.item), 0) + a.amount
    return [Activity(*key[:2], amount, key[2]) for key, amount in amounts.items()]
