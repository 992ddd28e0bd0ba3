"""Executes packets: one at a time, from all queues in turn."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, Signature

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.packets import FENCE_BYTES, INLINE_ARGS, PACKET_BYTES, PACKETS, SEMAPHORE_BYTES, PacketOp
from sley.hw.command.check import PacketCheck
from sley.hw.command.copy import CopyEngine
from sley.hw.command.queue import PACKET_SHIFT
from sley.hw.command.records import GRID_BITS, INDEX_BITS, FaultRecord, LaunchResult, QueueEvent, launch_command
from sley.hw.layouts import struct
from sley.hw.memory.run import Run, beat
from sley.hw.stream.arbiter import PacketGrant

READBACK_BYTES = 4


QueueView = data.StructLayout({"packet": 32 - PACKET_SHIFT + 1, "readback": 32, "read_index": INDEX_BITS})
"""What the executor sees of a queue: the address of its next packet in units of packets, where its read index goes, and
the read index."""


class Executor(wiring.Component):
    """Takes the queues that have packets in turn (round robin) and executes one packet at a time.

    A packet is fetched, checked (see ``PacketCheck``), executed, and retired: the read index moves and is written to
    the queue's READBACK address. All that was written is acknowledged before the next step begins. A WAIT that is not
    satisfied and a LAUNCH while the scheduler is taken give the queue back, and the packet is fetched again later.
    A LAUNCH goes to the scheduler; its result comes first when the executor is idle, and only then is the packet
    retired.

    Members:

    * ``pending``, ``queues``: one bit and one view per queue; ``queue``, ``event``, ``fault``: to the queue with number
      ``queue`` (one-hot).
    * ``launch``, ``result``: the scheduler; ``scheduler_free``: it takes a launch in this cycle.
    * ``runs``, ``beats``: a memory reader; ``writes``, ``data``, ``writing``, ``write_error``: a memory writer.
    * ``time``; ``hold``: take no packet and no result; ``fence``: one bit per queue, high for a cycle when a fence that
      asks for an interrupt is in memory.

    Latency: ``pending`` to the fetch one cycle; the beat of the packet to execution four cycles.
    """

    pending: Signal
    queues: Any
    queue: Signal
    event: Any
    fault: Any
    launch: stream.Interface
    scheduler_free: Signal
    result: stream.Interface
    runs: stream.Interface
    beats: stream.Interface
    writes: stream.Interface
    data: stream.Interface
    writing: Signal
    write_error: Signal
    time: Signal
    hold: Signal
    fence: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
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
        m.submodules.check = check = PacketCheck(config)
        m.submodules.copy = copy = CopyEngine(config)

        packet = Signal(8 * PACKET_BYTES, reset_less=True)
        fields: dict[PacketOp, Any] = {op: data.View(struct(f.layout), packet) for op, f in PACKETS.items()}
        op = packet[:8]
        word = Signal(8 * SEMAPHORE_BYTES, reset_less=True)
        satisfied = Signal(reset_less=True)
        view = Signal(QueueView)
        owner = Signal(config.queues, init=1)
        outside = Signal(reset_less=True)
        m.d.comb += [self.queue.eq(owner), view.eq(_select(self.queue, self.queues))]
        m.d.comb += [check.packet.eq(packet), turn.requests.eq(self.pending), turn.last.eq(1)]

        # One small read or write at a time: a packet, a semaphore, a fence, a read index.
        run = Signal(Run, reset_less=True)
        asked = Signal()
        store = Signal(8 * FENCE_BYTES, reset_less=True)
        left = Signal(range(FENCE_BYTES // min(config.bus_bytes, FENCE_BYTES) + 1))
        failed = Signal()
        retired = Signal()  # the read index has moved, what is left is to write it

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

        def fail(code: Any, address: Any) -> None:
            m.d.sync += [
                self.fault.eq(0),
                self.fault.code.eq(code),
                self.fault.unit.eq(Unit.COMMAND),
                self.fault.address.eq(address),
            ]
            m.next = "FAULT"

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

        launch = fields[PacketOp.LAUNCH]
        command = self.launch.payload
        m.d.comb += [
            command.queue.eq(_number(owner)),
            command.program.eq(launch.program),
            command.program_words.eq(launch.program_words),
            command.tag.eq(launch.tag),
            command.args.eq(launch.args),
            *(command.inline[k].eq(launch[f"arg{k}"]) for k in range(INLINE_ARGS)),
            command.arg_words.eq(launch.arg_words),
            *(command.grid[k].eq(launch[f"grid_{axis}"][:GRID_BITS]) for k, axis in enumerate("xyz")),
        ]

        with m.FSM():
            with m.State("IDLE"):
                result = self.result.payload
                m.d.sync += retired.eq(0)
                with m.If(self.hold):
                    pass
                with m.Elif(self.result.valid):
                    m.d.comb += self.result.ready.eq(1)
                    m.d.sync += [owner.eq(1 << result.queue), self.fault.eq(result.fault)]
                    m.next = "RETIRE"
                    with m.If(result.fault.code != FaultCode.NONE):
                        m.next = "FAULT"
                with m.Elif(turn.grant.any()):
                    at = view.packet << PACKET_SHIFT
                    m.d.comb += [turn.moved.eq(1), self.queue.eq(turn.grant), self.event.eq(QueueEvent.TAKE)]
                    m.d.sync += [owner.eq(turn.grant), *read(at, PACKET_BYTES), outside.eq(_outside(config, at))]
                    m.next = "FETCH"
            with m.State("FETCH"):
                with m.If(outside):
                    fail(FaultCode.BAD_ADDRESS, run.addr)
                with m.Else():
                    receive(packet, "CHECK")
            with m.State("CHECK"):
                m.d.comb += check.start.eq(1)
                m.next = "CHECKED"
            with m.State("CHECKED"):
                with m.If(~check.done):
                    pass
                with m.Elif(failed):
                    fail(FaultCode.BUS_ERROR, run.addr)
                with m.Elif(check.code != FaultCode.NONE):
                    fail(check.code, check.address)
                with m.Else(), m.Switch(op):
                    with m.Case(PacketOp.NOP):
                        m.next = "RETIRE"
                    with m.Case(PacketOp.LAUNCH):
                        m.d.comb += self.launch.valid.eq(self.scheduler_free)
                        m.d.comb += self.event.eq(Mux(self.scheduler_free, QueueEvent.LAUNCH, QueueEvent.DEFER))
                        m.next = "IDLE"
                    with m.Case(PacketOp.COPY, PacketOp.FILL):
                        m.d.comb += copy.start.eq(1)
                        m.next = "COPY"
                    with m.Case(PacketOp.FENCE):
                        fence = fields[PacketOp.FENCE]
                        m.d.sync += write(fence.address, FENCE_BYTES, Cat(fence.sequence, self.time))
                        m.next = "STORE"
                    with m.Case(PacketOp.SIGNAL):
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
                    m.d.comb += self.event.eq(QueueEvent.BLOCK)
                    m.next = "IDLE"
            with m.State("STORE"):
                m.d.comb += [self.writes.valid.eq(~asked), self.data.valid.eq(left != 0)]
                with m.If(self.writes.ready):
                    m.d.sync += asked.eq(1)
                with m.If(self.data.valid & self.data.ready):
                    m.d.sync += [left.eq(left - 1), store.eq(store >> bus)]
                with m.If(asked & (left == 0)):
                    m.next = "ACKNOWLEDGE"
            with m.State("ACKNOWLEDGE"):
                with m.If(self.write_error):
                    m.d.sync += failed.eq(1)
                with m.Elif(~self.writing):
                    with m.If(failed):
                        fail(FaultCode.BUS_ERROR, run.addr)
                    with m.Elif(retired):
                        m.d.comb += self.event.eq(QueueEvent.FINISH)
                        m.next = "IDLE"
                    with m.Else():
                        with m.If((op == PacketOp.FENCE) & fields[PacketOp.FENCE].interrupt):
                            m.d.comb += self.fence.eq(owner)
                        m.next = "RETIRE"
            with m.State("RETIRE"):
                m.d.comb += self.event.eq(QueueEvent.RETIRE)
                m.d.sync += retired.eq(1)
                m.next = "READBACK"
            with m.State("READBACK"):
                where = view.readback & ~(READBACK_BYTES - 1)
                m.d.sync += write(where, READBACK_BYTES, view.read_index)
                with m.If(where == 0):
                    m.d.comb += self.event.eq(QueueEvent.FINISH)
                    m.next = "IDLE"
                with m.Elif(_outside(config, where)):
                    fail(FaultCode.BAD_ADDRESS, where)
                with m.Else():
                    m.next = "STORE"
            with m.State("FAULT"):
                m.d.comb += self.event.eq(QueueEvent.FAULT)
                m.next = "IDLE"
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
