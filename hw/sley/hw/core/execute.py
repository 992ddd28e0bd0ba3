"""Execution of a program: reads instructions, does the scalar ones and hands the others to the units."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode
from sley.abi.instructions import SEMAPHORES, Op
from sley.hw.core.alu import Alu
from sley.hw.core.instruction import INSTRUCTION, UNITS
from sley.hw.core.loops import LoopStack
from sley.hw.core.register_file import REGISTER_WRITE, RegisterFile
from sley.hw.core.unit import Fault, UnitCommand


class _State(enum.Enum):
    IDLE = 0
    FETCH = 1  # the instruction does not follow the one before, or is not here yet
    READ = 2  # it leaves the program memory, its registers are read
    EXECUTE = 3
    MULTIPLY = 4
    WAIT = 5  # SYNC
    SIGNAL = 6  # SYNC
    LOOP = 7
    ENDED = 8


class Execute(wiring.Component):
    """Runs a program from its first instruction to END.

    Parameters
    ----------
    config : ChipConfig
        Sets the size of the program memory.

    Members
    -------
    go : In(1)
        Start at instruction 0 in the next cycle.
    hold : In(1)
        Read no instruction after a ``go`` yet.
    stop : In(1)
        Leave the program; wins over all else. What was handed out is still delivered.
    words : In(16), available : In(16)
        Length of the program, and how much of it is in the memory by now.
    index : Out(range(program_words)), instruction : In(INSTRUCTION)
        Read port of the program memory, one cycle of latency.
    register : In(REGISTER_WRITE)
        Writes to the registers from outside, while nothing is executed.
    clear : In(1)
        All registers become zero; while nothing is executed.
    dispatch : Out(stream of UnitCommand).array(4)
        To the units in the order of UNITS. All share one payload register.
    wait, signal : Out(stream of SEMAPHORES bits)
        For SYNC.
    fault : Out(Fault)
        Combinational, while the instruction at ``pc`` is at fault; the user answers with ``stop``.
    ended : Out(1)
        END was executed; until ``stop`` or ``go``.
    dispatching : Out(1)
        A command was not accepted yet.
    pc : Out(16)
        The instruction in execution.
    fetching, blocked : Out(1)
        For counters: the next instruction is not in the memory yet, or held; a command waits because the one before it
        was not accepted.

    Timing in cycles: 2 per instruction; 3 for MUL, for LOOP, and for a branch that is taken; 4 for a loop with count 0;
    3 with one mask of SYNC, 4 with both; more while a mask or the queue of a unit is not ready. The end of a loop costs
    nothing.
    Outputs come from registers or selections of registers, without regard to any ``ready``.
    """

    go: Signal
    hold: Signal
    stop: Signal
    words: Signal
    available: Signal
    index: Signal
    instruction: Signal
    register: Signal
    clear: Signal
    dispatch: list[stream.Interface]
    wait: stream.Interface
    signal: stream.Interface
    fault: Signal
    ended: Signal
    dispatching: Signal
    pc: Signal
    fetching: Signal
    blocked: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "go": In(1),
                "hold": In(1),
                "stop": In(1),
                "words": In(16),
                "available": In(16),
                "index": Out(range(config.program_words)),
                "instruction": In(INSTRUCTION),
                "register": In(REGISTER_WRITE),
                "clear": In(1),
                "dispatch": Out(stream.Signature(UnitCommand)).array(len(UNITS)),
                "wait": Out(stream.Signature(SEMAPHORES)),
                "signal": Out(stream.Signature(SEMAPHORES)),
                "fault": Out(Fault),
                "ended": Out(1),
                "dispatching": Out(1),
                "pc": Out(16),
                "fetching": Out(1),
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.registers = registers = RegisterFile()
        m.submodules.alu = alu = Alu()
        m.submodules.loops = loops = LoopStack(self._config.program_words)

        state = Signal(_State)
        pc = Signal(16, reset_less=True)
        sequential = Signal(16, reset_less=True)  # what follows pc, if it does not branch
        instruction = Signal(INSTRUCTION, reset_less=True)
        word = instruction.word
        a, b = Signal(32), Signal(32)
        issued = Signal(UnitCommand)

        step = Signal()  # the instruction, not a branch, completes, and the sequential one is next
        pass_by = Signal()  # the same of a branch, which never ends a loop, as long as nobody knows that it is taken
        taken = Signal()  # the instruction before was a branch that is taken: what is read now does not count
        origin = Signal(16, reset_less=True)  # where it was
        skipped = Signal(reset_less=True)  # the LOOP has count 0
        jump = Signal()  # the instruction completes, and ``destination`` is next
        destination = Signal(16)
        m.d.comb += [
            self.index.eq(Mux(taken, word.target, Mux(state == _State.FETCH, pc, sequential))),
            self.pc.eq(Mux(taken, origin, pc)),
            self.fault.pc.eq(self.pc),
            self.wait.payload.eq(word.wait),
            self.signal.payload.eq(word.signal),
            registers.write.eq(self.register),
            registers.clear.eq(self.clear),
            registers.read.eq(state == _State.READ),
            registers.index[0].eq(self.instruction.word.ra),
            registers.index[1].eq(self.instruction.word.rb),
            registers.index[2].eq(self.instruction.word.rc),
            registers.index[3].eq(self.instruction.word.rd),
            a.eq(Mux(instruction.immediate.ra, word.imm, registers.value[0])),
            b.eq(Mux(instruction.immediate.rb, word.imm, registers.value[1])),
            issued.op.eq(word.op),
            issued.pc.eq(pc),
            issued.wait.eq(word.wait),
            issued.signal.eq(word.signal),
            issued.a.eq(a),
            issued.b.eq(b),
            issued.c.eq(Mux(instruction.immediate.rc, word.imm, registers.value[2])),
            issued.flags.eq(word.flags),
            alu.op.eq(word.op),
            alu.a.eq(a),
            alu.b.eq(b),
            loops.clear.eq(self.go),
            loops.pc.eq(pc),
            loops.frame.first.eq(sequential),
            loops.frame.last.eq(word.target),
            loops.frame.count.eq(a),
            loops.step.eq(step),
        ]

        def fail(code: FaultCode, address: Value) -> None:
            m.d.comb += [self.fault.valid.eq(1), self.fault.code.eq(code), self.fault.address.eq(address)]

        def go_on(destination: Value) -> None:
            """To the instruction that leaves the program memory in the next cycle."""
            m.d.sync += [pc.eq(destination), state.eq(Mux(destination < self.available, _State.READ, _State.FETCH))]

        def write(register: Value, value: Value) -> None:
            m.d.comb += [
                registers.write.valid.eq(1),
                registers.write.index.eq(register),
                registers.write.value.eq(value),
            ]

        pending = Signal(len(UNITS))
        command = Signal(UnitCommand, reset_less=True)
        m.d.comb += self.dispatching.eq(pending.any())
        for k, port in enumerate(self.dispatch):
            m.d.comb += [port.valid.eq(pending[k]), port.payload.eq(command)]
            with m.If(port.valid & port.ready):
                m.d.sync += pending[k].eq(0)

        # Where a branch or LOOP leads is compared while it executes, and decided upon in the next cycle.
        target = word.target
        beyond_program, outside_loop = Signal(reset_less=True), Signal(reset_less=True)
        backwards, last_of_all = Signal(reset_less=True), Signal(reset_less=True)
        not_inside_loop = Signal(reset_less=True)  # what ends there does not end before the innermost loop does
        astray = Signal()  # the program has no instruction at pc
        m.d.sync += [
            astray.eq((state == _State.FETCH) & ~self.hold & (pc >= self.words)),
            beyond_program.eq(target >= self.words),
            outside_loop.eq(loops.active & ((target < loops.top.first) | (target > loops.top.last))),
            backwards.eq(target <= pc),
            last_of_all.eq(target + 1 == self.words),
            not_inside_loop.eq(loops.active & (target >= loops.top.last)),
        ]
        m.d.comb += [
            self.fetching.eq((state == _State.FETCH) & ~taken & (self.hold | (pc >= self.available))),
            self.blocked.eq((state == _State.EXECUTE) & self.dispatching & instruction.unit.any()),
        ]
        # In the cycle in which a branch is found to be taken the instruction behind it is read already.
        with m.If(taken):
            with m.If(beyond_program):
                fail(FaultCode.PC_OUT_OF_RANGE, target)
            with m.Elif(outside_loop):
                fail(FaultCode.BRANCH_OUT_OF_LOOP, target)
            with m.Else():
                go_on(target)
                m.d.sync += taken.eq(0)
        with m.Else(), m.Switch(state):
            with m.Case(_State.FETCH):
                with m.If(astray):
                    fail(FaultCode.PC_OUT_OF_RANGE, pc)
                with m.Elif(~self.hold & (pc < self.available)):
                    m.d.sync += state.eq(_State.READ)

            with m.Case(_State.READ):
                m.d.sync += [
                    instruction.eq(self.instruction),
                    sequential.eq(Mux(loops.at_last & loops.again, loops.top.first, pc + 1)),
                    state.eq(_State.EXECUTE),
                ]

            with m.Case(_State.EXECUTE):
                with m.If(~instruction.legal | (loops.closing & instruction.control)):
                    fail(FaultCode.ILLEGAL_INSTRUCTION, word.as_value()[:32])

                with m.Elif(instruction.unit.any()), m.If(~self.dispatching):
                    m.d.sync += [pending.eq(instruction.unit), command.eq(issued)]
                    m.d.comb += step.eq(1)
                    with m.If(word.op != Op.SET):
                        write(word.ra, registers.value[0] + registers.value[3])

                with m.Elif(instruction.branch):
                    m.d.comb += pass_by.eq(1)
                    m.d.sync += [taken.eq(alu.taken), origin.eq(pc)]

                with m.Elif(word.op == Op.LOOP):
                    m.d.sync += [skipped.eq(a == 0), state.eq(_State.LOOP)]

                with m.Elif(word.op == Op.END):
                    m.d.sync += state.eq(_State.ENDED)

                with m.Elif(word.op == Op.SYNC):
                    with m.If(word.wait.any()):
                        m.d.sync += state.eq(_State.WAIT)
                    with m.Elif(word.signal.any()):
                        m.d.sync += state.eq(_State.SIGNAL)
                    with m.Else():
                        m.d.comb += step.eq(1)

                with m.Elif(word.op == Op.MUL):
                    m.d.sync += state.eq(_State.MULTIPLY)

                with m.Else():
                    write(word.rd, alu.result)
                    m.d.comb += step.eq(1)

            with m.Case(_State.LOOP):
                with m.If(beyond_program | backwards | (skipped & last_of_all)):
                    fail(FaultCode.PC_OUT_OF_RANGE, target)
                with m.Elif(not_inside_loop):
                    fail(FaultCode.BRANCH_OUT_OF_LOOP, target)
                with m.Elif(skipped):
                    m.d.comb += [jump.eq(1), destination.eq(target + 1)]
                with m.Elif(loops.full):
                    fail(FaultCode.LOOP_OVERFLOW, target)
                with m.Else():
                    m.d.comb += [loops.push.eq(1), step.eq(1)]

            with m.Case(_State.MULTIPLY):
                write(word.rd, alu.product)
                m.d.comb += step.eq(1)

            with m.Case(_State.WAIT):
                m.d.comb += self.wait.valid.eq(1)
                with m.If(self.wait.ready):
                    with m.If(word.signal.any()):
                        m.d.sync += state.eq(_State.SIGNAL)
                    with m.Else():
                        m.d.comb += step.eq(1)

            with m.Case(_State.SIGNAL):
                m.d.comb += [self.signal.valid.eq(1), step.eq(self.signal.ready)]

            with m.Case(_State.ENDED):
                m.d.comb += self.ended.eq(1)

        with m.If(step | pass_by):
            go_on(sequential)
        with m.If(jump):
            m.d.sync += [pc.eq(destination), state.eq(_State.FETCH)]
        with m.If(self.go):
            m.d.sync += [pc.eq(0), state.eq(_State.FETCH), taken.eq(0)]
        with m.If(self.stop):
            m.d.sync += [state.eq(_State.IDLE), taken.eq(0)]
        return m
