"""Execution of a program: reads instructions, does the scalar ones and hands the others to the units."""

from collections.abc import Callable

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import UNITS, FaultCode
from sley.abi.instructions import SEMAPHORES, Op
from sley.hw.core.params import flag_bits
from sley.hw.core.sequencer.alu import Alu
from sley.hw.core.sequencer.dispatch import Dispatch
from sley.hw.core.sequencer.instruction import INSTRUCTION
from sley.hw.core.sequencer.loops import LoopStack
from sley.hw.core.sequencer.register_file import REGISTER_WRITE, RegisterFile
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


_TARGET = data.StructLayout(
    {
        "beyond_program": 1,
        "outside_loop": 1,
        "backwards": 1,
        "last_of_all": 1,  # the program ends there
        "not_inside_loop": 1,  # what ends there does not end before the innermost loop does
    }
)
"""What is known of the target of a branch or LOOP."""


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
    stall : In(1)
        Read no instruction after a ``go`` yet.
    stop : In(1)
        For two cycles or more: leave the program; wins over all else. What was handed out is still delivered.
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
        For one cycle, behind that in which the instruction at ``pc`` was found to be at fault; nothing more happens
        until ``go``.
    ended : Out(1)
        END was executed; until ``stop`` or ``go``.
    dispatching : Out(1)
        A command was not accepted yet.
    pc : Out(range(program_words + 1))
        The instruction in execution.
    fetching, blocked : Out(1)
        For counters: the next instruction is not in the memory yet, or stalled; a command waits because the one before
        it was not accepted.

    Latency
    -------
    In cycles: 2 per instruction; 3 for MUL, for LOOP, and for a branch that is taken; 4 for a loop with count 0; 3 with
    one mask of SYNC, 4 with both; more while a mask or the queue of a unit is not ready. The end of a loop costs
    nothing. Outputs come from registers or selections of registers, without regard to any ``ready``.
    """

    go: Signal
    stall: Signal
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
                "stall": In(1),
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
        next_state = Signal(_State)  # the next one, unless ``refused``
        refused = Signal()  # the semaphores do not accept the mask of SYNC: known so late that it only holds the state
        address_range = range(self._config.program_words + 1)
        pc = Signal(address_range, reset_less=True)  # while SYNC waits it is that of the next instruction already
        sequential = Signal(
            address_range, reset_less=True
        )  # what follows pc, if it does not branch; pc where nothing executes
        instruction = Signal(INSTRUCTION, reset_less=True)
        word = instruction.word
        a = Signal(32)  # the first operand

        sync = Signal()  # SYNC executes
        waits = Signal()  # and waits for its masks
        step = Signal()  # the instruction is no branch and completes, or is SYNC: the sequential one is next
        falls_through = Signal()  # the same of a branch, which never ends a loop, until it is known to be taken
        branch_target = word.flags[flag_bits(Op.LOOP, "target")]
        low_target = branch_target[: len(pc)]  # of one that is not beyond the program
        # The instruction before was a branch that is taken: what is read now does not count.
        taken = alu.taken
        origin = Signal(address_range, reset_less=True)  # where it was, or SYNC
        skipped = Signal()  # the LOOP has count 0
        counts = Signal(8, reset_less=True)  # four bits of its count are not 0
        branch_completes = Signal()  # the taken branch completes
        jump = Signal()  # the instruction completes, and what is behind ``target`` is next
        after_target = Signal(address_range)
        onward, low_present, sequential_present, present = self._read_ahead(m, taken, low_target, sequential)
        is_unit = instruction.unit.any()
        m.d.comb += [
            after_target.eq(branch_target + 1),
            self.pc.eq(Mux(taken | waits, origin, pc)),
            waits.eq((state == _State.WAIT) | (state == _State.SIGNAL)),
            self.wait.payload.eq(word.wait),
            self.signal.payload.eq(word.signal),
            alu.branch.eq(falls_through),
            loops.clear.eq(self.go),
            loops.pc.eq(pc),
            loops.frame.first.eq(sequential),
            loops.frame.last.eq(branch_target),
            loops.frame.count.eq(a),
            loops.step.eq(step),
            skipped.eq(~counts.any()),
        ]
        self._operands(m, state, instruction, registers, alu, a)
        m.d.sync += counts.eq(Cat(a[k : k + 4].any() for k in range(0, 32, 4)))

        fail = self._faults(m, next_state, word, branch_target, pc)
        issue = Signal()
        m.submodules.units = units = Dispatch()
        for unit, port in zip(units.o, self.dispatch, strict=True):
            wiring.connect(m, unit, wiring.flipped(port))
        m.d.comb += [
            units.issue.eq(issue),
            units.instruction.eq(instruction),
            units.pc.eq(pc),
            units.a.eq(a),
            units.b.eq(registers.value[1]),
            units.c.eq(registers.value[0]),
            self.dispatching.eq(units.pending),
        ]

        target = self._compare_target(m, branch_target, low_target, after_target, pc, loops)
        astray = Signal()  # the program has no instruction at pc
        m.d.sync += astray.eq((state == _State.FETCH) & ~self.stall & (pc == self.words))
        m.d.comb += [
            self.fetching.eq((state == _State.FETCH) & ~taken & (self.stall | ~present)),
            self.blocked.eq((state == _State.EXECUTE) & self.dispatching & is_unit),
            self.wait.valid.eq(state == _State.WAIT),
            self.signal.valid.eq(state == _State.SIGNAL),
            self.ended.eq(state == _State.ENDED),
        ]
        with m.If((state != _State.FETCH) & ~waits):  # the same until the instruction completes
            m.d.sync += sequential.eq(Mux(loops.at_last & loops.again, loops.top.first, pc + 1))
        # ``taken`` is known late, and true in IDLE, FETCH and READ alone: the other states do not ask.
        m.d.comb += next_state.eq(state)
        with m.Switch(state):
            with m.Case(_State.FETCH):
                with m.If(astray), m.If(~taken):
                    fail(FaultCode.PC_OUT_OF_RANGE, astray=True)
                with m.Elif(~self.stall & sequential_present):
                    m.d.comb += next_state.eq(_State.READ)

            with m.Case(_State.READ):
                m.d.comb += next_state.eq(_State.EXECUTE)
                with m.If(~taken):
                    m.d.sync += instruction.eq(self.instruction)

            with m.Case(_State.EXECUTE):
                m.d.sync += origin.eq(pc)
                with m.If(~instruction.legal | (loops.closing & instruction.control)):
                    fail(FaultCode.ILLEGAL_INSTRUCTION, illegal=True)
                with m.Else():  # one of these at the most
                    with m.If(is_unit & ~self.dispatching & ~self.stop):
                        m.d.comb += [issue.eq(1), step.eq(1), registers.write.eq(~instruction.set)]
                    with m.If(instruction.simple):
                        m.d.comb += [step.eq(1), registers.write.eq(1)]
                    with m.If(instruction.branch):
                        m.d.comb += falls_through.eq(1)
                    with m.If(instruction.loop):
                        m.d.comb += [loops.offer.eq(1), next_state.eq(_State.LOOP)]
                    with m.If(instruction.end):
                        m.d.comb += next_state.eq(_State.ENDED)
                    with m.If(instruction.sync):
                        m.d.comb += [step.eq(1), sync.eq(1)]
                    with m.If(instruction.multiply):
                        m.d.comb += next_state.eq(_State.MULTIPLY)

            with m.Case(_State.LOOP):
                with m.If(target.beyond_program | target.backwards | (skipped & target.last_of_all)):
                    fail(FaultCode.PC_OUT_OF_RANGE)
                with m.Elif(target.not_inside_loop):
                    fail(FaultCode.BRANCH_OUT_OF_LOOP)
                with m.Elif(skipped):
                    m.d.comb += jump.eq(1)
                with m.Elif(loops.full):
                    fail(FaultCode.LOOP_OVERFLOW)
                with m.Else():
                    m.d.comb += [loops.push.eq(1), step.eq(1)]

            with m.Case(_State.MULTIPLY):
                m.d.comb += [step.eq(1), registers.write.eq(1)]

            with m.Case(_State.WAIT):
                m.d.comb += refused.eq(~self.wait.ready)

            with m.Case(_State.SIGNAL):
                m.d.comb += refused.eq(~self.signal.ready)

        with m.If(step | falls_through | waits):
            m.d.comb += next_state.eq(Mux(sequential_present, _State.READ, _State.FETCH))
        with m.If(sync & word.wait.any()):
            m.d.comb += next_state.eq(_State.WAIT)
        with m.Elif((sync | (state == _State.WAIT)) & word.signal.any()):
            m.d.comb += next_state.eq(_State.SIGNAL)
        with m.If(jump):
            m.d.comb += next_state.eq(_State.FETCH)
        # In the cycle in which a branch is found to be taken the instruction behind it is read already.
        with m.If(taken):
            m.d.comb += next_state.eq(Mux(low_present, _State.READ, _State.FETCH))
            with m.If(target.beyond_program | target.outside_loop):
                fail(Mux(target.beyond_program, FaultCode.PC_OUT_OF_RANGE, FaultCode.BRANCH_OUT_OF_LOOP))
                m.d.sync += pc.eq(origin)
            with m.Else():
                m.d.comb += branch_completes.eq(1)

        with m.If(step | falls_through | branch_completes):
            m.d.sync += [pc.eq(onward), sequential.eq(onward)]
        with m.If(jump):
            m.d.sync += [pc.eq(after_target), sequential.eq(after_target)]
        with m.If(self.go):
            m.d.sync += [pc.eq(0), sequential.eq(0)]
            m.d.comb += next_state.eq(_State.FETCH)
        with m.If(self.stop):
            m.d.comb += next_state.eq(_State.IDLE)
            with m.If(waits):
                m.d.sync += pc.eq(origin)
        with m.If(~refused | self.go | self.stop):
            m.d.sync += state.eq(next_state)
        return m

    def _faults(
        self, m: Module, next_state: Signal, word: data.View, branch_target: Value, pc: Signal
    ) -> Callable[..., None]:
        """Drives the fault record; returns what reports a fault of the instruction and stops."""
        # What a fault is about stays as it is in IDLE.
        is_illegal = Signal(reset_less=True)
        is_astray = Signal(reset_less=True)
        failed = Signal()
        fault_code = Signal.like(self.fault.code)
        m.d.sync += failed.eq(0)
        m.d.comb += [
            self.fault.valid.eq(failed),
            self.fault.code.eq(fault_code),
            self.fault.pc.eq(self.pc),
            self.fault.address.eq(Mux(is_illegal, word.as_value()[:32], Mux(is_astray, pc, branch_target))),
        ]

        def fail(code: Value | FaultCode, *, illegal: bool = False, astray: bool = False) -> None:
            m.d.sync += [
                failed.eq(1),
                fault_code.eq(code),
                is_illegal.eq(illegal),
                is_astray.eq(astray),
            ]
            m.d.comb += next_state.eq(_State.IDLE)

        return fail

    def _read_ahead(
        self, m: Module, taken: Value, low_target: Value, sequential: Signal
    ) -> tuple[Signal, Signal, Signal, Signal]:
        """The instruction that leaves the program memory in the next cycle; whether the one at ``low_target``, the
        sequential one, and that which leaves are in the memory."""
        onward = Signal.like(sequential, name="onward", reset_less=False)
        low_present, sequential_present, present = Signal(), Signal(), Signal()
        m.d.comb += [
            onward.eq(Mux(taken, low_target, sequential)),
            # Both are compared beside what decides between them.
            low_present.eq(low_target < self.available),
            sequential_present.eq(sequential < self.available),
            present.eq(Mux(taken, low_present, sequential_present)),
            self.index.eq(onward),
        ]
        return onward, low_present, sequential_present, present

    def _operands(
        self, m: Module, state: Signal, instruction: data.View, registers: RegisterFile, alu: Alu, a: Signal
    ) -> None:
        """Connects registers and ALU; ``a`` becomes the first operand."""
        word = instruction.word
        is_unit = instruction.unit.any()
        reads = state == _State.READ
        m.d.comb += [
            # Two when the instruction is read and two when it executes, for the cycle behind.
            registers.read.eq(reads | ((state == _State.EXECUTE) & ~self.blocked)),
            registers.index[0].eq(Mux(reads, self.instruction.word.ra, word.rc)),
            registers.index[1].eq(Mux(reads, self.instruction.word.rb, word.rd)),
            registers.target.eq(Mux(is_unit, word.ra, word.rd)),
            registers.result.eq(alu.result | (self.register.value & self.register.valid.replicate(32))),
            registers.set.eq(self.register),
            registers.clear.eq(self.clear),
            a.eq(Mux(instruction.immediate.ra, word.imm, registers.value[0])),
            alu.op.eq(word.op),
            alu.a.eq(registers.value[0]),
            alu.b.eq(Mux(instruction.immediate.rb, word.imm, registers.value[1])),
            alu.start.eq(state == _State.EXECUTE),
            alu.unit.eq(is_unit),
            alu.multiply.eq(state == _State.MULTIPLY),
        ]

    def _compare_target(
        self, m: Module, target: Value, low_target: Value, after_target: Value, pc: Signal, loops: LoopStack
    ) -> data.View:
        """Where a branch or LOOP leads is compared while it executes, and decided upon in the next cycle."""
        compared = Signal(_TARGET, name="target", reset_less=True)
        m.d.sync += [
            compared.beyond_program.eq(target >= self.words),
            compared.outside_loop.eq(loops.active & ((low_target < loops.top.first) | (low_target > loops.top.last))),
            compared.backwards.eq(low_target <= pc),
            compared.last_of_all.eq(after_target == self.words),
            compared.not_inside_loop.eq(loops.active & (low_target >= loops.top.last)),
        ]
        return compared
