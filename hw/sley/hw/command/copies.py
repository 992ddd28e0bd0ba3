"""Copies and fills of all queues on one engine."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.network import QUEUE_BITS
from sley.abi.registers import PRIORITY_BITS
from sley.abi.timing import SLICE_CHUNKS
from sley.hw.command.copy import CopyEngine, chunk_beats
from sley.hw.command.records import CopyCommand, CopyJob, WorkResult, number
from sley.hw.command.urgent import UrgentGrant
from sley.hw.elaboration.entries import entry_memory
from sley.hw.memory.run import Run, beat
from sley.hw.noc.access import ERROR_BITS, fault_code
from sley.hw.stream.arbiter import lowest


class CopyScheduler(wiring.Component):
    """Runs up to one copy of each queue, a slice at a time.

    After every ``SLICE_CHUNKS`` chunks the rule of ``UrgentGrant`` says whose copy goes on. If it is another's, all
    that was requested is written first and the place is remembered; a copy alone never pauses. An aborted copy ends
    with ABORTED, in the middle of its slice, or after the slice of another. The abort reaches the engine a cycle late.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    i : In(stream of CopyCommand)
        A copy, always accepted; not while the queue has one here.
    o : Out(stream of WorkResult)
        The end of a copy.
    priorities : In(PRIORITY_BITS).array(queues), abort : In(queues)
        Of each queue.
    read : Out(stream of Run), beats : In(stream of beat(config))
        To and from a memory reader, see ``CopyEngine``.
    write : Out(stream of Run), data : Out(stream of bus_bytes), writing : In(1), write_error : In(ERROR_BITS)
        To and from a memory writer, see ``CopyEngine``.

    Latency
    -------
    3 cycles from ``i`` to the first read.

    Cost
    ----
    The engine, a job and what is left of it in memory for each queue, three 32-bit adders.
    """

    i: stream.Interface
    o: stream.Interface
    priorities: list[Signal]
    abort: Signal
    read: stream.Interface
    beats: stream.Interface
    write: stream.Interface
    data: stream.Interface
    writing: Signal
    write_error: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(CopyCommand, always_ready=True)),
                "o": Out(stream.Signature(WorkResult)),
                "priorities": In(PRIORITY_BITS).array(config.queues),
                "abort": In(config.queues),
                "read": Out(stream.Signature(Run)),
                "beats": In(stream.Signature(beat(config))),
                "write": Out(stream.Signature(Run)),
                "data": Out(stream.Signature(8 * config.bus_bytes)),
                "writing": In(1),
                "write_error": In(ERROR_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queues = self._config.queues
        m.submodules.engine = engine = CopyEngine(self._config)
        m.submodules.arbiter = arbiter = UrgentGrant(queues)

        waiting = Signal(queues)
        begun = Signal(queues)  # what is left is in memory; otherwise it is all
        current = Signal(queues)  # whose copy the engine runs
        queue = Signal(QUEUE_BITS, reset_less=True)
        resumes = Signal(reset_less=True)  # and that was begun
        aborted = Signal(reset_less=True)  # it shall end, as of the cycle before
        slice_left = Signal(range(SLICE_CHUNKS))
        used_up = Signal(reset_less=True)  # it is 0
        fault = Signal(WorkResult["fault"].shape, reset_less=True)

        m.submodules.jobs = jobs = entry_memory(CopyJob, queues)
        m.submodules.rests = rests = entry_memory(32, queues)
        write_job, read_job = jobs.write_port(), jobs.read_port(domain="comb")
        write_rest, read_rest = rests.write_port(), rests.read_port(domain="comb")
        job = read_job.data
        left = Signal(32)
        offset = Signal(32)
        arriving, leaving, back = Signal(queues), Signal(queues), Signal(queues)
        m.d.comb += arriving.eq(Mux(self.i.valid, 1 << self.i.payload.queue, 0))
        m.d.sync += [waiting.eq((waiting & ~leaving) | arriving | back), begun.eq((begun & ~arriving) | back)]
        m.d.comb += [
            write_job.en.eq(self.i.valid),
            write_job.addr.eq(self.i.payload.queue),
            write_job.data.eq(self.i.payload.job),
            read_job.addr.eq(queue),
            read_rest.addr.eq(queue),
            write_rest.addr.eq(queue),
            write_rest.data.eq(engine.left),
            left.eq(Mux(resumes, read_rest.data, job.bytes)),
            offset.eq(job.bytes - left),
            *(a.eq(b) for a, b in zip(arbiter.priorities, self.priorities, strict=True)),
        ]

        wiring.connect(m, wiring.flipped(self.beats), engine.beats)
        wiring.connect(m, wiring.flipped(self.data), engine.data)
        for outer, inner in ((self.read, engine.read), (self.write, engine.write)):
            m.d.comb += [
                outer.valid.eq(inner.valid),
                inner.ready.eq(outer.ready),
                outer.payload.addr.eq(inner.payload.addr),
                outer.payload.bytes.eq(inner.payload.bytes),
                outer.payload.context.eq(job.context),
            ]
        bits = exact_log2(chunk_beats(self._config) * self._config.bus_bytes)  # a copy goes on where a chunk begins
        m.d.comb += [
            engine.fill.eq(job.fill),
            engine.value.eq(job.value),
            engine.src.eq(job.src + offset),
            engine.dst.eq(Cat(job.dst[:bits] & ~resumes.replicate(bits), (job.dst + offset)[bits:])),
            engine.bytes.eq(left),
            engine.writing.eq(self.writing),
            engine.write_error.eq(self.write_error),
        ]

        def choose(chosen: Value) -> None:
            m.d.comb += leaving.eq(chosen)
            m.d.sync += [
                current.eq(chosen),
                queue.eq(number(chosen)),
                resumes.eq((begun & chosen).any()),
                slice_left.eq(SLICE_CHUNKS - 1),
                used_up.eq(0),
                fault.eq(0),
                fault.unit.eq(Unit.COMMAND),
            ]

        others = Signal()  # shall run, as of the cycle before
        chooses = Signal()
        renews = Signal()  # with the next chunk another slice of the same copy begins; the chunk is known late
        m.d.comb += arbiter.moved.eq(chooses | (renews & engine.requested))
        m.d.sync += aborted.eq((self.abort & current).any())
        ended = waiting & self.abort
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += arbiter.requests.eq(waiting)
                with m.If(ended.any()):
                    choose(lowest(ended))
                    m.d.sync += fault.code.eq(FaultCode.ABORTED)
                    m.next = "REPORT"
                with m.Elif(waiting.any()):
                    m.d.comb += chooses.eq(1)
                    choose(arbiter.grant)
                    m.next = "START"
            with m.State("START"):
                m.d.comb += engine.start.eq(1)
                m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += arbiter.requests.eq(waiting | current)
                with m.If(engine.requested):
                    m.d.sync += [slice_left.eq(Mux(used_up, 0, slice_left - 1)), used_up.eq(slice_left[1:] == 0)]
                continues = (arbiter.grant & current).any()
                m.d.sync += others.eq(~continues | ended.any())
                m.d.comb += engine.stop.eq(aborted | (used_up & others))
                m.d.comb += renews.eq(used_up & continues)
                with m.If(renews & engine.requested):
                    m.d.sync += [slice_left.eq(SLICE_CHUNKS - 1), used_up.eq(0)]
                with m.If(engine.done):
                    m.d.comb += write_rest.en.eq(1)
                    m.next = "REPORT"
                    with m.If(engine.error.any()):
                        m.d.sync += fault.code.eq(fault_code(engine.error))
                        m.d.sync += fault.address.eq(Mux(engine.of_read, job.src, job.dst))
                    with m.Elif(engine.left == 0):
                        pass
                    with m.Elif(aborted):
                        m.d.sync += fault.code.eq(FaultCode.ABORTED)
                    with m.Else():
                        m.d.comb += back.eq(current)
                        m.next = "IDLE"
            with m.State("REPORT"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = "IDLE"
        m.d.comb += [self.o.payload.queue.eq(queue), self.o.payload.fault.eq(fault)]
        return m
