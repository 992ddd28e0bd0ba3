"""Hands commands to the units."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.faults import PC_BITS, UNITS
from sley.hw.core.sequencer.instruction import INSTRUCTION
from sley.hw.core.unit import UnitCommand


class Dispatch(wiring.Component):
    """Holds one command until its unit accepts it.

    Members
    -------
    issue : In(1)
        ``instruction`` is a unit's: hand it out from the next cycle on. Only while not ``pending``.
    instruction : In(INSTRUCTION), pc : In(16), a : In(32)
        The command, where it was, and the value of its first operand; valid with ``issue``.
    b, c : In(32)
        Registers rb and rc or the immediate in place of rb; valid in the cycle after ``issue``. In place of rc the
        command itself has its immediate.
    o : Out(stream of UnitCommand).array(4)
        To the units in the order of UNITS, at most one valid. All share one payload register.
    pending : Out(1)
        A command was not accepted yet.

    Latency
    -------
    1 cycle.

    Cost
    ----
    One command; the outputs come from registers or selections of registers, without regard to any ``ready``.
    """

    issue: Signal
    instruction: data.View
    pc: Signal
    a: Signal
    b: Signal
    c: Signal
    o: list[stream.Interface]
    pending: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "issue": In(1),
                "instruction": In(INSTRUCTION),
                "pc": In(PC_BITS),
                "a": In(32),
                "b": In(32),
                "c": In(32),
                "o": Out(stream.Signature(UnitCommand)).array(len(UNITS)),
                "pending": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        instruction, word = self.instruction, self.instruction.word
        pending = Signal(len(UNITS))
        command = Signal(UnitCommand, reset_less=True)
        b_late = Signal()  # command.b is read
        c_late = Signal()  # and command.c, which is no immediate
        m.d.comb += self.pending.eq(pending.any())
        m.d.sync += [b_late.eq(self.issue), c_late.eq(self.issue & ~instruction.immediate.rc)]
        for k, port in enumerate(self.o):
            m.d.comb += [
                port.valid.eq(pending[k]),
                port.payload.eq(command),
                port.payload.b.eq(Mux(b_late, self.b, command.b)),
                port.payload.c.eq(Mux(c_late, self.c, command.c)),
            ]
            with m.If(port.valid & port.ready):
                m.d.sync += pending[k].eq(0)
        with m.If(b_late):
            m.d.sync += command.b.eq(self.b)
        with m.If(self.issue | c_late):
            m.d.sync += command.c.eq(Mux(c_late, self.c, word.imm))
        with m.If(self.issue):
            m.d.sync += [
                pending.eq(instruction.unit),
                command.op.eq(word.op),
                command.pc.eq(self.pc),
                command.wait.eq(word.wait),
                command.signal.eq(word.signal),
                command.a.eq(self.a),
                command.flags.eq(word.flags),
            ]
        return m
