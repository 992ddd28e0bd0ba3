"""The block scheduler: hands the blocks of grids to the cores."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import MAX_ARGS
from sley.abi.packets import INLINE_ARGS, PACKETS, PacketOp
from sley.abi.registers import PRIORITY_BITS
from sley.hw.command.records import (
    GRID_BITS,
    WORD_BITS,
    WORDS,
    FaultRecord,
    Grid,
    LaunchCommand,
    WorkResult,
    number,
    one_of,
    packet_beat,
    packet_lanes,
)
from sley.hw.command.urgent import UrgentGrant
from sley.hw.entries import entry_memory
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

BLOCK_NUMBER = 3
"""Where the number of the next block stands behind its place in x, y and z; it takes two, the low half first."""
PLACE_BITS = 3
EXTENTS = (LaunchWord.GRID_X, LaunchWord.GRID_Y, LaunchWord.GRID_Z)
PIECES = {
    LaunchWord.PROGRAM: BLOCK_NUMBER,
    LaunchWord.TAG: BLOCK_NUMBER + 1,
    **{LaunchWord.BLOCK_X + k: k for k in range(3)},
    **{extent: k for k, extent in enumerate(EXTENTS)},
}
"""Which of these is looked at with each word of a launch message."""

_LAUNCH = PACKETS[PacketOp.LAUNCH].layout
_FIELDS = {
    LaunchWord.PROGRAM: "program",
    LaunchWord.TAG: "tag",
    LaunchWord.ARGS: "args",
    **{word + k: f"grid_{axis}" for word in (LaunchWord.BLOCK_X, LaunchWord.GRID_X) for k, axis in enumerate("xyz")},
    **{len(LaunchWord) + k: f"arg{k}" for k in range(INLINE_ARGS)},
}
SOURCES = {k: _LAUNCH.fields[name].lsb // 32 for k, name in _FIELDS.items()}
"""For each word of a launch message: the word of the packet. With a place it is the extent, to be compared."""
BLOCK = (LaunchWord.BLOCK_X, LaunchWord.BLOCK_Y, LaunchWord.BLOCK_Z)
OWN = (LaunchWord.SIZES, *BLOCK)
"""Words that are not the packet's."""


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

    * ``packet``: the beats of whatever packet is fetched. ``i``: the one whose beats have come is a grid, always taken;
      not while the queue has one here. ``o``: its end.
    * ``priorities``, ``abort``: of each queue.
    * ``message``: launch messages to cores: head, nine words, and the arguments or their address.
    * ``done``: done messages from cores, always taken.
    * ``retired``: high for a cycle for each block that ended.
    * ``ended``: of each core, whether its block of the current gang has ended.

    Latency: first flit in the cycle after ``i``; throughput: a block every 11 cycles, and one more for each argument
    from the packet or for the address of arguments in memory. Cost: in memory, a packet for each queue and one more,
    the place and fault of a grid for each queue, and for each core which block it runs; a counter for each queue, one
    bit per core.
    """

    packet: Any
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
        self.places = Memory(shape=GRID_BITS, depth=max(config.queues, 2) << PLACE_BITS, init=[])
        # The packet of a grid, as it came. No slot is read while it is written, so what a block RAM gives then does not
        # matter. On a narrow bus one block RAM takes the packets of all queues.
        self._lanes = packet_lanes(config)
        attributes = {"no_rw_check": 1} | ({"ram_style": "block"} if self._lanes == 1 else {})
        self.packets = Memory(
            shape=unsigned(WORD_BITS * self._lanes),
            depth=(1 << config.queues.bit_length()) * (WORDS // self._lanes),
            init=[],
            attrs=attributes,
        )
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
        config = self._config
        queues, cores = config.queues, config.cores

        m.submodules.turn = turn = UrgentGrant(queues)
        m.d.comb += [a.eq(b) for a, b in zip(turn.priorities, self.priorities, strict=True)]

        # What a queue's grid is, and what of it is left.
        active = Signal(queues)
        more = Signal(queues)  # blocks were not handed out
        stopped = Signal(queues)  # they shall not be
        faulted = Signal(queues)
        begun = Signal(queues)  # its place is in memory; otherwise it is 0
        goes_on = Signal(reset_less=True)  # that of the block being sent is; known behind the head
        running = [Signal(range(cores + 1), name=f"running{k}") for k in range(queues)]
        m.submodules.grids = grids = entry_memory(Grid, queues)
        queue = Signal(QUEUE_BITS, reset_less=True)  # whose block is being sent
        sending = Signal(queues, reset_less=True)  # the same, one-hot
        core = Signal(range(max(cores, 2)), reset_less=True)
        following = Signal.like(core)  # the core behind it
        gangs = Signal(queues)
        under_way = Signal(queues)  # whose gang was begun and is not handed out whole
        new, held = grids.write_port(), grids.read_port(domain="comb")
        grid = held.data
        arriving = Signal(queues)
        m.d.comb += [
            arriving.eq(Mux(self.i.valid, 1 << self.i.payload.queue, 0)),
            new.en.eq(self.i.valid),
            new.addr.eq(self.i.payload.queue if queues > 1 else 0),
            new.data.eq(self.i.payload.grid),
            held.addr.eq(queue if queues > 1 else 0),
        ]

        # 0 is the head of the message, then its words: one that is not sent has a number all the same.
        word = Signal(range(1 + len(LaunchWord) + INLINE_ARGS))
        sent = Signal()  # the flit is
        arguments = grid.arg_words[: MAX_ARGS.bit_length()]
        in_memory = arguments > INLINE_ARGS
        inline = Mux(in_memory, 0, arguments)
        # Registers, a cycle late: nothing is asked of them in the first cycle, which is the head's.
        last_index, skips_args = Signal.like(word, init=len(LaunchWord)), Signal(reset_less=True)
        m.d.sync += [last_index.eq(len(LaunchWord) + inline), skips_args.eq(~in_memory)]
        last_word = word == last_index

        # Where the packet of a grid is. The next one comes to the slot that no grid has.
        lanes = self._lanes
        beats = WORDS // lanes
        slots = [Signal(range(queues + 1), init=k, name=f"slot{k}") for k in range(queues)]
        spare = Signal(range(queues + 1), init=queues)
        m.submodules.packets = packets = self.packets
        arrive, fetch = packets.write_port(), packets.read_port(domain="comb")
        # A word of the packet is read two flits ahead: from memory while the one before the last is sent, then into a
        # register. The first one is of the grid.
        fetched = Signal(WORD_BITS * lanes, reset_less=True)
        content = Signal(WORD_BITS, reset_less=True)
        slot = Signal.like(spare)
        next_source, lane = Signal(range(WORDS)), Signal(range(max(lanes, 2)), reset_less=True)
        for k in range(queues):
            with m.If(arriving[k]):
                m.d.sync += [slots[k].eq(spare), spare.eq(slots[k])]
        with m.Switch(word):
            for word_read, source in SOURCES.items():
                with m.Case(word_read - 1):
                    m.d.comb += next_source.eq(source)
                    if word_read in (LaunchWord.ARGS, LaunchWord.BLOCK_X):  # ARGS may be passed over
                        with m.If(skips_args):
                            m.d.comb += next_source.eq(SOURCES[word_read + 1])
        m.d.comb += [
            slot.eq(one_of(sending, slots)),
            arrive.en.eq(self.packet.valid),
            arrive.addr.eq(self.packet.index + spare * beats),
            arrive.data.eq(self.packet.data),
            fetch.addr.eq((next_source >> exact_log2(lanes)) + slot * beats),
        ]
        shows = Signal(reset_less=True)  # the word sent is the packet's
        with m.If(sent):
            m.d.sync += [
                fetched.eq(fetch.data),
                lane.eq(next_source),
                content.eq(fetched.word_select(lane, WORD_BITS) if lanes > 1 else fetched),
                shows.eq(~Cat(word == k for k in OWN).any() & ((word != LaunchWord.ARGS) | ~skips_args)),
            ]

        # Place and number of the block that is next, in pieces of 16 bits, each read while the word before is sent. A
        # piece moves on while its extent is sent; those of the number while words are sent that have nothing to do with
        # it.
        m.submodules.places = places = self.places
        keep, kept = places.write_port(), places.read_port(domain="comb")
        piece, next_piece = Signal(PLACE_BITS, reset_less=True), Signal(PLACE_BITS)
        read = Signal(GRID_BITS, reset_less=True)
        place, behind = Signal(GRID_BITS), Signal(GRID_BITS + 1)
        moves, extent = Signal(), Signal()  # the piece does; its end is the word sent
        carry = Signal()  # into the piece
        wraps = Signal()  # the piece does, from its end to 0
        # Whether a piece comes to its end is found out while its place is sent, two cycles late.
        alike = Signal(GRID_BITS // 2 + 1, reset_less=True)
        compared = Signal(len(EXTENTS), reset_less=True)
        at_end = Signal(len(EXTENTS), reset_less=True)
        unlike = behind ^ content[:GRID_BITS]
        m.d.sync += [
            goes_on.eq((begun & sending).any()),
            compared.eq(Cat(word == k + 1 for k in BLOCK)),
            alike.eq(Cat(~unlike[k : k + 2].any() for k in range(0, len(unlike), 2))),
        ]
        for k in range(len(EXTENTS)):
            with m.If(compared[k]):
                m.d.sync += at_end[k].eq(alike.all())
        with m.Switch(word):  # whether the address of arguments is sent or not makes no difference
            for position in range(len(LaunchWord) + INLINE_ARGS):
                with m.Case(position):
                    m.d.comb += next_piece.eq(PIECES.get(position, 0))
                    with m.If(sent):
                        m.d.sync += [
                            extent.eq(position in EXTENTS),
                            moves.eq(position in EXTENTS or PIECES.get(position, 0) >= BLOCK_NUMBER),
                        ]
        m.d.comb += [
            kept.addr.eq(Cat(next_piece, queue)),
            place.eq(Mux(goes_on, read, 0)),
            behind.eq(place + 1),
            keep.addr.eq(Cat(piece, queue)),
            keep.en.eq(sent & moves),
            wraps.eq(extent & carry & at_end.bit_select(piece[:2], 1)),
            keep.data.eq(Mux(wraps, 0, Mux(carry, behind[:GRID_BITS], place))),
        ]
        with m.If(sent):
            m.d.sync += [piece.eq(next_piece), read.eq(kept.data), carry.eq(~moves | wraps | behind[-1])]

        # Which block a core runs: written when it is handed out, read when the core reports.
        busy = Signal(cores)
        m.submodules.owners = owners = entry_memory(QUEUE_BITS, cores)
        m.submodules.blocks = blocks = entry_memory(32, cores)
        give, given = owners.write_port(), owners.read_port()
        count, counted = blocks.write_port(granularity=GRID_BITS), blocks.read_port()
        m.d.comb += [
            give.addr.eq(core if cores > 1 else 0),
            give.data.eq(queue),
            count.addr.eq(core if cores > 1 else 0),
            count.data.eq(place.replicate(2)),
            count.en.eq(Cat(word == LaunchWord.PROGRAM + 1, word == LaunchWord.TAG + 1)),
        ]

        # What is not the packet's is made beside its words, and is 0 where they are shown.
        flit: Any = self.message.payload
        own = Signal.like(flit.payload)
        others = Signal.like(flit.payload)
        nodes = [core_node(config, index) for index in range(cores)]
        m.d.comb += [
            flit.dest.x.eq(Array(x for x, _ in nodes)[core]),
            flit.dest.y.eq(Array(y for _, y in nodes)[core]),
            flit.last.eq(last_word),
            others.beat.data.eq(content & shows.replicate(WORD_BITS)),
            Value.cast(flit.payload).eq(Value.cast(own) | Value.cast(others)),
        ]
        with m.Switch(word):
            with m.Case(0):
                x, y = command_node(config)
                head = own.head
                m.d.comb += [
                    head.kind.eq(RequestKind.MESSAGE),
                    head.tag.eq(Tag.MESSAGE),
                    head.src.x.eq(x),
                    head.src.y.eq(y),
                    head.beats.eq(Mux(in_memory, len(LaunchWord) - 1, len(LaunchWord) - 2 + inline)),
                    head.addr.eq(grid.watchdog),
                ]
            with m.Case(LaunchWord.SIZES + 1):
                sizes = Signal(LaunchSizes)
                m.d.comb += [
                    sizes.program_words.eq(grid.program_words),
                    sizes.arg_words.eq(grid.arg_words),
                    sizes.context.eq(grid.context),
                    sizes.queue.eq(queue),
                    sizes.gang.eq(grid.gang),
                    own.beat.data.eq(sizes),
                ]
            with m.Case(*(k + 1 for k in BLOCK)):
                m.d.comb += own.beat.data.eq(place)

        ended = Signal()  # a block has
        chosen = Signal(queues)  # gets a core in this cycle
        begins = Signal(queues)  # a block of it has been sent
        final = Signal(queues)  # its last block has been sent
        unasked = Signal()  # the grid being sent came while no other had blocks left
        free = ~busy
        some_free = Signal(init=1)  # too early or late only while a block is sent
        idle = Signal()  # no core runs a block
        asked = turn.requests.any()
        # Who may have a core, should its turn be now: a gang has all of them or none.
        may = Mux(idle, -1, some_free.replicate(queues) & ~gangs)
        arriving_may = idle | (some_free & ~self.i.payload.grid.gang)
        m.d.sync += some_free.eq(free.any() | ended)
        m.d.comb += idle.eq(~Cat(running).any())
        m.d.comb += [turn.requests.eq(more & ~stopped), following.eq(Mux(core == cores - 1, 0, core + 1))]
        with m.FSM():
            with m.State("CHOOSE"):
                m.d.sync += [word.eq(0), shows.eq(0), core.eq(0)]
                for index in reversed(range(cores)):
                    with m.If(free[index]):
                        m.d.sync += core.eq(index)
                with m.If(under_way.any()):
                    m.d.comb += chosen.eq(under_way)
                    m.d.sync += core.eq(following)
                with m.Elif(asked):
                    m.d.comb += [chosen.eq(turn.grant & may), turn.moved.eq((turn.grant & may).any())]
                with m.Elif(arriving_may):
                    m.d.comb += chosen.eq(arriving)
                    m.d.sync += unasked.eq(self.i.valid)
                m.d.sync += [sending.eq(chosen), queue.eq(number(chosen))]
                with m.If(chosen.any()):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [self.message.valid.eq(1), give.en.eq(word == 0)]
                with m.If(unasked):  # the turn counts all the same
                    m.d.comb += [turn.requests.eq(sending), turn.moved.eq(1)]
                m.d.sync += unasked.eq(0)
                m.d.comb += sent.eq(self.message.ready)
                with m.If(sent):
                    m.d.sync += word.eq(word + 1)
                    with m.If((word == LaunchWord.TAG + 1) & skips_args):
                        m.d.sync += word.eq(LaunchWord.BLOCK_X + 1)
                    with m.If(last_word):
                        m.d.comb += begins.eq(sending)
                        m.d.sync += under_way.eq(Mux(grid.gang & (core != cores - 1), sending, 0))
                        with m.If(at_end.all()):
                            m.d.comb += final.eq(sending)
                        m.next = "CHOOSE"

        # Done messages: three words, one after another, from one core at a time.
        position = Signal(range(len(DoneWord)))
        value = self.done.payload.data[:32]
        pending = Signal(FaultRecord, reset_less=True)
        owner = Signal(queues)  # whose block ended
        m.d.comb += [
            given.addr.eq(value[:8] if cores > 1 else 0),
            given.en.eq(self.done.valid & (position == DoneWord.STATUS)),
            counted.addr.eq(given.addr),
            counted.en.eq(given.en),
            ended.eq(self.done.valid & (position == DoneWord.ADDRESS)),
            owner.eq(Mux(ended, 1 << given.data, 0)),
            self.retired.eq(ended),
        ]
        with m.If(self.done.valid):
            m.d.sync += position.eq(Mux(ended, 0, position + 1))
            with m.Switch(position):
                with m.Case(DoneWord.STATUS):
                    m.d.sync += Cat(pending.core, pending.code, pending.unit).eq(value)
                with m.Case(DoneWord.PC):
                    m.d.sync += pending.pc.eq(value)
        m.submodules.faults = faults = entry_memory(FaultRecord, queues)
        record, recorded = faults.write_port(), faults.read_port(domain="comb")
        guilty = Mux(pending.code != FaultCode.NONE, owner, 0)
        # Found from the first of the three words, a cycle after it: until the last one nothing of it changes.
        first = Signal(reset_less=True)  # fault of its grid
        m.d.sync += first.eq((pending.code != FaultCode.NONE) & ~faulted.bit_select(given.data, 1))
        m.d.comb += [
            record.en.eq(ended & first),
            record.addr.eq(given.data if queues > 1 else 0),
            record.data.eq(pending),
            record.data.block.eq(counted.data),
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
        # Of the grid that is reported: it keeps its record, and sends no other, until the executor has heard of it.
        reported = Signal(QUEUE_BITS, reset_less=True)
        has_fault = Signal(reset_less=True)
        cut_short = Signal(reset_less=True)
        fault = self.o.payload.fault
        m.d.comb += [
            over.eq(active & quiet & (~more | stopped) & ~under_way),
            recorded.addr.eq(reported if queues > 1 else 0),
            self.o.payload.queue.eq(reported),
        ]
        with m.If(has_fault):
            m.d.comb += fault.eq(recorded.data)
        with m.Elif(cut_short):
            m.d.comb += [fault.code.eq(FaultCode.ABORTED), fault.unit.eq(Unit.COMMAND)]
        with m.FSM(name="ends"):
            with m.State("WATCH"):
                ending = lowest(over)
                m.d.comb += told.eq(ending)
                m.d.sync += [
                    reported.eq(number(ending)),
                    has_fault.eq((ending & faulted).any()),
                    cut_short.eq((ending & more).any()),
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
            begun.eq((begun | begins) & ~arriving),
            gangs.eq((gangs & ~arriving) | Mux(self.i.payload.grid.gang, arriving, 0)),
        ]
        for k, count in enumerate(running):
            m.d.sync += count.eq(count + chosen[k] - owner[k])
        return m
