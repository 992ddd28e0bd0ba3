"""When the lanes join rows with partial results, and how a fold joins these."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import VectorRow
from sley.abi.vector.operations import PARTIALS, Reduction
from sley.hw.core.vector.events import later
from sley.hw.core.vector.partials import LONGEST, SLOTS, join_latency
from sley.hw.core.vector.row_registers import ROWS, RowSource


class FoldState(enum.Enum):
    """What a fold is doing."""

    IDLE = 0
    JOIN = 1  # pairs of partials: two cycles each
    WAIT = 2  # until the last of a level is written


class Reductions(wiring.Component):
    """Counts the rows that went into each row register, and gives the lanes the partial that a row is joined with.

    Row r since the last fold is joined with partial r mod PARTIALS. A fold joins p with p + 4 for p in 0 .. 3, then p
    with p + 2, then 0 with 1, and the register takes the result.

    Members
    -------
    join : In(1), last : In(1)
        A row is one cycle before the adder that joins it; x of a row is behind all stages in this cycle.
    reduce : In(3), register : In(2), is_float : In(1)
        What becomes of it; constant while rows are on their way, and during a fold.
    rows_end : In(1)
        All rows of the instruction are through: a register that takes the last one does.
    start_fold : In(1)
        Fold the register; not while ``busy``.
    clear, abort : In(1)
        All counts become 0; what is on its way is forgotten.
    busy : Out(1)
        Results are on their way to partials, or a fold is.
    read, slot, fresh, fold, second, write, write_slot : Out
        To the lanes, as of ``LanePartials`` and ``LaneTail``.
    capture : Out(1), row_load : Out(ROWS), row_source : Out(2)
        The lanes keep a value; the row register that takes something in the next cycle, and what: the value kept last,
        or A.

    Latency
    ------- A row is done when its partial is written, ``join_latency`` after it. A fold takes 14 + 3 * (1 +
    ``join_latency``) cycles.

    Cost
    ----
    Some 80 flip-flops.
    """

    join: Signal
    last: Signal
    reduce: Signal
    register: Signal
    is_float: Signal
    rows_end: Signal
    start_fold: Signal
    clear: Signal
    abort: Signal
    busy: Signal
    read: Signal
    slot: Signal
    fresh: Signal
    fold: Signal
    second: Signal
    write: Signal
    write_slot: Signal
    capture: Signal
    row_load: Signal
    row_source: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                **{name: In(1) for name in ("join", "last", "is_float", "rows_end", "start_fold", "clear", "abort")},
                "reduce": In(3),
                "register": In(range(len(VectorRow))),
                **{name: Out(1) for name in ("busy", "read", "fresh", "fold", "second", "write", "capture")},
                "slot": Out(range(SLOTS)),
                "write_slot": Out(range(SLOTS)),
                "row_load": Out(ROWS),
                "row_source": Out(2),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = PARTIALS.bit_length() - 1
        counts = Array(Signal(bits, name=f"count_{row}") for row in range(ROWS))
        full = Array(Signal(name=f"full_{row}") for row in range(ROWS))
        count, is_full = counts[self.register], full[self.register]

        # Fold
        state = Signal(FoldState)
        distance, pair = (Signal(range(PARTIALS), name=name, reset_less=True) for name in ("distance", "pair"))
        second = Signal(reset_less=True)
        joins = state == FoldState.JOIN
        partial = Mux(joins, pair | Mux(second, 0, distance), count)
        missing = ~is_full & (partial >= count)
        last_level = distance == 1
        ends_level = second & (pair == distance - 1)
        done = Signal()

        # A result is written as many cycles behind its row as the adder takes
        value = self.join | (joins & second)
        latency = join_latency(self.reduce, self.is_float)
        m.d.comb += [
            self.slot.eq(Cat(partial[:bits], self.register)),
            self.fresh.eq(missing & (~joins | (distance == PARTIALS // 2))),
            self.fold.eq(state != FoldState.IDLE),
            self.second.eq(joins & second),
            self.read.eq(self.join | joins),
            self.write.eq(later(m, "write", value, latency, self.abort)),
        ]
        slots = [Signal(range(SLOTS), name=f"slot_{age}", reset_less=True) for age in range(1, LONGEST + 1)]
        for slot, before in zip(slots, [self.slot, *slots], strict=False):
            m.d.sync += slot.eq(before)
        chosen: Value = slots[-1]
        for cycles, condition in latency.items():
            chosen = Mux(condition, slots[cycles - 1], chosen)
        on_the_way = Signal(range(2 * PARTIALS))
        m.d.sync += on_the_way.eq(Mux(self.abort, 0, on_the_way + value - self.write))
        m.d.comb += [
            self.write_slot.eq(chosen),
            self.busy.eq((state != FoldState.IDLE) | (on_the_way != 0)),
            done.eq((state == FoldState.WAIT) & (on_the_way == 0)),
        ]
        with m.Switch(state):
            with m.Case(FoldState.IDLE):
                m.d.sync += [distance.eq(PARTIALS // 2), pair.eq(0), second.eq(0)]
                with m.If(self.start_fold):
                    m.d.sync += state.eq(FoldState.JOIN)
            with m.Case(FoldState.JOIN):
                m.d.sync += [second.eq(~second), pair.eq(pair + second)]
                with m.If(ends_level):
                    m.d.sync += [pair.eq(0), state.eq(FoldState.WAIT)]
            with m.Case(FoldState.WAIT), m.If(done):
                m.d.sync += [distance.eq(distance >> 1), state.eq(Mux(last_level, FoldState.IDLE, FoldState.JOIN))]
        with m.If(self.abort):
            m.d.sync += state.eq(FoldState.IDLE)

        # Row registers
        keeps = self.last & (self.reduce == Reduction.LAST)
        kept = Signal()  # a row, for the end of the instruction
        takes_fold = (state == FoldState.WAIT) & last_level & self.write
        m.d.sync += kept.eq((kept | keeps) & ~self.rows_end & ~self.abort)
        m.d.comb += [
            self.capture.eq(keeps | takes_fold),
            self.row_load.eq(Mux((kept & self.rows_end) | takes_fold, 1 << self.register, 0)),
            self.row_source.eq(Mux(takes_fold, RowSource.FOLD, RowSource.X)),
        ]

        # Counts
        with m.If(self.join):
            m.d.sync += [count.eq(count + 1), is_full.eq(is_full | (count == PARTIALS - 1))]
        with m.If(done & last_level):
            m.d.sync += [count.eq(0), is_full.eq(0)]
        with m.If(self.clear):
            m.d.sync += [counter.eq(0) for counter in (*counts, *full)]
        return m
