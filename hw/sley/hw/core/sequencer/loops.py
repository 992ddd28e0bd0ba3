"""Hardware loops of the sequencer: a stack of loop frames that sends execution back at no cost."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.faults import PC_BITS
from sley.abi.instructions import LOOP_DEPTH


def loop_frame(program_words: int) -> data.StructLayout:
    """One loop: its first and last instruction and the passes that are left, the current one included."""
    return data.StructLayout({"first": range(program_words), "last": range(program_words), "count": 32})


class LoopStack(wiring.Component):
    """The loops around the current instruction, innermost on top.

    Parameters
    ----------
    program_words : int
        Instructions that fit into the program memory.

    Members
    -------
    clear : In(1)
        Forget all loops.
    offer : In(1), frame : In(loop_frame)
        Put down a frame that ``push`` may enter later. Not together with a ``step`` at the end of a loop.
    push : In(1)
        Enter the loop that was offered last; the current instruction has not changed since. Not while ``full``, not
        together with an ``offer`` or a ``step`` at the end of a loop.
    pc : In(16)
        The current instruction.
    step : In(1)
        The current instruction completes without a branch: if it is ``closing`` the pass is counted, and after the last
        pass the loop is left. It must be the current one since the cycle before.
    top : Out(loop_frame), active : Out(1)
        The innermost loop, if there is one.
    full : Out(1)
        LOOP_DEPTH loops are active.
    at_last : Out(1)
        Combinational: ``pc`` is the last instruction of the innermost loop.
    again : Out(1)
        The innermost loop has passes left after the current one.
    closing : Out(1)
        ``at_last`` of the cycle before.

    Raises
    ------
    ValueError
        If ``program_words`` is below 2.

    Latency
    -------
    One cycle from ``push`` and ``step`` to the outputs.

    Cost
    ----
    Two small memories in look-up tables, of where loops are and of the passes that are left, and one counter.
    """

    clear: Signal
    offer: Signal
    push: Signal
    frame: data.View
    pc: Signal
    step: Signal
    top: data.View
    active: Signal
    full: Signal
    at_last: Signal
    again: Signal
    closing: Signal

    def __init__(self, program_words: int) -> None:
        if program_words < 2:
            raise ValueError(f"program_words is {program_words}; it must be at least 2")
        frame = loop_frame(program_words)
        super().__init__(
            {
                "clear": In(1),
                "offer": In(1),
                "push": In(1),
                "frame": In(frame),
                "pc": In(PC_BITS),
                "step": In(1),
                "top": Out(frame),
                "active": Out(1),
                "full": Out(1),
                "at_last": Out(1),
                "again": Out(1),
                "closing": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Frame number ``depth`` is the innermost loop's; the one behind it is where the next is put down.
        depth = Signal(range(LOOP_DEPTH + 1))
        behind = Signal(range(LOOP_DEPTH + 2))
        repeats = Signal(reset_less=True)  # again, of the cycle before
        returns = self.step & self.closing
        place = data.StructLayout({"first": self.frame.first.shape(), "last": self.frame.last.shape()})
        m.submodules.places = places = Memory(shape=place, depth=LOOP_DEPTH + 2, init=[])
        m.submodules.counts = counts = Memory(shape=32, depth=LOOP_DEPTH + 2, init=[])
        read_place, write_place = places.read_port(domain="comb"), places.write_port()
        read_count, write_count = counts.read_port(domain="comb"), counts.write_port()
        m.d.comb += [
            behind.eq(depth + 1),
            read_place.addr.eq(depth),
            read_count.addr.eq(depth),
            write_place.addr.eq(behind),
            write_place.en.eq(self.offer),
            write_place.data.first.eq(self.frame.first),
            write_place.data.last.eq(self.frame.last),
            write_count.addr.eq(Mux(self.offer, behind, depth)),
            write_count.en.eq(self.offer | (returns & repeats)),
            write_count.data.eq(Mux(self.offer, self.frame.count, read_count.data - 1)),
            self.top.first.eq(read_place.data.first),
            self.top.last.eq(read_place.data.last),
            self.top.count.eq(read_count.data),
            self.active.eq(depth != 0),
            self.full.eq(depth == LOOP_DEPTH),
            self.at_last.eq(self.active & (self.pc == read_place.data.last)),
            self.again.eq(read_count.data != 1),
        ]
        m.d.sync += [self.closing.eq(self.at_last), repeats.eq(self.again)]
        with m.If(self.push):
            m.d.sync += depth.eq(behind)
        with m.Elif(returns & ~repeats):
            m.d.sync += depth.eq(depth - 1)
        with m.If(self.clear):
            m.d.sync += depth.eq(0)
        return m
