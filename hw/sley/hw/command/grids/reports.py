"""Which block each core runs, and what the cores report of it."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.network import QUEUE_BITS, DoneWord, LaunchWord
from sley.hw.command.grids.packets import MESSAGE_FLITS
from sley.hw.command.records import GRID_BITS, FaultRecord
from sley.hw.elaboration.entries import entry_memory
from sley.hw.noc.messages import response_payload


class BlockReports(wiring.Component):
    """Remembers whose block each core runs, and reads the done messages.

    A core cannot report the block that is being sent to it, so a start and an end are never of the same core.

    Parameters
    ----------
    config : ChipConfig
        Sets the number of cores and queues.

    Members
    -------
    start : In(1)
        The block of ``queue`` goes to ``core``: that is busy from the next cycle on.
    core : In(range(cores)), queue : In(QUEUE_BITS)
        Stable while a block is sent.
    flit : In(range(MESSAGE_FLITS)), piece : In(16)
        The flit of the launch message, and what goes with it of the block's place and number.
    done : In(stream of response_payload(config))
        Done messages from the cores, three words each, from one core at a time; always accepted.
    busy : Out(cores)
        The core runs a block.
    ended : Out(1)
        High for a cycle: a block has ended.
    owner : Out(QUEUE_BITS), fault : Out(FaultRecord)
        The queue and the fault record of the block; valid with ``ended``, ``owner`` and ``fault.code`` in the cycle
        before, too, and ``fault.core`` as well.

    Cost
    ----
    In memory, a queue and a block's number for each core; one flip-flop for each core.
    """

    start: Signal
    core: Signal
    queue: Signal
    flit: Signal
    piece: Signal
    done: stream.Interface
    busy: Signal
    ended: Signal
    owner: Signal
    fault: data.View

    def __init__(self, config: ChipConfig) -> None:
        self._cores = config.cores
        super().__init__(
            {
                "start": In(1),
                "core": In(range(max(config.cores, 2))),
                "queue": In(QUEUE_BITS),
                "flit": In(range(MESSAGE_FLITS)),
                "piece": In(GRID_BITS),
                "done": In(stream.Signature(response_payload(config), always_ready=True)),
                "busy": Out(config.cores),
                "ended": Out(1),
                "owner": Out(QUEUE_BITS),
                "fault": Out(FaultRecord),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cores = self._cores
        m.submodules.owners = owners = entry_memory(QUEUE_BITS, cores)
        m.submodules.blocks = blocks = entry_memory(32, cores)
        write_owner, owner = owners.write_port(), owners.read_port()
        write_block, block = blocks.write_port(granularity=GRID_BITS), blocks.read_port()

        position = Signal(range(len(DoneWord)))
        value = self.done.payload.data[:32]
        record = Signal(FaultRecord, reset_less=True)
        m.d.comb += [
            write_owner.en.eq(self.start),
            write_owner.addr.eq(self.core if cores > 1 else 0),
            write_owner.data.eq(self.queue),
            write_block.en.eq(Cat(self.flit == LaunchWord.PROGRAM + 1, self.flit == LaunchWord.TAG + 1)),
            write_block.addr.eq(self.core if cores > 1 else 0),
            write_block.data.eq(self.piece.replicate(2)),
            owner.addr.eq(value[:8] if cores > 1 else 0),
            owner.en.eq(self.done.valid & (position == DoneWord.STATUS)),
            block.addr.eq(owner.addr),
            block.en.eq(owner.en),
            self.ended.eq(self.done.valid & (position == DoneWord.ADDRESS)),
            self.owner.eq(owner.data),
            self.fault.eq(record),
            self.fault.block.eq(block.data),
            self.fault.address.eq(value),
        ]
        with m.If(self.done.valid):
            m.d.sync += position.eq(Mux(self.ended, 0, position + 1))
            with m.Switch(position):
                with m.Case(DoneWord.STATUS):
                    m.d.sync += Cat(record.core, record.code, record.unit).eq(value)
                with m.Case(DoneWord.PC):
                    m.d.sync += record.pc.eq(value)
        for index in range(cores):
            with m.If(self.ended & (self.fault.core == index)):
                m.d.sync += self.busy[index].eq(0)
            with m.If(self.start & (self.core == index)):
                m.d.sync += self.busy[index].eq(1)
        return m
