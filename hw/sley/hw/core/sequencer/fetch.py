"""The program memory of a core, and what fills it and the argument registers at the start of a block."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import CODE_BITS, FaultCode
from sley.abi.instructions import ARG_REGISTER, INSTRUCTION_BYTES, MAX_ARGS, REGISTERS
from sley.abi.pages import CONTEXT_BITS
from sley.hw.core.sequencer.instruction import INSTRUCTION, decoded
from sley.hw.core.sequencer.register_file import REGISTER_WRITE
from sley.hw.memory.run import Run, beat
from sley.hw.noc.access import fault_code

SPLIT_BYTES = 1 << 15
"""Longest run of a program; a Run has 16 bits of length."""


FETCH_ORDER = data.StructLayout(
    {
        "context": CONTEXT_BITS,
        "program": 32,
        "words": 16,
        "tagged": 1,
        "same": 1,
        "args": 32,
        "fetch_args": 1,
        "arg_words": range(MAX_ARGS + 1),
    }
)
"""What a block needs from memory: whose, byte addresses and sizes; whether its program has a tag; whether context, tag,
address and length of the program are those of the order before; whether there are arguments in memory, and if so how
many, at least one."""


class _Phase(enum.Enum):
    IDLE = 0
    ARGS = 1
    PROGRAM = 2


class Fetch(wiring.Component):
    """Fetches arguments, then the program, and keeps the program: an order that names the ``same`` one does not fetch
    it again if it had a tag.

    Instructions are decoded on their way into the memory, and the decoded bits fit its spare width.

    Parameters
    ----------
    config : ChipConfig
        Sets the size of the program memory and the width of a beat.

    Members
    -------
    start : In(1), order : In(FETCH_ORDER)
        Begin with ``order``, which stays as it is until the next start. Not while ``busy``.
    run : Out(stream of Run), beat : In(stream of beat(config))
        To and from a memory reader.
    forget : In(1)
        The program in the memory must not be used again.
    open : In(1)
        Arguments may be written to registers.
    register : Out(REGISTER_WRITE)
        Writes the arguments to r8, r9, ...
    args_done : Out(1)
        All arguments are written.
    available : Out(range(program_words + 1))
        Instructions that may be read; the program's length once all are here, right away if it is held.
    index : In(range(program_words)), instruction : Out(INSTRUCTION)
        Read port of the program memory, one cycle of latency. Of an instruction that is not ``available``, anything.
    busy : Out(1)
        Data are still to come.
    error : Out(1), code : Out(8), address : Out(32)
        Stay from an error to the next start. What memory says, or BAD_ADDRESS (arguments or program reach beyond the
        chip's address width; then they are not asked for), with the address of the arguments or of the program.

    Latency
    -------
    2 cycles from the last beat of an instruction to the cycle in which it may be read.

    Throughput
    ----------
    One argument or instruction per cycle, less on a bus narrower than an instruction.
    """

    start: Signal
    order: data.View
    run: stream.Interface
    beat: stream.Interface
    forget: Signal
    open: Signal
    register: data.View
    args_done: Signal
    available: Signal
    index: Signal
    instruction: data.View
    busy: Signal
    error: Signal
    code: Signal
    address: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "order": In(FETCH_ORDER),
                "run": Out(stream.Signature(Run)),
                "beat": In(stream.Signature(beat(config))),
                "forget": In(1),
                "open": In(1),
                "register": Out(REGISTER_WRITE),
                "args_done": Out(1),
                "available": Out(range(config.program_words + 1)),
                "index": In(range(config.program_words)),
                "instruction": Out(INSTRUCTION),
                "busy": Out(1),
                "error": Out(1),
                "code": Out(CODE_BITS),
                "address": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        phase = Signal(_Phase)
        args_left = Signal(range(MAX_ARGS + 1))
        expects = Signal()  # the program was asked for, or will be, and is not found complete yet
        reusable = Signal()
        reused = Signal()
        needed = Signal()  # the program is not held
        words = Signal.like(self.available)
        missing = Signal()  # of the program
        program_at_fault = Signal(reset_less=True)  # the error is the program's
        m.d.comb += [
            reused.eq(reusable & self.order.same),
            words.eq(self.order.words),
            needed.eq(~reused & (words != 0)),
            missing.eq(self.available != words),
            self.args_done.eq(args_left == 0),
            self.address.eq(Mux(program_at_fault, self.order.program, self.order.args)),
            self.busy.eq((phase != _Phase.IDLE) | (args_left != 0) | (expects & missing)),
        ]
        with m.If(~missing):
            m.d.sync += expects.eq(0)
        self._receive(m, args_left, words, program_at_fault)
        self._ask(m, phase, args_left, expects, words, needed, program_at_fault)
        with m.If(self.start):
            m.d.sync += [
                args_left.eq(self.order.arg_words & self.order.fetch_args.replicate(len(args_left))),
                self.available.eq(Mux(reused, words, 0)),
                self.error.eq(0),
                reusable.eq(self.order.tagged),
            ]
        with m.If(self.forget):
            m.d.sync += reusable.eq(0)
        return m

    def _ask(
        self,
        m: Module,
        phase: Signal,
        args_left: Signal,
        expects: Signal,
        words: Signal,
        needed: Signal,
        program_at_fault: Signal,
    ) -> None:
        """Runs for the arguments and for the program."""
        most = self._config.program_words * INSTRUCTION_BYTES
        in_program = Signal()
        begin = Signal(32)
        size = Signal(range(most + 1))
        runs = Signal(range(-(-most // SPLIT_BYTES)), reset_less=True)  # of the program that were asked for
        requested = Signal(32)  # bytes in them
        left = Signal.like(size)
        final = Signal()  # what is left is one run
        beyond = Signal()  # arguments or program, whatever is asked for, reach beyond the address width
        outside = Signal(reset_less=True)  # they begin there
        topmost = Signal(reset_less=True)  # they begin less than the longest run before the end
        crosses = Signal(reset_less=True)  # and end at that end or behind it,
        behind = Signal(-(-len(size) // 4), reset_less=True)  # and not at the end, by four bits each
        m.d.comb += [
            in_program.eq(phase == _Phase.PROGRAM),
            begin.eq(Mux(in_program, self.order.program, self.order.args)),
            size.eq(Mux(in_program, words * INSTRUCTION_BYTES, self.order.arg_words << 2)),
            requested.eq(runs * SPLIT_BYTES),
            left.eq(size - requested),
            final.eq(left <= SPLIT_BYTES),
            self.run.payload.addr.eq(begin + requested),
            self.run.payload.bytes.eq(Mux(final, left, SPLIT_BYTES)),
            self.run.payload.context.eq(self.order.context),
            self.run.payload.execute.eq(in_program),
            beyond.eq(outside | (topmost & crosses & behind.any())),
            self.run.valid.eq((phase != _Phase.IDLE) & ~beyond),
        ]
        # Whether a run reaches beyond the address width is looked at a cycle before it is asked for: in IDLE, where the
        # order is complete in the cycle of ``start``, and when the arguments' run is taken.
        args_next = Signal()
        first = Signal(32)
        length = Signal.like(size)
        reach = Signal(len(size) + 1)
        m.d.comb += [
            args_next.eq((phase == _Phase.IDLE) & self.order.fetch_args),
            first.eq(Mux(args_next, self.order.args, self.order.program)),
            length.eq(Mux(args_next, self.order.arg_words << 2, words * INSTRUCTION_BYTES)),
            reach.eq(first[: len(size)] + length),
        ]
        with m.If((phase == _Phase.IDLE) | self.run.ready):
            m.d.sync += [
                outside.eq(first[self._config.addr_bits :].any()),
                topmost.eq(first[len(size) : self._config.addr_bits].all()),
                crosses.eq(reach[-1]),
                behind.eq(Cat(reach[k : min(k + 4, len(size))].any() for k in range(0, len(size), 4))),
            ]
        with m.Switch(phase):
            with m.Case(_Phase.IDLE), m.If(self.start):
                m.d.sync += [expects.eq(needed), runs.eq(0)]
                # The arguments first: nothing runs without all of them.
                with m.If(self.order.fetch_args):
                    m.d.sync += phase.eq(_Phase.ARGS)
                with m.Elif(needed):
                    m.d.sync += phase.eq(_Phase.PROGRAM)
            with m.Case(_Phase.ARGS), m.If(self.run.ready):
                m.d.sync += phase.eq(Mux(expects, _Phase.PROGRAM, _Phase.IDLE))
            with m.Case(_Phase.PROGRAM), m.If(self.run.ready):
                m.d.sync += runs.eq(runs + 1)
                with m.If(final):
                    m.d.sync += phase.eq(_Phase.IDLE)
        with m.If((phase != _Phase.IDLE) & beyond):
            m.d.sync += [
                phase.eq(_Phase.IDLE),
                expects.eq(0),
                self.error.eq(1),
                self.code.eq(FaultCode.BAD_ADDRESS),
                program_at_fault.eq(in_program),
            ]
            with m.If(phase == _Phase.ARGS):
                m.d.sync += args_left.eq(0)

    def _receive(self, m: Module, args_left: Signal, words: Signal, program_at_fault: Signal) -> None:
        """Beats into a shift register, and from there words to registers and instructions to memory."""
        beat_bits = len(self.beat.payload.data)
        word_bits = 8 * INSTRUCTION_BYTES
        shift = Signal(max(beat_bits, word_bits), reset_less=True)
        full = Signal()
        full_args = Signal(reset_less=True)
        args_per_beat = beat_bits // 32
        words_per_beat = max(beat_bits // word_bits, 1)
        beats_per_word = max(word_bits // beat_bits, 1)
        piece = Signal(range(max(args_per_beat, words_per_beat)), reset_less=True)  # inside a beat
        collected = Signal(range(beats_per_word))

        put_arg = Signal()
        put_word = Signal()
        leaves = Signal()
        last_word = (piece == words_per_beat - 1) | (self.available + 1 == words) if words_per_beat > 1 else 1
        m.d.comb += [
            put_arg.eq(full & full_args & self.open),
            put_word.eq(full & ~full_args),
            leaves.eq((put_arg & ((piece == args_per_beat - 1) | (args_left == 1))) | (put_word & last_word)),
            self.beat.ready.eq(~full | leaves),
        ]

        # A beat's words are at the top of a shift register that collects, and everywhere in one that does not.
        argument = Signal(range(REGISTERS), reset_less=True)
        m.d.comb += [
            self.register.valid.eq(put_arg),
            self.register.index.eq(argument),
            self.register.value.eq(shift[len(shift) - beat_bits :][:32]),
        ]
        m.submodules.memory = memory = Memory(shape=INSTRUCTION, depth=self._config.program_words, init=[])
        write = memory.write_port()
        read = memory.read_port(domain="comb")
        instruction = Signal(INSTRUCTION, reset_less=True)
        m.d.comb += [
            write.en.eq(put_word),
            write.addr.eq(self.available),
            write.data.eq(decoded(m, shift[:word_bits], self._config)),
            read.addr.eq(self.index),
            self.instruction.eq(instruction),
        ]
        # Not the one that is being written: then it does not matter what a block RAM gives.
        with m.If(~(put_word & (read.addr == write.addr))):
            m.d.sync += instruction.eq(read.data)
        # A shift register of one piece a beat moves when a beat comes, and needs no multiplexer.
        if args_per_beat > 1:
            with m.If(put_arg):
                m.d.sync += shift.eq(shift >> 32)
        if words_per_beat > 1:
            with m.If(put_word):
                m.d.sync += shift.eq(shift >> word_bits)
        with m.If(put_arg):
            m.d.sync += [piece.eq(piece + 1), argument.eq(argument + 1), args_left.eq(args_left - 1)]
        with m.If(put_word):
            m.d.sync += [piece.eq(piece + 1), self.available.eq(self.available + 1)]
        with m.If(leaves):
            m.d.sync += full.eq(0)

        args_follow = Signal()
        m.d.comb += args_follow.eq(args_left != put_arg)  # of what is left, the one that leaves now does not count
        with m.If(self.beat.valid & self.beat.ready):
            m.d.sync += [shift.eq(Cat(shift, self.beat.payload.data)[beat_bits:]), piece.eq(0)]
            m.d.sync += full_args.eq(args_follow)
            with m.If(args_follow | (collected == beats_per_word - 1)):
                m.d.sync += [full.eq(1), collected.eq(0)]
            with m.Else():
                m.d.sync += collected.eq(collected + 1)
            with m.If(self.beat.payload.error.any() & ~self.error):
                m.d.sync += [
                    self.error.eq(1),
                    self.code.eq(fault_code(self.beat.payload.error)),
                    program_at_fault.eq(~args_follow),
                ]
        with m.If(self.start):
            m.d.sync += [argument.eq(ARG_REGISTER), full.eq(0), collected.eq(0)]
