"""Hardware loops of the sequencer: a stack of loop frames that sends execution back at no cost."""

from itertools import pairwise

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

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
    push : In(1), frame : In(loop_frame)
        Enter a loop. Not while ``full``, not together with a ``step`` at the end of a loop.
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

    Latency one cycle from ``push`` and ``step`` to the outputs.
    Cost: LOOP_DEPTH frames as a shift register, so that only the top one is ever compared.
    """

    clear: Signal
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
                "push": In(1),
                "frame": In(frame),
                "pc": In(16),
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
        frames = [Signal(self.frame.shape(), reset_less=True, name=f"frame_{i}") for i in range(LOOP_DEPTH)]
        depth = Signal(range(LOOP_DEPTH + 1))
        top = frames[0]
        m.d.comb += [
            self.top.eq(top),
            self.active.eq(depth != 0),
            self.full.eq(depth == LOOP_DEPTH),
            self.at_last.eq(self.active & (self.pc == top.last)),
            self.again.eq(top.count != 1),
        ]
        repeats = Signal(reset_less=True)  # again, of the cycle before
        m.d.sync += [self.closing.eq(self.at_last), repeats.eq(self.again)]
        with m.If(self.push):
            m.d.sync += [top.eq(self.frame), depth.eq(depth + 1)]
            m.d.sync += [inner.eq(outer) for outer, inner in pairwise(frames)]
        with m.Elif(self.step & self.closing):
            with m.If(repeats):
                m.d.sync += top.count.eq(top.count - 1)
            with m.Else():
                m.d.sync += depth.eq(depth - 1)
                m.d.sync += [inner.eq(outer) for inner, outer in pairwise(frames)]
        with m.If(self.clear):
            m.d.sync += depth.eq(0)
        return m
