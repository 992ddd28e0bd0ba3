"""The block scheduler: hands the blocks of grids to the cores."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode
from sley.abi.instructions import MAX_ARGS
from sley.abi.network import LAUNCH_SIZES, QUEUE_BITS, LaunchWord, RequestKind, Tag
from sley.abi.packets import INLINE_ARGS
from sley.abi.placement import command_node, core_node
from sley.abi.registers import PRIORITY_BITS
from sley.hw.command.grids.ends import GridEnds
from sley.hw.command.grids.packets import BLOCK, MESSAGE_FLITS, GridPackets
from sley.hw.command.grids.place import BlockPlace
from sley.hw.command.grids.reports import BlockReports
from sley.hw.command.records import GRID_BITS, WORD_BITS, Grid, LaunchCommand, WorkResult, number, packet_beat
from sley.hw.command.urgent import UrgentGrant
from sley.hw.elaboration.entries import entry_memory
from sley.hw.elaboration.layouts import struct
from sley.hw.noc.messages import request_flit, response_payload


class BlockScheduler(wiring.Component):
    """Runs up to one grid of each queue at the same time.

    Whenever a core is free, the rule of ``UrgentGrant`` chooses among the grids that have blocks left; a grid that
    arrives while no other has any begins at once. Blocks of a grid go out x fastest, then y, then z, each to the free
    core with the lowest number. After the first fault of a grid, and when its queue is aborted, no block of it is
    handed out; it ends when all its running blocks have ended, with the record of the fault that arrived first, or with
    ABORTED if there was none and blocks were left.

    Blocks of a gang go out in this order too, the first when all cores are free, each to the next core: block (x, y, z)
    to the core in column x and row y. Whichever queue is granted, nothing else is handed out while a gang waits for
    cores; a gang that was begun is handed out whole.

    Parameters
    ----------
    config : ChipConfig
        Sets the number of queues and cores and the width of a beat.

    Members
    -------
    packet : In(packet_beat(config))
        The beats of whatever packet is fetched.
    i : In(stream of LaunchCommand)
        The packet whose beats have come is a grid. Always accepted; not while the queue has one here.
    o : Out(stream of WorkResult)
        The end of a grid.
    priorities : In(PRIORITY_BITS).array(queues), abort : In(queues)
        Of each queue.
    message : Out(stream of request_flit(config))
        Launch messages to cores: head, nine words, and the arguments or their address.
    done : In(stream of response_payload(config))
        Done messages from cores, always accepted.
    retired : Out(1)
        High for a cycle for each block that ended.
    ended : Out(cores)
        Of each core, whether its block of the current gang has ended.

    Latency
    -------
    First flit in the cycle after ``i``.

    Throughput
    ----------
    A block every 11 cycles, and one more for each argument from the packet or for the address of arguments in memory.

    Cost
    ----
    Those of ``GridPackets``, ``BlockPlace``, ``BlockReports`` and ``GridEnds``; a counter for each queue, one bit per
    core.
    """

    packet: data.View
    i: stream.Interface
    o: stream.Interface
    priorities: list[Signal]
    abort: Signal
    message: stream.Interface
    done: stream.Interface
    retired: Signal
    ended: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        self.packets = GridPackets(config)
        self.place = BlockPlace(config)
        super().__init__(
            {
                "packet": In(packet_beat(config)),
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
        queues, cores = self._config.queues, self._config.cores

        m.submodules.arbiter = arbiter = UrgentGrant(queues)
        m.d.comb += [a.eq(b) for a, b in zip(arbiter.priorities, self.priorities, strict=True)]

        # What a queue's grid is, and what of it is left.
        active = Signal(queues)
        more = Signal(queues)  # blocks were not handed out
        stopped = Signal(queues)  # they shall not be
        faulted = Signal(queues)
        begun = Signal(queues)  # a block was sent
        running = [Signal(range(cores + 1), name=f"running{k}") for k in range(queues)]
        gangs = Signal(queues)
        partial = Signal(queues)  # whose gang was begun and is not handed out whole
        m.submodules.grids = grids = entry_memory(Grid, queues)
        write, read = grids.write_port(), grids.read_port(domain="comb")
        grid = read.data
        queue = Signal(QUEUE_BITS, reset_less=True)  # whose block is being sent
        sending = Signal(queues, reset_less=True)  # the same, one-hot
        core = Signal(range(max(cores, 2)), reset_less=True)
        next_core = Signal.like(core)
        arriving = Signal(queues)
        m.d.comb += [
            arriving.eq(Mux(self.i.valid, 1 << self.i.payload.queue, 0)),
            write.en.eq(self.i.valid),
            write.addr.eq(self.i.payload.queue if queues > 1 else 0),
            write.data.eq(self.i.payload.grid),
            read.addr.eq(queue if queues > 1 else 0),
            next_core.eq(Mux(core == cores - 1, 0, core + 1)),
        ]

        flit = Signal(range(MESSAGE_FLITS))
        sent = Signal()  # it is
        arguments = grid.arg_words[: MAX_ARGS.bit_length()]
        in_memory = arguments > INLINE_ARGS
        inline = Mux(in_memory, 0, arguments)
        # Registers, a cycle late: the first cycle, which is the head's, does not look at them.
        last_index, skips_args = Signal.like(flit, init=len(LaunchWord)), Signal(reset_less=True)
        m.d.sync += [last_index.eq(len(LaunchWord) + inline), skips_args.eq(~in_memory)]
        last_flit = flit == last_index

        m.submodules.packets = packets = self.packets
        m.submodules.place = place = self.place
        m.submodules.reports = reports = BlockReports(self._config)
        start = Signal()  # the block goes to the core
        wiring.connect(m, wiring.flipped(self.done), reports.done)
        m.d.comb += [
            packets.packet.eq(self.packet),
            packets.arriving.eq(arriving),
            packets.sending.eq(sending),
            packets.flit.eq(flit),
            packets.sent.eq(sent),
            packets.skips_args.eq(skips_args),
            place.queue.eq(queue),
            place.begun.eq((begun & sending).any()),
            place.flit.eq(flit),
            place.sent.eq(sent),
            place.extent.eq(packets.content[:GRID_BITS]),
            reports.start.eq(start),
            reports.core.eq(core),
            reports.queue.eq(queue),
            reports.flit.eq(flit),
            reports.piece.eq(place.piece),
            self.retired.eq(reports.ended),
        ]

        nodes = [core_node(self._config, index) for index in range(cores)]
        head_beats = Mux(in_memory, len(LaunchWord) - 1, len(LaunchWord) - 2 + inline)
        m.d.comb += [
            self.message.payload.dest.x.eq(Array(x for x, _ in nodes)[core]),
            self.message.payload.dest.y.eq(Array(y for _, y in nodes)[core]),
            self.message.payload.last.eq(last_flit),
        ]
        self._message(m, flit, grid, queue, head_beats)

        chosen = Signal(queues)  # gets a core in this cycle
        begins = Signal(queues)  # a block of it has been sent
        final = Signal(queues)  # its last block has been sent
        first_of_all = Signal()  # the grid being sent came while no other had blocks left
        free = ~reports.busy
        some_free = Signal(init=1)  # too early or late only while a block is sent
        idle = Signal()  # no core runs a block
        # Who may have a core if it is granted: a gang has all of them or none.
        allowed = Mux(idle, -1, some_free.replicate(queues) & ~gangs)
        arriving_allowed = idle | (some_free & ~self.i.payload.grid.gang)
        m.d.sync += some_free.eq(free.any() | reports.ended)
        m.d.comb += [idle.eq(~Cat(running).any()), arbiter.requests.eq(more & ~stopped)]
        requested = arbiter.requests.any()
        with m.FSM():
            with m.State("CHOOSE"):
                m.d.comb += packets.idle.eq(1)
                m.d.sync += [flit.eq(0), core.eq(0)]
                for index in reversed(range(cores)):
                    with m.If(free[index]):
                        m.d.sync += core.eq(index)
                with m.If(partial.any()):
                    m.d.comb += chosen.eq(partial)
                    m.d.sync += core.eq(next_core)
                with m.Elif(requested):
                    m.d.comb += [chosen.eq(arbiter.grant & allowed), arbiter.moved.eq((arbiter.grant & allowed).any())]
                with m.Elif(arriving_allowed):
                    m.d.comb += chosen.eq(arriving)
                    m.d.sync += first_of_all.eq(self.i.valid)
                m.d.sync += [sending.eq(chosen), queue.eq(number(chosen))]
                with m.If(chosen.any()):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [self.message.valid.eq(1), start.eq(flit == 0)]
                with m.If(first_of_all):  # it counts as granted all the same
                    m.d.comb += [arbiter.requests.eq(sending), arbiter.moved.eq(1)]
                m.d.sync += first_of_all.eq(0)
                m.d.comb += sent.eq(self.message.ready)
                with m.If(sent):
                    m.d.sync += flit.eq(flit + 1)
                    with m.If((flit == LaunchWord.TAG + 1) & skips_args):
                        m.d.sync += flit.eq(LaunchWord.BLOCK_X + 1)
                    with m.If(last_flit):
                        m.d.comb += begins.eq(sending)
                        m.d.sync += partial.eq(Mux(grid.gang & (core != cores - 1), sending, 0))
                        with m.If(place.last):
                            m.d.comb += final.eq(sending)
                        m.next = "CHOOSE"

        for index in range(cores):
            with m.If(reports.ended & (reports.fault.core == index)):
                m.d.sync += self.ended[index].eq(1)
        with m.If(start & grid.gang & (core == 0)):
            m.d.sync += self.ended.eq(0)

        m.submodules.ends = ends = GridEnds(self._config)
        wiring.connect(m, ends.o, wiring.flipped(self.o))
        owner = Signal(queues)  # whose block ended
        failed = Mux(reports.fault.code != FaultCode.NONE, owner, 0)
        none_running = Cat(count == 0 for count in running)
        m.d.comb += [
            owner.eq(Mux(reports.ended, 1 << reports.owner, 0)),
            ends.block_ended.eq(reports.ended),
            ends.owner.eq(reports.owner),
            ends.fault.eq(reports.fault),
            ends.faulted.eq(faulted),
            ends.cut_short.eq(more),
            ends.ended.eq(active & none_running & (~more | stopped) & ~partial),
        ]
        m.d.sync += [
            active.eq((active & ~ends.accepted) | arriving),
            more.eq((more & ~final) | arriving),
            stopped.eq((stopped | failed | (active & self.abort)) & ~arriving),
            faulted.eq((faulted | failed) & ~arriving),
            begun.eq((begun | begins) & ~arriving),
            gangs.eq((gangs & ~arriving) | Mux(self.i.payload.grid.gang, arriving, 0)),
        ]
        for k, count in enumerate(running):
            m.d.sync += count.eq(count + chosen[k] - owner[k])
        return m

    def _message(self, m: Module, flit: Signal, grid: data.View, queue: Signal, head_beats: Value) -> None:
        """The payload of each flit: what is not the packet's is made beside its words, and 0 where they are shown."""
        payload = self.message.payload.payload
        own: data.View = Signal.like(payload)
        words: data.View = Signal.like(payload)
        m.d.comb += [
            words.beat.data.eq(self.packets.content & self.packets.shown.replicate(WORD_BITS)),
            Value.cast(payload).eq(Value.cast(own) | Value.cast(words)),
        ]
        with m.Switch(flit):
            with m.Case(0):
                x, y = command_node(self._config)
                head = own.head
                m.d.comb += [
                    head.kind.eq(RequestKind.MESSAGE),
                    head.tag.eq(Tag.MESSAGE),
                    head.src.x.eq(x),
                    head.src.y.eq(y),
                    head.beats.eq(head_beats),
                    head.addr.eq(grid.watchdog),
                ]
            with m.Case(LaunchWord.SIZES + 1):
                sizes = Signal(struct(LAUNCH_SIZES))
                m.d.comb += [
                    sizes.program_words.eq(grid.program_words),
                    sizes.arg_words.eq(grid.arg_words),
                    sizes.context.eq(grid.context),
                    sizes.queue.eq(queue),
                    sizes.gang.eq(grid.gang),
                    own.beat.data.eq(sizes),
                ]
            with m.Case(*(k + 1 for k in BLOCK)):
                m.d.comb += own.beat.data.eq(self.place.piece)
