"""From sums that leave the array to accumulator rows."""

from typing import NamedTuple

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.timing import ACCUMULATE, SRAM_READ, read_latency, write_latency
from sley.abi.types import WORD_BITS, ElementType
from sley.hw.core.matrix.delay import MemoryDelay, pointer_bits
from sley.hw.core.matrix.rows import sums
from sley.hw.core.sram.memories import accumulator_read, accumulator_write

MOST_LASTS = 7
"""MATMULs that may be complete with one row: those without rows that follow it count."""


def issue_slot(config: ChipConfig) -> data.StructLayout:
    """What the streamer does in a cycle. ``row``: a row of activations was granted, its sums go to accumulator row
    ``dest``, added if ``accumulate``; ``lasts``: so many MATMULs are complete with this row or, if there is none, with
    those before."""
    return data.StructLayout(
        {"row": 1, "lasts": range(MOST_LASTS + 1), "dest": range(config.accumulator_rows), "accumulate": 1}
    )


class _Stage(NamedTuple):
    """An issue slot as registers of their own: only the control bits are reset."""

    row: Signal
    lasts: Signal
    dest: Signal
    accumulate: Signal


class Accumulate(wiring.Component):
    """Writes sums to their rows, or adds them to what is there.

    Issue slots travel along in a shift register as long as the path through scratchpad and array. The old row is read
    early enough to meet the sums of int8 behind the array, or to enter the array before the first product of bf16.
    Nothing stalls: the ports must be granted at once, always (number 0 on the memory).

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    slot : In(issue_slot(config))
        Every cycle. No row may follow another one to the same accumulator row within ``hazard_cycles`` if it
        accumulates.
    sums : In(sums(config))
        Of the array.
    read : Out(read_port), write : Out(write_port)
        Of the accumulators. On chips with int8 alone data must be 0 where nothing was read (``zeros`` of
        ``BankedSram``).
    entering : Out(1)
        A row of activations is at the array's entry in this cycle.
    done : Out(range(MOST_LASTS + 1))
        The ``lasts`` of a slot: all rows up to it are visible from the next cycle on.
    bf16 : In(1), run : In(1)
        With bf16 alone: as for the array.
    old : Out(sums(config))
        With bf16 alone: old sums for the array, 0 for rows that do not accumulate.

    Latency
    -------
    ``write_latency`` cycles from slot to write.

    Throughput
    ----------
    One row a cycle.

    Cost
    ----
    N 32-bit adders and registers, and the shift register, ``write_latency(config)`` times 13 bits or so; for bf16 two
    bits for each cycle that it takes longer, and a memory of as many accumulator row numbers.
    """

    slot: data.View
    sums: data.View
    read: wiring.PureInterface
    write: wiring.PureInterface
    entering: Signal
    done: Signal
    bf16: Signal
    run: Signal
    old: data.View

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "slot": In(issue_slot(config)),
                "sums": In(sums(config)),
                "read": Out(accumulator_read(config)),
                "write": Out(accumulator_write(config)),
                "entering": Out(1),
                "done": Out(range(MOST_LASTS + 1)),
            }
            | ({"bf16": In(1), "run": In(1), "old": Out(sums(config))} if config.has(ElementType.BF16) else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        stages: list[data.View | _Stage] = [self.slot]
        before_detour = read_latency(config, ElementType.BF16) + SRAM_READ  # when the old sums of bf16 have come
        for i in range(write_latency(config)):
            if i == before_detour and config.has(ElementType.BF16):
                direct = stages[i]
                stages[i] = self._detour(m, direct)
            stage = _Stage(
                row=Signal(name=f"row{i}"),
                lasts=Signal.like(self.slot.lasts, name=f"lasts{i}"),
                dest=Signal.like(self.slot.dest, name=f"dest{i}", reset_less=True),
                accumulate=Signal(name=f"accumulate{i}"),
            )
            m.d.sync += [getattr(stage, name).eq(getattr(stages[-1], name)) for name in _Stage._fields]
            if not i:
                m.d.sync += stage.accumulate.eq(self.slot.row & self.slot.accumulate)  # all that a read asks for
            stages.append(stage)
        reading, adding, writing = stages[read_latency(config)], stages[-1 - ACCUMULATE], stages[-1]
        old = Signal(sums(config))
        total = Signal(sums(config), reset_less=True)
        m.d.comb += old.eq(self.read.data)
        if config.has(ElementType.BF16):
            with m.If(~adding.accumulate):
                m.d.comb += old.eq(0)
        m.d.sync += [total[n].eq(self.sums[n] + old[n]) for n in range(config.array)]
        m.d.comb += [
            self.read.row.eq(reading.dest),
            self.read.valid.eq(reading.accumulate),
            self.write.row.eq(writing.dest),
            self.write.valid.eq(writing.row),
            self.write.data.eq(total),
            self.write.enable.eq(~0),
            self.entering.eq(stages[SRAM_READ].row),
            self.done.eq(writing.lasts),
        ]
        if config.has(ElementType.BF16):
            reading = stages[read_latency(config, ElementType.BF16)]
            with m.If(self.bf16):
                m.d.comb += [self.read.row.eq(reading.dest), self.read.valid.eq(reading.accumulate)]
            m.d.comb += self.old.eq(self.read.data & direct.accumulate.replicate(WORD_BITS * config.array))
        return m

    def _detour(self, m: Module, stage: _Stage) -> _Stage:
        """The stage itself for int8; for bf16 what it was as many cycles ago as bf16 takes longer."""
        cycles = write_latency(self._config, ElementType.BF16) - write_latency(self._config)
        bits = len(stage.lasts)
        rows, lasts = Signal(cycles), Signal(cycles * bits)
        pointer = Signal(pointer_bits(cycles), reset_less=True)
        m.submodules.dest_delay = dest = MemoryDelay(len(stage.dest), cycles, cycles)
        m.d.comb += [dest.i.eq(stage.dest), dest.pointer.eq(pointer), dest.run.eq(self.run)]
        m.d.sync += [rows.eq(Cat(stage.row & self.bf16, rows)), lasts.eq(Cat(Mux(self.bf16, stage.lasts, 0), lasts))]
        with m.If(self.run):
            m.d.sync += pointer.eq(pointer + 1)
        return _Stage(
            row=Mux(self.bf16, rows[-1], stage.row),
            lasts=Mux(self.bf16, lasts[-bits:], stage.lasts),
            dest=Mux(self.bf16, dest.o, stage.dest),
            accumulate=stage.accumulate & ~self.bf16,
        )
