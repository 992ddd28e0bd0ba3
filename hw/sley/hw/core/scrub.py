"""Clears what a block of one context left in a core before a block of another begins."""

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.instructions import Op
from sley.abi.pages import CONTEXT_BITS
from sley.hw.core.params import flag_bits
from sley.hw.core.unit import UnitCommand
from sley.hw.mmu.tlb import Invalidation


class Scrub(wiring.Component):
    """Knows whose data a core holds, and makes them zeros when a block of another context comes.

    Scrubbed are scratchpad and accumulators, then the active weights of the array (a WEIGHTS of zeros, and a MATMUL of
    one row that swaps them in; the spare weights never count before they are loaded) and the row registers of the
    vector unit. All else is reset at every block.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    start : In(1), context : In(CONTEXT_BITS)
        A block of this context begins; its instructions wait while ``busy``.
    abort : In(1)
        Units drop their commands: a scrub that is in progress does not count.
    invalidate : In(Invalidation)
        With ``contents``: the next block of that context finds zeros, too.
    foreign : Out(1)
        What the core holds is not of ``context``; combinational.
    busy : Out(1)
        From the cycle after ``start`` until all is clear.
    clear : Out(1), clearing : In(1)
        To and from the memories (``BankedSram``).
    matrix : Out(stream of UnitCommand), vector : Out(stream of UnitCommand)
        To the units while ``busy``, when no other commands come.
    units_idle : In(1)
        Neither of the two has anything to do. Low from the cycle after a command was accepted.

    Latency
    -------
    The cycles of the memories, those of the two matrix commands, and 4 more. A block of the context that was here
    before waits for nothing.
    """

    start: Signal
    context: Signal
    abort: Signal
    invalidate: data.View
    foreign: Signal
    busy: Signal
    clear: Signal
    clearing: Signal
    matrix: stream.Interface
    vector: stream.Interface
    units_idle: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "context": In(CONTEXT_BITS),
                "abort": In(1),
                "invalidate": In(Invalidation),
                "foreign": Out(1),
                "busy": Out(1),
                "clear": Out(1),
                "clearing": In(1),
                "matrix": Out(stream.Signature(UnitCommand)),
                "vector": Out(stream.Signature(UnitCommand)),
                "units_idle": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held_context = Signal(CONTEXT_BITS)
        holds = Signal()
        m.d.comb += self.foreign.eq(~holds | (held_context != self.context))
        with m.If(self.start):
            m.d.sync += [holds.eq(1), held_context.eq(self.context)]
        interrupted = self.abort & self.busy
        with m.If(
            interrupted | (self.invalidate.valid & self.invalidate.contents & (self.invalidate.context == held_context))
        ):
            m.d.sync += holds.eq(0)

        splat = 1 << flag_bits(Op.VROW, "splat").start
        row = flag_bits(Op.VROW, "row").start
        matrix = [{"op": Op.WEIGHTS, "c": self._config.array}, {"op": Op.MATMUL, "c": 1}]
        vector = [{"op": Op.VROW, "flags": splat | r << row} for r in range(self._config.row_registers)]
        # Payloads do not depend on the state, so that who takes them has time to look at them.
        indices = []
        for name, port, commands in (("matrix", self.matrix, matrix), ("vector", self.vector, vector)):
            index = Signal(range(len(commands)), name=f"{name}_index")
            indices.append(index)
            with m.Switch(index):
                for k, fields in enumerate(commands):
                    with m.Case(k):
                        m.d.comb += [port.payload[field].eq(value) for field, value in fields.items()]

        def send(port: wiring.PureInterface, index: Signal, count: int, following: str) -> None:
            """Hands the commands over, one after another."""
            m.d.comb += port.valid.eq(1)
            with m.If(port.ready):
                m.d.sync += index.eq(index + 1)
                with m.If(index == count - 1):
                    m.d.sync += index.eq(0)
                    m.next = following

        with m.FSM():
            with m.State("IDLE"), m.If(self.start & self.foreign):
                m.d.comb += self.clear.eq(1)
                m.d.sync += self.busy.eq(1)
                m.next = "MEMORIES"
            with m.State("MEMORIES"), m.If(~self.clearing):
                m.next = "WEIGHTS"
            with m.State("WEIGHTS"):
                send(self.matrix, indices[0], len(matrix), "ROWS")
            with m.State("ROWS"):
                send(self.vector, indices[1], len(vector), "DRAIN")
            with m.State("DRAIN"), m.If(self.units_idle):
                m.d.sync += self.busy.eq(0)
                m.next = "IDLE"
        return m
