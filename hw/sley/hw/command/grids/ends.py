"""The ends of grids, with the record of each one's first fault."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.network import QUEUE_BITS
from sley.hw.command.records import FaultRecord, WorkResult, number
from sley.hw.elaboration.entries import entry_memory
from sley.hw.stream.arbiter import lowest


class GridEnds(wiring.Component):
    """Keeps the first fault of each queue's grid, and reports the grids that have ended, one at a time.

    Parameters
    ----------
    config : ChipConfig
        Sets the number of queues.

    Members
    -------
    block_ended : In(1)
        High for a cycle: a block has ended.
    owner : In(QUEUE_BITS), fault : In(FaultRecord)
        Its queue and its record; valid with ``block_ended``, ``owner`` and ``fault.code`` in the cycle before, too.
    faulted, cut_short : In(queues)
        A block of the grid had a fault; blocks of the grid were not handed out.
    ended : In(queues)
        The grid has ended and is to be reported.
    accepted : Out(queues)
        One-hot, for one cycle: the grid is reported from the next cycle on. It keeps its record, and its queue sends
        no other grid, until the report is accepted.
    o : Out(stream of WorkResult)
        The record of the fault that arrived first; ABORTED if there was none and the grid was cut short.

    Cost
    ----
    In memory, a record for each queue.
    """

    block_ended: Signal
    owner: Signal
    fault: data.View
    faulted: Signal
    cut_short: Signal
    ended: Signal
    accepted: Signal
    o: stream.Interface

    def __init__(self, config: ChipConfig) -> None:
        self._queues = config.queues
        super().__init__(
            {
                "block_ended": In(1),
                "owner": In(QUEUE_BITS),
                "fault": In(FaultRecord),
                "faulted": In(config.queues),
                "cut_short": In(config.queues),
                "ended": In(config.queues),
                "accepted": Out(config.queues),
                "o": Out(stream.Signature(WorkResult)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queues = self._queues
        m.submodules.faults = faults = entry_memory(FaultRecord, queues)
        write, stored = faults.write_port(), faults.read_port(domain="comb")
        # Found from the first of a done message's three words, a cycle after it: nothing of it changes until the last.
        first = Signal(reset_less=True)  # fault of its grid
        m.d.sync += first.eq((self.fault.code != FaultCode.NONE) & ~self.faulted.bit_select(self.owner, 1))
        m.d.comb += [
            write.en.eq(self.block_ended & first),
            write.addr.eq(self.owner if queues > 1 else 0),
            write.data.eq(self.fault),
        ]

        reported = Signal(QUEUE_BITS, reset_less=True)
        has_fault = Signal(reset_less=True)
        cut_short = Signal(reset_less=True)
        fault = self.o.payload.fault
        m.d.comb += [
            stored.addr.eq(reported if queues > 1 else 0),
            self.o.payload.queue.eq(reported),
        ]
        with m.If(has_fault):
            m.d.comb += fault.eq(stored.data)
        with m.Elif(cut_short):
            m.d.comb += [fault.code.eq(FaultCode.ABORTED), fault.unit.eq(Unit.COMMAND)]
        with m.FSM():
            with m.State("WATCH"):
                ending = lowest(self.ended)
                m.d.comb += self.accepted.eq(ending)
                m.d.sync += [
                    reported.eq(number(ending)),
                    has_fault.eq((ending & self.faulted).any()),
                    cut_short.eq((ending & self.cut_short).any()),
                ]
                with m.If(self.ended.any()):
                    m.next = "REPORT"
            with m.State("REPORT"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "WATCH"
        return m
