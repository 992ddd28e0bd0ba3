"""The queue in front of each unit, which takes a command's semaphores before the unit sees it."""

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.faults import Unit
from sley.abi.instructions import FORMATS, SEMAPHORES, WORD, Op
from sley.hw.core.unit import UnitCommand
from sley.hw.stream.fifo import StreamFIFO


class UnitFront(wiring.Component):
    """In-order queue of commands; the oldest one waits for its semaphores here.

    ``i.ready`` and ``o.valid`` depend on registers only (but for ``abort``), ``wait.valid`` and ``o.valid`` by one LUT.

    Parameters
    ----------
    unit : Unit
        The unit behind it; one that has a queue.
    depth : int
        Commands that are always accepted without one leaving, at least 2.
    program_words : int
        Instructions that fit into the program memory.

    Members
    -------
    i : In(stream of UnitCommand)
        From the sequencer: of the unit's own operations or SET, with reserved flags zero and ``pc`` in the program.
    o : Out(stream of UnitCommand)
        To the unit: commands whose wait set was taken. ``SET`` and commands with an empty wait set do not ask.
    wait : Out(stream of SEMAPHORES bits)
        To the semaphores.
    abort : In(1)
        While high, all commands are dropped, one per cycle, and offers on ``o`` are taken back. What is dropped may
        still take semaphores, which are cleared behind an abort.
    empty : Out(1)
        No command is here; goes low in the cycle after the acceptance of one.
    waiting : Out(1)
        The oldest command waits for its semaphores.

    Raises
    ------
    ValueError
        If the unit takes no commands, or ``depth`` is below 2.

    Latency
    -------
    2 cycles, 3 with a wait set.

    Throughput
    ----------
    One command per cycle, per 2 cycles with wait sets.

    Cost
    ----
    A memory of ``depth`` commands, without the bits that are the same in all commands of the unit, and with one that
    says whether a command has a wait set.
    """

    i: stream.Interface
    o: stream.Interface
    wait: stream.Interface
    abort: Signal
    empty: Signal
    waiting: Signal

    def __init__(self, unit: Unit, depth: int, program_words: int) -> None:
        if unit in (Unit.SEQUENCER, Unit.COMMAND):
            raise ValueError(f"unit is {unit!r}, which takes no commands")
        if depth < 2:
            raise ValueError(f"depth of the {unit.name} queue is {depth}; it must be at least 2")
        self._depth = depth
        self._ops = [Op.SET, *(op for op, form in FORMATS.items() if form.unit is unit)]
        flags = UnitCommand.as_shape()["flags"].width
        used = [FORMATS[op].layout.mask >> (WORD.width - flags) for op in self._ops]
        self._flags = [k for k in range(flags) if any(mask >> k & 1 for mask in used)]
        self._stored = data.StructLayout(
            {
                "op": range(len(self._ops)),
                "pc": range(program_words),
                **{name: UnitCommand.as_shape()[name].shape for name in ("wait", "signal", "a", "b", "c")},
                "flags": len(self._flags),
                "waits": 1,  # it has a wait set
            }
        )
        super().__init__(
            {
                "i": In(stream.Signature(UnitCommand)),
                "o": Out(stream.Signature(UnitCommand)),
                "wait": Out(stream.Signature(SEMAPHORES)),
                "abort": In(1),
                "empty": Out(1),
                "waiting": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(self._stored, self._depth)
        head = Signal(UnitCommand)
        m.d.comb += [fifo.i.valid.eq(self.i.valid), self.i.ready.eq(fifo.i.ready)]
        for whole, stored, inwards in ((self.i.payload, fifo.i.payload, True), (head, fifo.o.payload, False)):
            same = [
                *((whole[name], stored[name]) for name in ("pc", "wait", "signal", "a", "b", "c")),
                (Cat(Value.cast(whole.flags)[k] for k in self._flags), stored.flags),
            ]
            m.d.comb += [target.eq(value) if inwards else value.eq(target) for value, target in same]
        for code, op in enumerate(self._ops):
            with m.If(self.i.payload.op == op):
                m.d.comb += fifo.i.payload.op.eq(code)
            with m.If(fifo.o.payload.op == code):
                m.d.comb += head.op.eq(op)

        m.d.comb += fifo.i.payload.waits.eq((self.i.payload.op != Op.SET) & self.i.payload.wait.any())

        taken = Signal()
        must_wait = Signal()
        m.d.comb += [
            must_wait.eq(fifo.o.payload.waits & ~taken),
            self.wait.payload.eq(head.wait),
            self.wait.valid.eq(fifo.o.valid & must_wait),
            self.o.payload.eq(head),
            self.o.valid.eq(fifo.o.valid & ~must_wait & ~self.abort),
            fifo.o.ready.eq(self.abort | (self.o.valid & self.o.ready)),
            self.empty.eq(fifo.empty),
            self.waiting.eq(self.wait.valid),
        ]
        with m.If(self.wait.valid & self.wait.ready):
            m.d.sync += taken.eq(1)
        with m.If(fifo.o.ready):
            m.d.sync += taken.eq(0)
        return m
