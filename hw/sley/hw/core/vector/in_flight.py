"""Rows of the vector unit between their reads and their writes, and reads that must wait for them."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.instructions import Space
from sley.hw.stream.count import step


def place_layout(config: ChipConfig) -> data.StructLayout:
    """A row of one of the memories."""
    rows = max(config.scratchpad_rows, config.accumulator_rows)
    return data.StructLayout({"row": (rows - 1).bit_length(), "space": 1})


def look_layout(config: ChipConfig) -> data.StructLayout:
    """An operand that goes to its next row: that it does, whether rows of it are read at all, and that row."""
    return data.StructLayout({"take": 1, "used": 1, "place": place_layout(config)})


class InFlight(wiring.Component):
    """Counts rows that are read and not done, and tells when a row that is to be read may still be written by a command
    before.

    Rows that commands before the current one have yet to write are in one range, from the lowest to the highest: that
    of the last command that writes, together with what was the range if that command began before all of it was done.
    So a row that no command writes waits if it is between such rows. The current command's own rows are not in it.

    Parameters
    ----------
    config : ChipConfig
        The chip.
    rows : int
        The most that may be in flight.
    operands : int
        Operands that are read.

    Members
    -------
    start : In(1)
        A command begins: what was issued is of those before. It issues in the next cycle at the earliest.
    looks : In(look_layout(config)).array(operands)
        Operands that go to their next rows: with ``start``, and when a row is issued.
    writes : In(1), backwards : In(1)
        The current command writes rows; from higher ones to lower ones. Constant from the cycle after ``start``.
    to : In(place_layout(config))
        Where the row at hand of the current command will be written.
    last : In(1)
        It is the last one; from the cycle in which it is at hand until it is issued.
    issue : In(1), done : In(1)
        The row at hand is read; the oldest row in flight is written, or has nothing to be written. Of as many as were
        issued, in their order.
    abort : In(1)
        Nothing is in flight.
    blocked : Out(1)
        A row that is to be read now is one that a command before may have yet to write.
    room : Out(1)
        Another row may be issued.
    some : Out(1)
        There are rows in flight.

    Latency
    -------
    All outputs are one LUT behind registers: a row is free in the cycle after the last ``done`` of the commands before.

    Cost
    ----
    Two counters, registers for three rows, two comparators and two for each operand.
    """

    start: Signal
    looks: list[data.View]
    writes: Signal
    backwards: Signal
    to: data.View
    last: Signal
    issue: Signal
    done: Signal
    abort: Signal
    blocked: Signal
    room: Signal
    some: Signal

    def __init__(self, config: ChipConfig, rows: int, operands: int) -> None:
        self._rows, self._operands = rows, operands
        place = place_layout(config)
        self._bits = place["row"].width
        events = ("start", "writes", "backwards", "last", "issue", "done", "abort")
        super().__init__(
            {
                **{name: In(1) for name in events},
                "looks": In(look_layout(config)).array(operands),
                "to": In(place),
                **{name: Out(1) for name in ("blocked", "some")},
                "room": Out(1, init=1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()

        # Rows in flight, and those of them that are of commands before
        outstanding = Signal(range(self._rows + 1))
        earlier = Signal(range(self._rows + 1))
        following, left = Signal.like(outstanding), Signal.like(earlier)
        pending = Signal()  # earlier != 0
        m.d.comb += [
            following.eq(outstanding + step(self.issue, self.done, len(outstanding))),
            left.eq(Mux(self.start, outstanding, earlier)),
        ]
        with m.If(self.abort):
            m.d.sync += [outstanding.eq(0), earlier.eq(0), pending.eq(0), self.room.eq(1), self.some.eq(0)]
        with m.Else():
            m.d.sync += [
                outstanding.eq(following),
                self.room.eq(following != self._rows),
                self.some.eq(following != 0),
                earlier.eq(left - (self.done & (left != 0))),
                pending.eq((left != 0) & ~(self.done & (left == 1))),
            ]

        # Their range. While the last row of a command is at hand nothing is looked up for it any more.
        low, high, first = (Signal(self._bits, name=name, reset_less=True) for name in ("low", "high", "first"))
        spaces = Signal(len(Space), reset_less=True)
        began = Signal(reset_less=True)
        one_end = Signal(self._bits)
        m.d.comb += one_end.eq(Mux(began, self.to.row, first))
        m.d.sync += [began.eq(self.start), first.eq(one_end)]
        lower, higher = Signal(self._bits), Signal(self._bits)
        m.d.comb += [
            lower.eq(Mux(self.backwards, self.to.row, one_end)),
            higher.eq(Mux(self.backwards, one_end, self.to.row)),
        ]
        with m.If(self.last & self.writes):
            m.d.sync += [
                spaces.eq(Mux(pending, spaces, 0) | (1 << self.to.space)),
                low.eq(Mux(pending & (low < lower), low, lower)),
                high.eq(Mux(pending & (high > higher), high, higher)),
            ]

        touches = Signal(self._operands, reset_less=True)
        for index, look in enumerate(self.looks):
            row, space = look.place.row, look.place.space
            inside: Value = (row >= low) & (row <= high) & spaces.bit_select(space, 1)
            with m.If(look.take):
                m.d.sync += touches[index].eq(look.used & inside)
        m.d.comb += self.blocked.eq(Cat(touches).any() & pending)
        return m
