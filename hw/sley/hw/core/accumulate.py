"""From sums that leave the array to accumulator rows."""

from typing import Any, NamedTuple

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.hw.core.array import SUM_BITS, array_latency, sums
from sley.hw.core.sram import READ_LATENCY, read_port, write_port

ADD_LATENCY = 1
"""Cycles from the sums and the old row to the new row."""

HAZARD_SLOTS = READ_LATENCY + ADD_LATENCY + 1
"""A row may be issued this many cycles after another one that goes to the same accumulator row: its read is then
granted in the cycle after the write."""


def issue_slot(config: ChipConfig) -> data.StructLayout:
    """What the streamer does in a cycle. ``row``: a row of activations was granted, its sums go to accumulator row
    ``dest``, added if ``accumulate``; ``last``: nothing more comes for this MATMUL (with or without a row)."""
    return data.StructLayout({"row": 1, "last": 1, "dest": range(config.accumulator_rows), "accumulate": 1})


def write_latency(config: ChipConfig) -> int:
    """Cycles from the grant of a row of activations to the grant of the write of its sums."""
    return READ_LATENCY + array_latency(config) + ADD_LATENCY


class _Stage(NamedTuple):
    """An issue slot as registers of their own: only the control bits are reset."""

    row: Signal
    last: Signal
    dest: Signal
    accumulate: Signal


class Accumulate(wiring.Component):
    """Writes sums to their rows, or adds them to what is there.

    Issue slots travel along in a shift register as long as the way through scratchpad and array; the old row is read
    early enough to meet the sums. Nothing stalls: the ports must be granted at once, always (number 0 on the memory).

    Parameters
    ----------
    config : ChipConfig

    Members
    -------
    slot : In(issue_slot(config))
        Every cycle. No row may follow another one to the same accumulator row within HAZARD_SLOTS cycles if it
        accumulates.
    sums : In(sums(config))
        Of the array.
    read : Out(read_port), write : Out(write_port)
        Of the accumulators.
    entering : Out(1)
        A row of activations is at the array's entry in this cycle.
    done : Out(1)
        All rows up to a slot with ``last`` are visible from the next cycle on.

    Latency ``write_latency(config)`` from slot to write, one row a cycle. Cost: N 32-bit adders and registers, and the
    shift register, ``write_latency`` times 13 bits or so.
    """

    slot: data.View
    sums: data.View
    read: wiring.PureInterface
    write: wiring.PureInterface
    entering: Signal
    done: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        rows, width = config.accumulator_rows, SUM_BITS * config.array
        super().__init__(
            {
                "slot": In(issue_slot(config)),
                "sums": In(sums(config)),
                "read": Out(read_port(rows, width)),
                "write": Out(write_port(rows, width, config.beats_per_accumulator_row)),
                "entering": Out(1),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages: list[Any] = [self.slot]
        for i in range(write_latency(self._config)):
            stage = _Stage(
                row=Signal(name=f"row{i}"),
                last=Signal(name=f"last{i}"),
                dest=Signal.like(self.slot.dest, name=f"dest{i}", reset_less=True),
                accumulate=Signal(name=f"accumulate{i}", reset_less=True),
            )
            m.d.sync += [getattr(stage, name).eq(getattr(stages[-1], name)) for name in _Stage._fields]
            stages.append(stage)
        adding = len(stages) - 1 - ADD_LATENCY
        reading, adding, writing = stages[adding - READ_LATENCY], stages[adding], stages[-1]

        total = Signal(sums(self._config), reset_less=True)
        for n in range(self._config.array):
            old = self.read.data.word_select(n, SUM_BITS) & adding.accumulate.replicate(SUM_BITS)
            m.d.sync += total[n].eq(self.sums[n] + old)
        m.d.comb += [
            self.read.row.eq(reading.dest),
            self.read.valid.eq(reading.row & reading.accumulate),
            self.write.row.eq(writing.dest),
            self.write.valid.eq(writing.row),
            self.write.data.eq(total),
            self.write.enable.eq(~0),
            self.entering.eq(stages[READ_LATENCY].row),
            self.done.eq(writing.last),
        ]
        return m
