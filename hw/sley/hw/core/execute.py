"""Execution of a program: reads instructions, does the scalar ones and hands the others to the units."""

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode
from sley.abi.instructions import SEMAPHORES
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
    words, available : In(range(program_words + 1))
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
        Combinational, while the instruction at ``pc`` is at fault; the user answers with ``stop``, at once or a cycle
        later.
    ended : Out(1)
        END was executed; until ``stop`` or ``go``.
    dispatching : Out(1)
        A command was not accepted yet.
    pc : Out(range(program_words + 1))
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
                "words": In(range(config.program_words + 1)),
                "available": In(range(config.program_words + 1)),
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
                "pc": Out(range(config.program_words + 1)),
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
        place = range(self._config.program_words + 1)
        pc = Signal(place, reset_less=True)
        sequential = Signal(place, reset_less=True)  # what follows pc, if it does not branch
        instruction = Signal(INSTRUCTION, reset_less=True)
        word = instruction.word
        a, b = Signal(32), Signal(32)

        step = Signal()  # the instruction, not a branch, completes, and the sequential one is next
        pass_by = Signal()  # the same of a branch, which never ends a loop, as long as nobody knows that it is taken
        taken = Signal()  # the instruction before was a branch that is taken: what is read now does not count
        origin = Signal(place, reset_less=True)  # where it was
        skipped = Signal(reset_less=True)  # the LOOP has count 0
        goes_on = Signal()  # the taken branch completes
        jump = Signal()  # the instruction completes, and what is behind ``target`` is next
        behind_target = Signal(place)
        onward = Signal(place)  # the instruction that leaves the program memory in the next cycle
        here = Signal()  # it is in the memory
        is_unit = instruction.unit.any()
        m.d.comb += [
            onward.eq(Mux(taken, word.target, Mux(state == _State.FETCH, pc, sequential))),
            here.eq(onward < self.available),
            behind_target.eq(word.target + 1),
            self.index.eq(onward),
            self.pc.eq(Mux(taken, origin, pc)),
            self.fault.pc.eq(self.pc),
            self.wait.payload.eq(word.wait),
            self.signal.payload.eq(word.signal),
            # ra and rb when the instruction is read, rc and rd when it executes, for the cycle behind.
            registers.read.eq((state == _State.READ) | ((state == _State.EXECUTE) & ~self.blocked)),
            registers.index[0].eq(Mux(state == _State.READ, self.instruction.word.ra, word.rc)),
            registers.index[1].eq(Mux(state == _State.READ, self.instruction.word.rb, word.rd)),
            registers.target.eq(Mux(is_unit, word.ra, word.rd)),
            registers.result.eq(alu.result | (self.register.value & self.register.valid.replicate(32))),
            registers.set.eq(self.register),
            registers.clear.eq(self.clear),
            a.eq(Mux(instruction.immediate.ra, word.imm, registers.value[0])),
            b.eq(Mux(instruction.immediate.rb, word.imm, registers.value[1])),
            alu.op.eq(word.op),
            alu.a.eq(registers.value[0]),
            alu.b.eq(b),
            alu.start.eq(state == _State.EXECUTE),
            alu.unit.eq(is_unit),
            alu.addend.eq(registers.value[1]),
            alu.multiply.eq(state == _State.MULTIPLY),
            loops.clear.eq(self.go),
            loops.pc.eq(pc),
            loops.frame.first.eq(sequential),
            loops.frame.last.eq(word.target),
            loops.frame.count.eq(a),
            loops.step.eq(step),
        ]

        def fail(code: FaultCode, address: Value) -> None:
            m.d.comb += [self.fault.valid.eq(1), self.fault.code.eq(code), self.fault.address.eq(address)]

        pending = Signal(len(UNITS))
        command = Signal(UnitCommand, reset_less=True)
        late = Signal()  # command.c is read
        c = Signal(32)
        m.d.comb += [
            self.dispatching.eq(pending.any()),
            c.eq(command.c),
        ]
        m.d.sync += late.eq(0)
        with m.If(late):
            m.d.comb += c.eq(Mux(instruction.immediate.rc, word.imm, registers.value[0]))
            m.d.sync += command.c.eq(c)
        for k, port in enumerate(self.dispatch):
            m.d.comb += [port.valid.eq(pending[k]), port.payload.eq(command), port.payload.c.eq(c)]
            with m.If(port.valid & port.ready):
                m.d.sync += pending[k].eq(0)

        # Where a branch or LOOP leads is compared while it executes, and decided upon in the next cycle.
        target = word.target
        low_target = target[: len(pc)]  # of one that is not beyond the program
        beyond_program, outside_loop = Signal(reset_less=True), Signal(reset_less=True)
        backwards, last_of_all = Signal(reset_less=True), Signal(reset_less=True)
        not_inside_loop = Signal(reset_less=True)  # what ends there does not end before the innermost loop does
        astray = Signal()  # the program has no instruction at pc
        m.d.sync += [
            astray.eq((state == _State.FETCH) & ~self.hold & (pc == self.words)),
            beyond_program.eq(target >= self.words),
            outside_loop.eq(loops.active & ((low_target < loops.top.first) | (low_target > loops.top.last))),
            backwards.eq(low_target <= pc),
            last_of_all.eq(behind_target == self.words),
            not_inside_loop.eq(loops.active & (low_target >= loops.top.last)),
        ]
        m.d.comb += [
            self.fetching.eq((state == _State.FETCH) & ~taken & (self.hold | ~here)),
            self.blocked.eq((state == _State.EXECUTE) & self.dispatching & is_unit),
        ]
        # In the cycle in which a branch is found to be taken the instruction behind it is read already.
        with m.If(taken):
            with m.If(beyond_program):
                fail(FaultCode.PC_OUT_OF_RANGE, target)
            with m.Elif(outside_loop):
                fail(FaultCode.BRANCH_OUT_OF_LOOP, target)
            with m.Else():
                m.d.comb += goes_on.eq(1)
                m.d.sync += taken.eq(0)
        with m.Else(), m.Switch(state):
            with m.Case(_State.FETCH):
                with m.If(astray):
                    fail(FaultCode.PC_OUT_OF_RANGE, pc)
                with m.Elif(~self.hold & here):
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

                with m.Elif(is_unit), m.If(~self.dispatching):
                    m.d.sync += [
                        pending.eq(instruction.unit),
                        late.eq(1),
                        command.op.eq(word.op),
                        command.pc.eq(pc),
                        command.wait.eq(word.wait),
                        command.signal.eq(word.signal),
                        command.a.eq(a),
                        command.b.eq(registers.value[1]),
                        command.flags.eq(word.flags),
                    ]
                    m.d.comb += [step.eq(1), registers.write.eq(~instruction.set)]

                with m.Elif(instruction.branch):
                    m.d.comb += pass_by.eq(1)
                    m.d.sync += [taken.eq(alu.taken), origin.eq(pc)]

                with m.Elif(instruction.loop):
                    m.d.comb += loops.offer.eq(1)
                    m.d.sync += [skipped.eq(a == 0), state.eq(_State.LOOP)]

                with m.Elif(instruction.end):
                    m.d.sync += state.eq(_State.ENDED)

                with m.Elif(instruction.sync):
                    with m.If(word.wait.any()):
                        m.d.sync += state.eq(_State.WAIT)
                    with m.Elif(word.signal.any()):
                        m.d.sync += state.eq(_State.SIGNAL)
                    with m.Else():
                        m.d.comb += step.eq(1)

                with m.Elif(instruction.multiply):
                    m.d.sync += state.eq(_State.MULTIPLY)

                with m.Else():
                    m.d.comb += [step.eq(1), registers.write.eq(1)]

            with m.Case(_State.LOOP):
                with m.If(beyond_program | backwards | (skipped & last_of_all)):
                    fail(FaultCode.PC_OUT_OF_RANGE, target)
                with m.Elif(not_inside_loop):
                    fail(FaultCode.BRANCH_OUT_OF_LOOP, target)
                with m.Elif(skipped):
                    m.d.comb += jump.eq(1)
                with m.Elif(loops.full):
                    fail(FaultCode.LOOP_OVERFLOW, target)
                with m.Else():
                    m.d.comb += [loops.push.eq(1), step.eq(1)]

            with m.Case(_State.MULTIPLY):
                m.d.comb += [step.eq(1), registers.write.eq(1)]

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

        with m.If(step | pass_by | goes_on):
            m.d.sync += [pc.eq(onward), state.eq(Mux(here, _State.READ, _State.FETCH))]
        with m.If(jump):
            m.d.sync += [pc.eq(behind_target), state.eq(_State.FETCH)]
        with m.If(self.go):
            m.d.sync += [pc.eq(0), state.eq(_State.FETCH), taken.eq(0)]
        with m.If(self.stop):
            m.d.sync += [state.eq(_State.IDLE), taken.eq(0)]
        return m
