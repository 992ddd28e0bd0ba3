"""The queue in front of each unit, which takes a command's semaphores before the unit sees it."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.faults import Unit
from sley.abi.instructions import SEMAPHORES, Op
from sley.hw.core.unit import UnitCommand
from sley.hw.stream.fifo import StreamFIFO


class UnitFront(wiring.Component):
    """In-order queue of commands; the oldest one waits for its semaphores here.

    Parameters
    ----------
    unit : Unit
        The unit behind it; one that has a queue.
    depth : int
        Commands that are always accepted without one leaving, at least 2.

    Members
    -------
    i : In(stream of UnitCommand)
        From the sequencer.
    o : Out(stream of UnitCommand)
        To the unit: commands whose wait set was taken. ``SET`` and commands with an empty wait set do not ask.
    wait : Out(stream of SEMAPHORES bits)
        To the semaphores.
    abort : In(1)
        While high, all commands are dropped, one per cycle, and offers on ``o`` and ``wait`` are taken back.
    empty : Out(1)
        No command is here; goes low in the cycle after the acceptance of one.
    waiting : Out(1)
        The oldest command waits for its semaphores.

    Latency: 2 cycles, 3 with a wait set. Throughput: one command per cycle, per 2 cycles with wait sets.
    ``i.ready`` and ``o.valid`` depend on registers only (but for ``abort``). Cost: a memory of ``depth`` commands.
    """

    i: stream.Interface
    o: stream.Interface
    wait: stream.Interface
    abort: Signal
    empty: Signal
    waiting: Signal

    def __init__(self, unit: Unit, depth: int) -> None:
        if unit in (Unit.SEQUENCER, Unit.COMMAND):
            raise ValueError(f"unit is {unit!r}, which takes no commands")
        if depth < 2:
            raise ValueError(f"depth of the {unit.name} queue is {depth}; it must be at least 2")
        self._depth = depth
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
        m.submodules.fifo = fifo = StreamFIFO(UnitCommand, self._depth)
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        head = fifo.o.payload

        taken = Signal()
        must_wait = Signal()
        m.d.comb += [
            must_wait.eq((head.op != Op.SET) & head.wait.any() & ~taken),
            self.wait.payload.eq(head.wait),
            self.wait.valid.eq(fifo.o.valid & must_wait & ~self.abort),
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
