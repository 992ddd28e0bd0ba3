"""Executes packets: one at a time, from all queues in turn."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, Signature

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.packets import FENCE_BYTES, INLINE_ARGS, PACKET_BYTES, PACKETS, SEMAPHORE_BYTES, PacketOp
from sley.hw.command.copy import CopyEngine
from sley.hw.command.fetch import PacketFetch
from sley.hw.command.queue import PACKET_ADDRESS_BITS, READBACK_BYTES
from sley.hw.command.records import GRID_BITS, INDEX_BITS, FaultRecord, LaunchResult, QueueEvent, launch_command
from sley.hw.layouts import struct
from sley.hw.memory.run import Run, beat
from sley.hw.noc.messages import Tag, request_flit, response_payload
from sley.hw.noc.placement import Source
from sley.hw.stream.arbiter import PacketGrant

KEPT_BITS = max(f.layout.mask.bit_length() for op, f in PACKETS.items() if op is not PacketOp.LAUNCH)
"""Of a packet that executes. A LAUNCH leaves the executor at once."""

QueueView = data.StructLayout({"packet": PACKET_ADDRESS_BITS, "ahead": 1, "readback": 32, "read_index": INDEX_BITS})
"""What the executor sees of a queue: the address of its next packet in units of packets, whether there is one, the read
index, and where that goes."""


class Executor(wiring.Component):
    """Takes the queues that have packets in turn (round robin) and executes one packet at a time.

    A packet is fetched and checked (see ``PacketFetch``), executed, and retired: the read index moves and is written to
    the queue's READBACK address. All that the packet wrote is acknowledged before that. The write of the read index is
    *posted*: the next packet may begin before it is acknowledged, but writes nothing till then. A WAIT that is not
    satisfied and a LAUNCH while the scheduler is taken give the queue back, and the packet is fetched again later.
    A LAUNCH goes to the scheduler; its result comes first when the executor is idle, and only then is the packet
    retired.

    While a packet executes, on the cores too, the next packet of its queue is fetched. That one is dropped when the
    queue no longer has it (turned off, stopped, doorbell taken back), and when another queue's packet is needed.

    Members:

    * ``pending``, ``queues``: one bit and one view per queue; ``queue``, ``event``, ``fault``: to the queue with number
      ``queue`` (one-hot).
    * ``launch``, ``result``: the scheduler; ``scheduler_free``: it takes a launch in this cycle.
    * ``posted``: one bit per queue, its read index is on the way to memory; ``lost``: high for a cycle when memory
      refused it.
    * ``request``, ``response``: for packets, to and from the node's port.
    * ``runs``, ``beats``: a memory reader; ``writes``, ``data``, ``writing``, ``write_error``: a memory writer.
    * ``time``; ``hold``: take no packet and no result; ``fence``: one bit per queue, high for a cycle when a fence that
      asks for an interrupt is in memory.

    Latency: ``pending`` to the fetch's request one cycle; the last beat of a packet to ``launch`` three cycles, to the
    execution of another packet four.
    """

    pending: Signal
    queues: Any
    queue: Signal
    event: Any
    fault: Any
    launch: stream.Interface
    scheduler_free: Signal
    result: stream.Interface
    posted: Signal
    lost: Signal
    request: stream.Interface
    response: stream.Interface
    runs: stream.Interface
    beats: stream.Interface
    writes: stream.Interface
    data: stream.Interface
    writing: Signal
    write_error: Signal
    time: Signal
    hold: Signal
    fence: Signal

    def __init__(self, config: ChipConfig, *, tag: Tag, source: Source) -> None:
        self._config = config
        self._tag = tag
        self._source = source
        super().__init__(
            Signature(
                {
                    "pending": In(config.queues),
                    "queues": In(QueueView).array(config.queues),
                    "queue": Out(config.queues),
                    "event": Out(QueueEvent),
                    "fault": Out(FaultRecord),
                    "launch": Out(stream.Signature(launch_command(config))),
                    "scheduler_free": In(1),
                    "result": In(stream.Signature(LaunchResult)),
                    "posted": Out(config.queues),
                    "lost": Out(config.queues),
                    "request": Out(stream.Signature(request_flit(config))),
                    "response": In(stream.Signature(response_payload(config))),
                    "runs": Out(stream.Signature(Run)),
                    "beats": In(stream.Signature(beat(config))),
                    "writes": Out(stream.Signature(Run)),
                    "data": Out(stream.Signature(8 * config.bus_bytes)),
                    "writing": In(1),
                    "write_error": In(1),
                    "time": In(64),
                    "hold": In(1),
                    "fence": Out(config.queues),
                }
            )
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        bus = 8 * config.bus_bytes

        m.submodules.turn = turn = PacketGrant(config.queues)
        m.submodules.fetch = fetch = PacketFetch(config, tag=self._tag, source=self._source)
        m.submodules.copy = copy = CopyEngine(config)

        packet = Signal(8 * PACKET_BYTES)
        kept = Signal(KEPT_BITS, reset_less=True)
        m.d.comb += packet.eq(kept)
        fields: dict[PacketOp, Any] = {op: data.View(struct(f.layout), packet) for op, f in PACKETS.items()}
        op = packet[:8]
        word = Signal(8 * SEMAPHORE_BYTES, reset_less=True)
        satisfied = Signal(reset_less=True)
        view = Signal(QueueView)
        owner = Signal(config.queues, init=1)
        m.d.comb += [self.queue.eq(owner), view.eq(_select(self.queue, self.queues))]
        m.d.comb += [turn.requests.eq(self.pending), turn.last.eq(1)]
        wiring.connect(m, fetch.request, wiring.flipped(self.request))
        wiring.connect(m, wiring.flipped(self.response), fetch.response)

        # Whose packet is fetched or here, whether that is ahead of time, and whether one shall be.
        wanted = Signal(PACKET_ADDRESS_BITS, reset_less=True)
        source = Signal(config.queues)
        early = Signal()
        look_ahead = Signal()
        m.d.comb += fetch.where.eq(view.packet)

        # One small read or write at a time: a semaphore, a fence, a read index.
        run = Signal(Run, reset_less=True)
        asked = Signal()
        store = Signal(8 * FENCE_BYTES, reset_less=True)
        left = Signal(range(FENCE_BYTES // min(config.bus_bytes, FENCE_BYTES) + 1))
        failed = Signal()
        with m.If(~self.writing):
            m.d.sync += self.posted.eq(0)
        with m.If(self.write_error):
            m.d.comb += self.lost.eq(self.posted)

        def read(addr: Any, size: int) -> list[Any]:
            return [run.addr.eq(addr), run.bytes.eq(size), asked.eq(0), failed.eq(0)]

        def write(addr: Any, size: int, value: Any) -> list[Any]:
            return [*read(addr, size), store.eq(value), left.eq(-(-size // config.bus_bytes))]

        def receive(register: Signal, following: str) -> None:
            m.d.comb += self.runs.valid.eq(~asked)
            with m.If(self.runs.ready):
                m.d.sync += asked.eq(1)
            with m.If(self.beats.valid):
                m.d.sync += register.eq(_shift_in(register, self.beats.payload.data))
                with m.If(self.beats.payload.error):
                    m.d.sync += failed.eq(1)
                with m.If(self.beats.payload.last):
                    m.next = following

        def put() -> None:
            m.d.comb += [self.writes.valid.eq(~asked), self.data.valid.eq(left != 0)]
            with m.If(self.writes.ready):
                m.d.sync += asked.eq(1)
            with m.If(self.data.valid & self.data.ready):
                m.d.sync += [left.eq(left - 1), store.eq(store >> bus)]

        def fail(code: Any, address: Any) -> None:
            m.d.sync += [
                self.fault.eq(0),
                self.fault.code.eq(code),
                self.fault.unit.eq(Unit.COMMAND),
                self.fault.address.eq(address),
            ]
            m.next = "FAULT"

        def give_back(event: QueueEvent) -> None:
            """The queue, with its packet; what is behind it may change before it is taken again."""
            m.d.comb += [self.event.eq(event), fetch.drop.eq(1)]
            m.d.sync += [source.eq(0), early.eq(0), look_ahead.eq(0)]
            m.next = "IDLE"

        # The copy engine and the small accesses share the reader and the writer; never at the same time.
        m.d.comb += [
            copy.fill.eq(op == PacketOp.FILL),
            copy.value.eq(fields[PacketOp.FILL].value),
            copy.src.eq(fields[PacketOp.COPY].src),
            copy.dst.eq(Mux(copy.fill, fields[PacketOp.FILL].dst, fields[PacketOp.COPY].dst)),
            copy.bytes.eq(Mux(copy.fill, fields[PacketOp.FILL].bytes, fields[PacketOp.COPY].bytes)),
            copy.writing.eq(self.writing),
            copy.write_error.eq(self.write_error),
        ]
        with m.If(copy.busy):
            wiring.connect(m, wiring.flipped(self.runs), copy.read)
            wiring.connect(m, wiring.flipped(self.beats), copy.beats)
            wiring.connect(m, wiring.flipped(self.writes), copy.write)
            wiring.connect(m, wiring.flipped(self.data), copy.data)
        with m.Else():
            m.d.comb += [
                self.runs.payload.eq(run),
                self.writes.payload.eq(run),
                self.data.payload.eq(store[:bus]),
                self.beats.ready.eq(1),
            ]

        launch: Any = data.View(struct(PACKETS[PacketOp.LAUNCH].layout), fetch.packet)
        command = self.launch.payload
        m.d.comb += [
            command.queue.eq(_number(owner)),
            command.program.eq(launch.program),
            command.program_words.eq(launch.program_words),
            command.tag.eq(launch.tag),
            command.args.eq(launch.args),
            *(command.inline[k].eq(launch[f"arg{k}"]) for k in range(INLINE_ARGS)),
            command.arg_words.eq(launch.arg_words),
            command.gang.eq(launch.gang),
            *(command.grid[k].eq(launch[f"grid_{axis}"][:GRID_BITS]) for k, axis in enumerate("xyz")),
        ]

        with m.If(early & ~(source & Cat(queue.ahead for queue in self.queues)).any()):
            m.d.comb += fetch.drop.eq(1)
            m.d.sync += [source.eq(0), early.eq(0)]
        with m.If(look_ahead & view.ahead & ~fetch.busy):
            m.d.comb += fetch.start.eq(1)
            m.d.sync += [source.eq(owner), early.eq(1), look_ahead.eq(0)]

        with m.FSM():
            with m.State("IDLE"):
                result = self.result.payload
                with m.If(self.hold):
                    pass
                with m.Elif(self.result.valid):
                    m.d.comb += self.result.ready.eq(1)
                    m.d.sync += [owner.eq(1 << result.queue), self.fault.eq(result.fault)]
                    m.d.sync += look_ahead.eq(0)
                    m.next = "RETIRE"
                    with m.If(result.fault.code != FaultCode.NONE):
                        m.next = "FAULT"
                with m.Elif(turn.grant.any()):
                    m.d.comb += [turn.moved.eq(1), self.queue.eq(turn.grant), self.event.eq(QueueEvent.TAKE)]
                    m.d.sync += [owner.eq(turn.grant), wanted.eq(view.packet), early.eq(0), look_ahead.eq(0)]
                    with m.If(~fetch.busy):
                        m.d.comb += fetch.start.eq(1)
                        m.d.sync += source.eq(turn.grant)
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.d.comb += fetch.where.eq(wanted)
                with m.If(source != owner):
                    m.d.comb += fetch.drop.eq(1)
                    with m.If(~fetch.busy):
                        m.d.comb += fetch.start.eq(1)
                        m.d.sync += source.eq(owner)
                with m.Elif(fetch.ready):
                    m.d.comb += fetch.drop.eq(1)
                    m.d.sync += [kept.eq(fetch.packet), source.eq(0), look_ahead.eq(1)]
                    with m.If(fetch.code != FaultCode.NONE):
                        fail(fetch.code, fetch.address)
                    with m.Elif(fetch.packet[:8] != PacketOp.LAUNCH):
                        m.next = "EXECUTE"
                    with m.Elif(self.scheduler_free):
                        m.d.comb += [self.launch.valid.eq(1), self.event.eq(QueueEvent.LAUNCH)]
                        m.next = "IDLE"
                    with m.Else():
                        give_back(QueueEvent.DEFER)
            with m.State("EXECUTE"), m.Switch(op):
                with m.Case(PacketOp.NOP):
                    m.next = "RETIRE"
                with m.Case(PacketOp.COPY, PacketOp.FILL), m.If(~self.posted.any()):
                    m.d.comb += copy.start.eq(1)
                    m.next = "COPY"
                with m.Case(PacketOp.FENCE), m.If(~self.posted.any()):
                    fence = fields[PacketOp.FENCE]
                    m.d.sync += write(fence.address, FENCE_BYTES, Cat(fence.sequence, self.time))
                    m.next = "STORE"
                with m.Case(PacketOp.SIGNAL), m.If(~self.posted.any()):
                    signal = fields[PacketOp.SIGNAL]
                    m.d.sync += write(signal.address, SEMAPHORE_BYTES, signal.value)
                    m.next = "STORE"
                with m.Case(PacketOp.WAIT):
                    m.d.sync += read(fields[PacketOp.WAIT].address, SEMAPHORE_BYTES)
                    m.next = "POLL"
            with m.State("COPY"), m.If(copy.done):
                m.next = "RETIRE"
                with m.If(copy.failed):
                    fail(FaultCode.BUS_ERROR, copy.address)
            with m.State("POLL"):
                receive(word, "COMPARE")
            with m.State("COMPARE"):
                m.d.sync += satisfied.eq(word >= fields[PacketOp.WAIT].value)
                m.next = "DECIDE"
            with m.State("DECIDE"):
                with m.If(failed):
                    fail(FaultCode.BUS_ERROR, run.addr)
                with m.Elif(satisfied):
                    m.next = "RETIRE"
                with m.Else():
                    give_back(QueueEvent.BLOCK)
            with m.State("STORE"):
                put()
                with m.If(asked & (left == 0)):
                    m.next = "ACKNOWLEDGE"
            with m.State("ACKNOWLEDGE"):
                with m.If(self.write_error):
                    m.d.sync += failed.eq(1)
                with m.Elif(~self.writing):
                    with m.If(failed):
                        fail(FaultCode.BUS_ERROR, run.addr)
                    with m.Else():
                        with m.If((op == PacketOp.FENCE) & fields[PacketOp.FENCE].interrupt):
                            m.d.comb += self.fence.eq(owner)
                        m.next = "RETIRE"
            with m.State("RETIRE"):
                m.d.comb += self.event.eq(QueueEvent.RETIRE)
                m.next = "READBACK"
            with m.State("READBACK"):
                where = view.readback & ~(READBACK_BYTES - 1)
                m.d.sync += write(where, READBACK_BYTES, view.read_index)
                with m.If(where == 0):
                    m.d.comb += self.event.eq(QueueEvent.FINISH)
                    m.next = "IDLE"
                with m.Elif(_outside(config, where)):
                    fail(FaultCode.BAD_ADDRESS, where)
                with m.Elif(~self.posted.any()):
                    m.next = "POST"
            with m.State("POST"):
                put()
                with m.If(asked & (left == 0)):
                    m.d.sync += self.posted.eq(owner)
                    m.d.comb += self.event.eq(QueueEvent.FINISH)
                    m.next = "IDLE"
            with m.State("FAULT"):
                give_back(QueueEvent.FAULT)
        return m


def _select(chosen: Value, items: Any) -> Value:
    """The item whose bit is set."""
    selected: Value = Value.cast(items[0])
    for k in range(1, len(chosen)):
        selected = Mux(chosen[k], Value.cast(items[k]), selected)
    return selected


def _number(one_hot: Value) -> Value:
    """Position of the bit that is set."""
    number: Value = one_hot & 0
    for k in range(1, len(one_hot)):
        number = Mux(one_hot[k], k, number)
    return number


def _outside(config: ChipConfig, address: Value) -> Value:
    """Whether an address has bits above the chip's address width."""
    return address[config.addr_bits :].any()


def _shift_in(register: Value, beat_data: Value) -> Value:
    """The register after one more beat; after all of them the first one is lowest."""
    return Cat(register, beat_data)[len(beat_data) :] if len(beat_data) < len(register) else beat_data[: len(register)]
