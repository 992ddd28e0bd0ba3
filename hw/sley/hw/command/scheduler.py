"""The block scheduler: hands the blocks of grids to the cores."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.packets import INLINE_ARGS
from sley.abi.registers import PRIORITY_BITS
from sley.hw.command.records import GRID_BITS, FaultRecord, Grid, LaunchCommand, WorkResult, number
from sley.hw.command.urgent import UrgentGrant
from sley.hw.noc.messages import (
    QUEUE_BITS,
    DoneWord,
    LaunchSizes,
    LaunchWord,
    RequestKind,
    Tag,
    request_flit,
    response_payload,
)
from sley.hw.noc.placement import command_node, core_node
from sley.hw.stream.arbiter import lowest

_Place = data.StructLayout({"index": data.ArrayLayout(GRID_BITS, 3), "block": 32})
"""The block of a grid that is handed out next: its place, and its number."""


class BlockScheduler(wiring.Component):
    """Runs up to one grid of each queue at the same time.

    Whenever a core is free, the rule of ``UrgentGrant`` chooses among the grids that have blocks left; a grid that
    arrives while no other has any begins at once. Blocks of a grid go out x fastest, then y, then z, each to the free
    core with the lowest number. After the first fault of a grid, and when its queue is aborted, no block of it is
    handed out; it ends when all its running blocks have ended, with the record of the fault that arrived first, or with
    ABORTED if there was none and blocks were left.

    Blocks of a gang go out in this order too, the first when all cores are free, each to the next core: block (x, y, z)
    to the core in column x and row y. Whoever's turn it is, nothing else is handed out while a gang waits for cores; a
    gang that was begun is handed out whole.

    Members:

    * ``i``: a grid, always taken; not while the queue has one here. ``o``: its end.
    * ``priorities``, ``abort``: of each queue.
    * ``message``: launch messages to cores: head, nine words, and the arguments or their address.
    * ``done``: done messages from cores, always taken.
    * ``retired``: high for a cycle for each block that ended.
    * ``ended``: of each core, whether its block of the current gang has ended.

    Latency: first flit in the cycle after ``i``; throughput: a block every 11 cycles, and one more for each argument
    from the packet or for the address of arguments in memory. Cost: in memory, the description, place and fault of a
    grid for each queue, and for each core which block it runs; a counter for each queue, one bit per core.
    """

    i: stream.Interface
    o: stream.Interface
    priorities: Any
    abort: Signal
    message: stream.Interface
    done: stream.Interface
    retired: Signal
    ended: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(LaunchCommand, always_ready=True)),
                "o": Out(stream.Signature(WorkResult)),
                "priorities": In(PRIORITY_BITS).array(config.queues),
                "abort": In(config.queues),
                "message": Out(stream.Signature(request_flit(config))),
                "done": In(stream.Signature(response_payload(config), always_ready=True)),
                "retired": Out(1),
                "ended": Out(config.cores),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        queues, cores = config.queues, config.cores
        depth = max(queues, 2)

        m.submodules.turn = turn = UrgentGrant(queues)
        m.d.comb += [a.eq(b) for a, b in zip(turn.priorities, self.priorities, strict=True)]

        # What a queue's grid is, and what of it is left.
        active = Signal(queues)
        more = Signal(queues)  # blocks were not handed out
        stopped = Signal(queues)  # they shall not be
        faulted = Signal(queues)
        begun = Signal(queues)  # its place is in memory; otherwise it is 0
        running = [Signal(range(cores + 1), name=f"running{k}") for k in range(queues)]
        m.submodules.grids = grids = Memory(shape=Grid, depth=depth, init=[])
        m.submodules.places = places = Memory(shape=_Place, depth=depth, init=[])
        queue = Signal(QUEUE_BITS, reset_less=True)  # whose block is being sent
        sending = Signal(queues, reset_less=True)  # the same, one-hot
        core = Signal(range(max(cores, 2)), reset_less=True)
        following = Signal.like(core)  # the core behind it
        gangs = Signal(queues)
        under_way = Signal(queues)  # whose gang was begun and is not handed out whole
        new, held = grids.write_port(), grids.read_port(domain="comb")
        keep, kept = places.write_port(), places.read_port(domain="comb")
        grid, place = held.data, Signal(_Place)
        arriving = Signal(queues)
        m.d.comb += [
            arriving.eq(Mux(self.i.valid, 1 << self.i.payload.queue, 0)),
            new.en.eq(self.i.valid),
            new.addr.eq(self.i.payload.queue),
            new.data.eq(self.i.payload.grid),
            held.addr.eq(queue),
            kept.addr.eq(queue),
            keep.addr.eq(queue),
        ]
        with m.If((begun & sending).any()):
            m.d.comb += place.eq(kept.data)

        # Which block a core runs: written when it is handed out, read when the core reports.
        busy = Signal(cores)
        m.submodules.blocks = blocks = Memory(
            shape=data.StructLayout({"queue": QUEUE_BITS, "block": 32}), depth=max(cores, 2), init=[]
        )
        give, given = blocks.write_port(), blocks.read_port()
        m.d.comb += [give.addr.eq(core), give.data.queue.eq(queue), give.data.block.eq(place.block)]

        # 0 is the head of the message, then its words: one that is not sent has a number all the same.
        word = Signal(range(1 + len(LaunchWord) + INLINE_ARGS))
        in_memory = grid.arg_words > INLINE_ARGS
        inline = Mux(in_memory, 0, grid.arg_words)
        # Registers, a cycle late: nothing is asked of them in the first cycle, which is the head's.
        last_index, skips_args = Signal.like(word, init=len(LaunchWord)), Signal(reset_less=True)
        m.d.sync += [last_index.eq(len(LaunchWord) + inline), skips_args.eq(~in_memory)]
        last_word = word == last_index
        sizes = Signal(LaunchSizes)
        m.d.comb += [
            sizes.program_words.eq(grid.program_words),
            sizes.arg_words.eq(grid.arg_words),
            sizes.context.eq(grid.context),
            sizes.queue.eq(queue),
            sizes.gang.eq(grid.gang),
        ]
        words: dict[Any, Any] = {
            LaunchWord.PROGRAM: grid.program,
            LaunchWord.TAG: grid.tag,
            LaunchWord.SIZES: sizes,
            LaunchWord.ARGS: grid.args,
            LaunchWord.BLOCK_X: place.index[0],
            LaunchWord.BLOCK_Y: place.index[1],
            LaunchWord.BLOCK_Z: place.index[2],
            LaunchWord.GRID_X: grid.size[0],
            LaunchWord.GRID_Y: grid.size[1],
            LaunchWord.GRID_Z: grid.size[2],
            **{len(LaunchWord) + k: grid.inline[k] for k in range(INLINE_ARGS)},
        }
        flit: Any = self.message.payload
        nodes = [core_node(config, index) for index in range(cores)]
        m.d.comb += [
            flit.dest.x.eq(Array(x for x, _ in nodes)[core]),
            flit.dest.y.eq(Array(y for _, y in nodes)[core]),
            flit.last.eq(last_word),
        ]
        with m.Switch(word):
            with m.Case(0):
                x, y = command_node(config)
                head = flit.payload.head
                m.d.comb += [
                    head.kind.eq(RequestKind.MESSAGE),
                    head.tag.eq(Tag.MESSAGE),
                    head.src.x.eq(x),
                    head.src.y.eq(y),
                    head.beats.eq(Mux(in_memory, len(LaunchWord) - 1, len(LaunchWord) - 2 + inline)),
                    head.addr.eq(grid.watchdog),
                ]
            for position, value in words.items():
                with m.Case(position + 1):
                    m.d.comb += flit.payload.beat.data.eq(value)

        at_end = Signal(3, reset_less=True)
        m.d.sync += at_end.eq(Cat(place.index[k] == grid.size[k] - 1 for k in range(3)))
        m.d.comb += keep.data.block.eq(place.block + 1)
        carry: Any = Const(1)
        for k in range(3):  # x fastest
            m.d.comb += keep.data.index[k].eq(Mux(carry, Mux(at_end[k], 0, place.index[k] + 1), place.index[k]))
            carry = carry & at_end[k]

        chosen = Signal(queues)  # gets a core in this cycle
        final = Signal(queues)  # its last block has been sent
        unasked = Signal()  # the grid being sent came while no other had blocks left
        free = ~busy
        asked = turn.requests.any()
        first = Mux(asked, turn.grant, arriving)
        gang = ((first & gangs) | Mux(self.i.payload.grid.gang, first & arriving, 0)).any()
        m.d.comb += [turn.requests.eq(more & ~stopped), following.eq(Mux(core == cores - 1, 0, core + 1))]
        with m.FSM():
            with m.State("CHOOSE"):
                m.d.sync += word.eq(0)
                m.d.sync += core.eq(0)
                for index in reversed(range(cores)):
                    with m.If(free[index] & ~gang):
                        m.d.sync += core.eq(index)
                with m.If(under_way.any()):
                    m.d.comb += chosen.eq(under_way)
                    m.d.sync += core.eq(following)
                with m.Elif(Mux(gang, free.all(), free.any())):
                    m.d.comb += [chosen.eq(first), turn.moved.eq(asked)]
                    m.d.sync += unasked.eq(~asked & first.any())
                m.d.sync += [sending.eq(chosen), queue.eq(number(chosen))]
                with m.If(chosen.any()):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [self.message.valid.eq(1), give.en.eq(word == 0)]
                with m.If(unasked):  # the turn counts all the same
                    m.d.comb += [turn.requests.eq(sending), turn.moved.eq(1)]
                m.d.sync += unasked.eq(0)
                with m.If(self.message.ready):
                    m.d.sync += word.eq(word + 1)
                    with m.If((word == LaunchWord.SIZES + 1) & skips_args):
                        m.d.sync += word.eq(LaunchWord.BLOCK_X + 1)
                    with m.If(last_word):
                        m.d.comb += keep.en.eq(1)
                        m.d.sync += under_way.eq(Mux(grid.gang & (core != cores - 1), sending, 0))
                        with m.If(at_end.all()):
                            m.d.comb += final.eq(sending)
                        m.next = "CHOOSE"

        # Done messages: three words, one after another, from one core at a time.
        position = Signal(range(len(DoneWord)))
        value = self.done.payload.data[:32]
        pending = Signal(FaultRecord, reset_less=True)
        ended = Signal()
        owner = Signal(queues)  # whose block ended
        m.d.comb += [
            given.addr.eq(value[:8]),
            given.en.eq(self.done.valid & (position == DoneWord.STATUS)),
            ended.eq(self.done.valid & (position == DoneWord.ADDRESS)),
            owner.eq(Mux(ended, 1 << given.data.queue, 0)),
            self.retired.eq(ended),
        ]
        with m.If(self.done.valid):
            m.d.sync += position.eq(Mux(ended, 0, position + 1))
            with m.Switch(position):
                with m.Case(DoneWord.STATUS):
                    m.d.sync += Cat(pending.core, pending.code, pending.unit).eq(value)
                with m.Case(DoneWord.PC):
                    m.d.sync += pending.pc.eq(value)
        m.submodules.faults = faults = Memory(shape=FaultRecord, depth=depth, init=[])
        record, recorded = faults.write_port(), faults.read_port()
        guilty = Mux(pending.code != FaultCode.NONE, owner, 0)
        m.d.comb += [
            record.en.eq((guilty & ~faulted).any()),
            record.addr.eq(given.data.queue),
            record.data.eq(pending),
            record.data.block.eq(given.data.block),
            record.data.address.eq(value),
        ]
        for index in range(cores):
            # A core cannot report the block that is being sent to it, so the two never meet.
            with m.If(ended & (pending.core == index)):
                m.d.sync += busy[index].eq(0)
                m.d.sync += self.ended[index].eq(1)
            with m.If(give.en & (core == index)):
                m.d.sync += busy[index].eq(1)
        with m.If(give.en & grid.gang & (core == 0)):
            m.d.sync += self.ended.eq(0)

        # The end of a grid.
        quiet = Cat(count == 0 for count in running)
        over = Signal(queues)
        told = Signal(queues)
        outcome = Signal(WorkResult)
        with_fault, cut_off, result_queue = Signal(), Signal(reset_less=True), Signal(QUEUE_BITS, reset_less=True)
        m.d.comb += [
            over.eq(active & quiet & (~more | stopped) & ~under_way),
            recorded.addr.eq(number(lowest(over))),
            outcome.queue.eq(result_queue),
            self.o.payload.eq(outcome),
        ]
        with m.If(with_fault):
            m.d.comb += outcome.fault.eq(recorded.data)
        with m.Elif(cut_off):
            m.d.comb += [outcome.fault.code.eq(FaultCode.ABORTED), outcome.fault.unit.eq(Unit.COMMAND)]
        with m.FSM(name="ends") as ends:
            m.d.comb += recorded.en.eq(ends.ongoing("WATCH"))
            with m.State("WATCH"):
                ending = lowest(over)
                m.d.comb += told.eq(ending)
                m.d.sync += [
                    result_queue.eq(number(ending)),
                    with_fault.eq((ending & faulted).any()),
                    cut_off.eq((ending & more).any()),
                ]
                with m.If(over.any()):
                    m.next = "REPORT"
            with m.State("REPORT"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "WATCH"

        m.d.sync += [
            active.eq((active & ~told) | arriving),
            more.eq((more & ~final) | arriving),
            stopped.eq((stopped | guilty | (active & self.abort)) & ~arriving),
            faulted.eq((faulted | guilty) & ~arriving),
            begun.eq((begun | Mux(keep.en, sending, 0)) & ~arriving),
            gangs.eq((gangs & ~arriving) | Mux(self.i.payload.grid.gang, arriving, 0)),
        ]
        for k, count in enumerate(running):
            m.d.sync += count.eq(count + chosen[k] - owner[k])
        return m
