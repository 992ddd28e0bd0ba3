"""Executes packets: one at a time, from all queues by priority."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, Signature
from amaranth.utils import exact_log2

from sley.abi.command import QueueEvent
from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.network import Tag
from sley.abi.packets import FENCE_BYTES, PACKET_BYTES, PACKETS, SEMAPHORE_BYTES, PacketOp
from sley.abi.registers import PRIORITY_BITS
from sley.hw.command.fetch import CHOICES, PacketFetch, PacketPlace
from sley.hw.command.queue import BUFFER_BITS, PACKET_ADDRESS_BITS, PACKET_SHIFT
from sley.hw.command.records import (
    INDEX_BITS,
    READBACK_BYTES,
    CopyCommand,
    FaultRecord,
    LaunchCommand,
    WorkResult,
    number,
    one_of,
    packet_beat,
    readback_word,
)
from sley.hw.command.urgent import UrgentGrant
from sley.hw.command.words import WordCommand, word_line
from sley.hw.elaboration.layouts import struct
from sley.hw.noc.access import ERROR_BITS, fault_code
from sley.hw.noc.messages import Source, request_flit, response_payload

KEPT_BITS = max(f.layout.mask.bit_length() for op, f in PACKETS.items() if op is not PacketOp.LAUNCH)
"""Of a packet that executes. A LAUNCH leaves the executor at once."""

QueueView = data.StructLayout({"place": PacketPlace, "ahead": 1, "stays": 1, "read_next": INDEX_BITS})
"""What the executor sees of a queue: where its next packet is and whether there is one, whether a packet that retires
leaves it inside a buffer, the read index if it does not."""


class Executor(wiring.Component):
    """Takes the queues that have packets by the rule of ``UrgentGrant`` and executes one packet at a time.

    A packet is fetched and checked (see ``PacketFetch``), executed, and retired: the read index moves and is written to
    the queue's READBACK address. All that the packet wrote is acknowledged before that. The write of the read index is
    *posted*: the next packet may begin before it is acknowledged, and what a FENCE or SIGNAL writes follows it; other
    accesses to memory wait. A WAIT that is not satisfied gives the queue back, and the packet is fetched again later. A
    LAUNCH goes to the block scheduler, a COPY or FILL to the copy scheduler; their results come first when the executor
    is idle, and only then is the packet retired. An INDIRECT is retired with the last packet of its buffer.

    While a packet executes, on the cores too, the next packet of its queue is fetched. That one is dropped when the
    queue no longer has it (turned off, stopped, doorbell taken back), and when another queue's packet is needed.

    Parameters
    ----------
    config : ChipConfig
        The chip.
    tag : Tag, source : Source
        By which memory's answers to packet fetches find their way back.

    Members
    -------
    pending : In(queues), priorities : In(PRIORITY_BITS).array(queues), queues : In(QueueView).array(queues)
        Of each queue: whether it has a packet, its priority, and where that is.
    queue : Out(queues)
        The executor's queue, one-hot; a register.
    taken : Out(queues)
        One-hot: TAKE to that queue.
    readback, watchdog : In(32)
        Settings of the queue ``queue``.
    event : Out(QueueEvent), fault : Out(FaultRecord)
        To the queue ``queue``: the record is valid with FAULT.
    buffer : Out(PACKET_ADDRESS_BITS), buffer_packets : Out(BUFFER_BITS)
        To the same queue; valid with ENTER.
    launch : Out(stream of LaunchCommand), copy : Out(stream of CopyCommand)
        To the schedulers, always accepted. A launch is of the packet that has come.
    beat : Out(packet_beat(config))
        Of the packet that is fetched.
    grid_result, copy_result : In(stream of WorkResult)
        From the schedulers.
    posted : Out(queues)
        One bit per queue: its read index is in flight to memory.
    lost : Out(queues), lost_code : Out(8)
        High for a cycle when memory refused the read index of that queue, and why.
    request : Out(stream of request_flit(config)), response : In(stream of response_payload(config))
        For packets, to and from the node's port.
    words : Out(stream of WordCommand), word_done : In(1), word_error : In(ERROR_BITS), word : In(8 * SEMAPHORE_BYTES)
        A ``WordAccess``.
    time : In(64)
        For fences.
    stall : In(1)
        Take no packet and no result.
    fence : Out(queues)
        One bit per queue, high for the cycle after that in which a fence that asks for an interrupt is in memory.

    Latency
    ------- ``pending`` to the fetch's request one cycle; the last beat of a packet to ``launch`` three cycles, to the
    execution of another packet four.
    """

    pending: Signal
    priorities: list[Signal]
    queues: list[data.View]
    queue: Signal
    taken: Signal
    readback: Signal
    watchdog: Signal
    event: Signal
    fault: data.View
    buffer: Signal
    buffer_packets: Signal
    launch: stream.Interface
    beat: data.View
    copy: stream.Interface
    grid_result: stream.Interface
    copy_result: stream.Interface
    posted: Signal
    lost: Signal
    lost_code: Signal
    request: stream.Interface
    response: stream.Interface
    words: stream.Interface
    word_done: Signal
    word_error: Signal
    word: Signal
    time: Signal
    stall: Signal
    fence: Signal

    def __init__(self, config: ChipConfig, *, tag: Tag, source: Source) -> None:
        self._config = config
        self._tag = tag
        self._source = source
        super().__init__(
            Signature(
                {
                    "pending": In(config.queues),
                    "priorities": In(PRIORITY_BITS).array(config.queues),
                    "queues": In(QueueView).array(config.queues),
                    "queue": Out(config.queues),
                    "taken": Out(config.queues),
                    "readback": In(32),
                    "watchdog": In(32),
                    "event": Out(QueueEvent),
                    "fault": Out(FaultRecord),
                    "buffer": Out(PACKET_ADDRESS_BITS),
                    "buffer_packets": Out(BUFFER_BITS),
                    "launch": Out(stream.Signature(LaunchCommand, always_ready=True)),
                    "beat": Out(packet_beat(config)),
                    "copy": Out(stream.Signature(CopyCommand, always_ready=True)),
                    "grid_result": In(stream.Signature(WorkResult)),
                    "copy_result": In(stream.Signature(WorkResult)),
                    "posted": Out(config.queues),
                    "lost": Out(config.queues),
                    "lost_code": Out(8),
                    "request": Out(stream.Signature(request_flit(config))),
                    "response": In(stream.Signature(response_payload(config))),
                    "words": Out(stream.Signature(WordCommand)),
                    "word_done": In(1),
                    "word_error": In(ERROR_BITS),
                    "word": In(8 * SEMAPHORE_BYTES),
                    "time": In(64),
                    "stall": In(1),
                    "fence": Out(config.queues),
                }
            )
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config

        m.submodules.arbiter = arbiter = UrgentGrant(config.queues)
        m.submodules.fetch = fetch = PacketFetch(config, tag=self._tag, source=self._source)

        packet = Signal(8 * PACKET_BYTES)
        executed_packet = Signal(KEPT_BITS, reset_less=True)
        m.d.comb += packet.eq(executed_packet)
        fields: dict[PacketOp, data.View] = {op: data.View(struct(f.layout), packet) for op, f in PACKETS.items()}
        op = packet[: max(PacketOp).bit_length()]  # there is no other by the time it is looked at
        satisfied = Signal(reset_less=True)
        view = Signal(QueueView)
        owner = Signal(config.queues, init=1)
        m.d.comb += [self.queue.eq(owner), view.eq(one_of(owner, self.queues)), arbiter.requests.eq(self.pending)]
        m.d.comb += [a.eq(b) for a, b in zip(arbiter.priorities, self.priorities, strict=True)]
        wiring.connect(m, fetch.request, wiring.flipped(self.request))
        wiring.connect(m, wiring.flipped(self.response), fetch.response)

        # Whose packet is fetched or here, whether that is ahead of time, and whether one shall be.
        awaited = [Signal(PacketPlace, name=f"awaited{k}", reset_less=True) for k in range(CHOICES)]
        source = Signal(config.queues)
        ours = Signal(reset_less=True)  # it is the owner's, once that is taken
        early = Signal()
        takes = Signal()  # the queue that is granted
        look_ahead = Signal()
        returns = Signal()  # the one that was granted, when another packet was on its way
        for k, choice in enumerate(fetch.place):
            grants = list(zip(arbiter.grant, self.queues, strict=True))[k::CHOICES]
            granted = one_of(Cat(grant for grant, _ in grants), [queue.place for _, queue in grants])
            m.d.comb += choice.eq(Mux(takes, granted, Mux(returns, awaited[k], 0 if k else view.place)))

        # READBACK is set up before the queue is enabled, and its owner is known a cycle before it is asked for.
        readback = Signal.like(self.readback, reset_less=True)
        stays = Signal(reset_less=True)  # what was retired has more of its buffer behind it
        read_index = Signal(INDEX_BITS, reset_less=True)
        m.d.sync += readback.eq(readback_word(self.readback))

        # One small read or write at a time: a semaphore, a fence, a read index.
        word = self.words.payload
        m.d.comb += word.context.eq(view.place.context)
        posting = Signal()  # one of ``posted`` is set
        own_posted = Signal(reset_less=True)  # that of the owner, while one is
        m.d.sync += own_posted.eq((self.posted & owner).any())
        with m.If(self.word_done):
            m.d.sync += [self.posted.eq(0), posting.eq(0)]
            with m.If(self.word_error.any()):
                m.d.comb += self.lost.eq(self.posted)
        m.d.comb += self.lost_code.eq(fault_code(self.word_error))

        written, timed = Signal(8 * SEMAPHORE_BYTES), Signal()  # ... and whether the time is behind it
        m.d.comb += [
            written.eq(fields[PacketOp.SIGNAL].value),
            word.line.eq(word_line(config, written, self.time, timed)),
        ]

        def give_back(event: QueueEvent) -> None:
            """The queue, with its packet; what is behind it may change before it is taken again."""
            m.d.comb += [self.event.eq(event), fetch.drop.eq(1)]
            m.d.sync += [source.eq(0), early.eq(0), look_ahead.eq(0)]
            m.next = "IDLE"

        self._describe_work(m, owner, view, op, fields, fetch.packet)
        m.d.comb += self.beat.eq(fetch.beat)

        stale = Signal()
        m.d.comb += stale.eq(early & ~(source & Cat(queue.ahead for queue in self.queues)).any())
        with m.If(stale):
            m.d.comb += fetch.drop.eq(1)
            m.d.sync += [source.eq(0), early.eq(0)]
        with m.If(look_ahead & view.ahead & ~fetch.busy):
            m.d.comb += fetch.start.eq(1)
            m.d.sync += [source.eq(owner), early.eq(1), look_ahead.eq(0)]

        settling = Signal()  # whether the queue that has just finished has more is not known yet
        interrupts = Signal()  # a fence of the owner does
        m.d.sync += [settling.eq((self.event & QueueEvent.FINISH).any()), interrupts.eq(0)]
        m.d.comb += self.fence.eq(owner & interrupts.replicate(config.queues))
        ended = Signal()  # a grid has, and this may be looked at
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += ended.eq(self.grid_result.valid)
                m.d.sync += ours.eq(~fetch.busy | (~stale & (source & arbiter.grant).any()))
                result = Signal(WorkResult)
                m.d.comb += result.eq(Mux(self.grid_result.valid, self.grid_result.payload, self.copy_result.payload))
                m.d.sync += [self.fault[name].eq(result.fault[name]) for name in ("code", "unit", "address")]
                with m.If(self.stall):
                    pass
                with m.Elif(self.grid_result.valid | self.copy_result.valid):
                    m.d.comb += [
                        self.grid_result.ready.eq(1),
                        self.copy_result.ready.eq(~self.grid_result.valid),
                    ]
                    m.d.sync += [owner.eq(1 << result.queue), look_ahead.eq(0)]
                    m.next = "RETIRE"
                    with m.If(result.fault.code != FaultCode.NONE):
                        m.next = "FAULT"
                with m.Elif(self.pending.any() & ~settling):
                    m.d.comb += [arbiter.moved.eq(1), self.taken.eq(arbiter.grant), takes.eq(1)]
                    m.d.sync += [owner.eq(arbiter.grant), early.eq(0), look_ahead.eq(0)]
                    m.d.sync += [place.eq(choice) for place, choice in zip(awaited, fetch.place, strict=True)]
                    with m.If(~fetch.busy):
                        m.d.comb += fetch.start.eq(1)
                        m.d.sync += source.eq(arbiter.grant)
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.d.comb += returns.eq(1)
                with m.If(~ours):
                    m.d.comb += fetch.drop.eq(1)
                    with m.If(~fetch.busy):
                        m.d.comb += fetch.start.eq(1)
                        m.d.sync += [source.eq(owner), ours.eq(1)]
                with m.Elif(fetch.ready):
                    m.d.comb += fetch.drop.eq(1)
                    m.d.sync += [
                        executed_packet.eq(fetch.packet),
                        self.fault.address.eq(fetch.address),
                        source.eq(0),
                        look_ahead.eq(~fetch.indirect),  # what is behind that is not next
                    ]
                    with m.If(fetch.bad):
                        self._fail(m, fetch.code)
                    with m.Elif(~fetch.launch):
                        m.next = "EXECUTE"
                    with m.Else():
                        m.d.comb += [self.launch.valid.eq(1), self.event.eq(QueueEvent.LAUNCH)]
                        m.next = "IDLE"
            with m.State("EXECUTE"):
                self._execute(m, fields, op, posting, own_posted, timed)
            with m.State("ENTERED"):
                m.d.sync += look_ahead.eq(1)
                m.next = "IDLE"
            with m.State("ACKNOWLEDGE"), m.If(self.word_done & ~posting):
                m.next = "RETIRE"
                with m.If(self.word_error.any()):
                    self._fail(m, fault_code(self.word_error))
                with m.Elif(op == PacketOp.WAIT):
                    m.next = "COMPARE"
                with m.Elif((op == PacketOp.FENCE) & fields[PacketOp.FENCE].interrupt):
                    m.d.sync += interrupts.eq(1)
            with m.State("COMPARE"):
                m.d.sync += satisfied.eq(self.word >= fields[PacketOp.WAIT].value)
                m.next = "DECIDE"
            with m.State("DECIDE"):
                with m.If(satisfied):
                    m.next = "RETIRE"
                with m.Else():
                    give_back(QueueEvent.BLOCK)
            with m.State("RETIRE"):
                m.d.comb += self.event.eq(QueueEvent.RETIRE)
                m.d.sync += [stays.eq(view.stays), read_index.eq(view.read_next)]
                m.next = "READBACK"
            with m.State("READBACK"):
                self._readback(m, owner, readback, stays, read_index, written, posting)
            with m.State("FAULT"):
                give_back(QueueEvent.FAULT)

        # A record goes to its queue in the cycle after that in which it is known. Only those of grids have these.
        grid_fault = self.grid_result.payload.fault
        for name in ("core", "pc", "block"):
            m.d.sync += self.fault[name].eq(grid_fault[name])
            with m.If(~ended):
                m.d.sync += self.fault[name].eq(0)
        return m

    def _describe_work(
        self, m: Module, owner: Signal, view: data.View, op: Value, fields: dict[PacketOp, data.View], fetched: Signal
    ) -> None:
        """What the schedulers are given: a LAUNCH of the packet that is fetched, the others of that which executes."""
        launch = data.View(struct(PACKETS[PacketOp.LAUNCH].layout), fetched)
        grid = self.launch.payload.grid
        job = self.copy.payload.job
        copy, fill = fields[PacketOp.COPY], fields[PacketOp.FILL]
        indirect = fields[PacketOp.INDIRECT]
        m.d.comb += [
            self.launch.payload.queue.eq(number(owner)),
            grid.context.eq(view.place.context),
            grid.watchdog.eq(self.watchdog),
            grid.program_words.eq(launch.program_words),
            grid.arg_words.eq(launch.arg_words),
            grid.gang.eq(launch.gang),
            self.copy.payload.queue.eq(number(owner)),
            job.context.eq(view.place.context),
            job.fill.eq(op == PacketOp.FILL),
            job.value.eq(fill.value),
            job.src.eq(copy.src),
            job.dst.eq(Mux(job.fill, fill.dst, copy.dst)),
            job.bytes.eq(Mux(job.fill, fill.bytes, copy.bytes)),
            self.buffer.eq(indirect.address[PACKET_SHIFT:]),
            self.buffer_packets.eq(indirect.packets),
        ]

    def _execute(
        self,
        m: Module,
        fields: dict[PacketOp, data.View],
        op: Value,
        posting: Signal,
        own_posted: Signal,
        timed: Signal,
    ) -> None:
        """The state in which a packet that was checked begins."""
        with m.Switch(op):
            with m.Case(PacketOp.NOP):
                m.next = "RETIRE"
            with m.Case(PacketOp.COPY, PacketOp.FILL), m.If(~(posting & own_posted)):
                m.d.comb += self.copy.valid.eq(1)
                m.next = "IDLE"
            with m.Case(PacketOp.FENCE):
                fence = fields[PacketOp.FENCE]
                self._access(m, fence.address, FENCE_BYTES)
                m.d.comb += timed.eq(1)
                with m.If(self.words.ready):
                    m.next = "ACKNOWLEDGE"
            with m.Case(PacketOp.SIGNAL):
                signal = fields[PacketOp.SIGNAL]
                self._access(m, signal.address, SEMAPHORE_BYTES)
                with m.If(self.words.ready):
                    m.next = "ACKNOWLEDGE"
            with m.Case(PacketOp.WAIT), m.If(~posting):
                self._access(m, fields[PacketOp.WAIT].address, SEMAPHORE_BYTES, write=False)
                with m.If(self.words.ready):
                    m.next = "ACKNOWLEDGE"
            with m.Case(PacketOp.INDIRECT):
                m.next = "RETIRE"
                with m.If(fields[PacketOp.INDIRECT].packets != 0):
                    m.d.comb += self.event.eq(QueueEvent.ENTER)
                    m.next = "ENTERED"

    def _readback(
        self,
        m: Module,
        owner: Signal,
        readback: Signal,
        stays: Signal,
        read_index: Signal,
        written: Signal,
        posting: Signal,
    ) -> None:
        """The state in which the read index of a packet that retired goes to memory."""
        m.d.sync += self.fault.address.eq(readback)
        m.d.comb += written[: 8 * READBACK_BYTES].eq(read_index)
        if self._config.bus_bytes > READBACK_BYTES:
            m.d.comb += written[8 * READBACK_BYTES :].eq(read_index)
        with m.If(stays | (readback == 0)):
            m.d.comb += self.event.eq(QueueEvent.FINISH)
            m.next = "IDLE"
        with m.Elif(readback[self._config.addr_bits :].any()):
            self._fail(m, FaultCode.BAD_ADDRESS)
        with m.Elif(~posting):
            self._access(m, readback, READBACK_BYTES)
            with m.If(self.words.ready):
                m.d.sync += [self.posted.eq(owner), posting.eq(1)]
                m.d.comb += self.event.eq(QueueEvent.FINISH)
                m.next = "IDLE"

    def _access(self, m: Module, addr: Value, size: int, *, write: bool = True) -> None:
        """One small read or write of memory, in every cycle until ``words`` is ready."""
        word = self.words.payload
        m.d.comb += [
            self.words.valid.eq(1),
            word.addr.eq(addr),
            word.size.eq(exact_log2(size)),
            word.write.eq(write),
        ]

    def _fail(self, m: Module, code: Value | FaultCode) -> None:
        """With the address that is in the record, of this processor and no block."""
        m.d.sync += [self.fault.code.eq(code), self.fault.unit.eq(Unit.COMMAND)]
        m.next = "FAULT"
