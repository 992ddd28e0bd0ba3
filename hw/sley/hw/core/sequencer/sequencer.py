"""The sequencer of a core: the life of a block from its launch message to its done message."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.counters import SequencerCycle
from sley.abi.faults import FAULT, PC_BITS, UNITS, FaultCode, Unit, UnitState
from sley.abi.instructions import SEMAPHORES
from sley.abi.pages import CONTEXT_BITS
from sley.hw.core.sequencer.execute import Execute
from sley.hw.core.sequencer.fetch import Fetch
from sley.hw.core.sequencer.launch import CORE_BITS, Launch, Report
from sley.hw.core.sequencer.watchdog import Watchdog
from sley.hw.core.unit import Fault, UnitCommand
from sley.hw.counters.classes import class_events
from sley.hw.elaboration.layouts import widths
from sley.hw.memory.run import Run, beat
from sley.hw.noc.messages import request_flit, response_flit


class _State(enum.Enum):
    IDLE = 0
    LAUNCH = 1  # the launch message arrives
    RUN = 2
    ABORT = 3  # after a fault: until everything is quiet
    REPORT = 4


_Fault = tuple[Value, Unit | Value, Value, Value, Value]
"""Whether there is one, unit, code, program counter, address."""


def _any(fields: Iterable[Value]) -> Value:
    return reduce(or_, fields)


def _first(record: data.View, faults: list[_Fault], pc: Value | None = None) -> list[Any]:
    """Assigns the first one's fields: each or'ed of all that may be. Of none there is, code and unit are 0."""
    valid = [fault[0] for fault in faults]
    wins = [valid[k] & ~Cat(valid[:k]).any() for k in range(len(faults))]
    places = [(win, fault[3]) for win, fault in zip(wins, faults, strict=True) if fault[3] is not pc]
    place = _any(address[: len(record.pc)] & win.replicate(len(record.pc)) for win, address in places)
    if pc is not None:
        place |= pc & ~Cat(win for win, _ in places).any().replicate(len(pc))
    masks = [(win.replicate(32), *fault[1:]) for win, fault in zip(wins, faults, strict=True)]
    return [
        record.code.eq(_any(code & win for win, _, code, _, _ in masks)),
        record.unit.eq(_any(unit & win for win, unit, _, _, _ in masks)),
        record.pc.eq(place),
        record.address.eq(_any(address & win for win, _, _, _, address in masks)),
    ]


class Sequencer(wiring.Component):
    """Control of a core: takes a launch, fetches program and arguments, executes, reports the end or the fault.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    core : In(8)
        Number of this core, for the message that ends a block.
    context : Out(CONTEXT_BITS)
        Whose block it is, from the launch message to the end of the block.
    starts : Out(1), scrubbing : In(1)
        A block of ``context`` has been launched, its first instruction is not executed yet; it waits while
        ``scrubbing``.
    forget : In(1)
        The program that was fetched last may not be used again.
    cancel : In(config.queues)
        A block of a queue whose bit is set ends with ABORTED.
    retired : In(1)
        A unit finished an instruction in the cycle before, for the watchdog.
    launch : In(stream of request_flit(config)), done : Out(stream of response_flit(config))
        Messages from and to the command processor. An idle core takes one flit of a launch per cycle.
    run : Out(stream of Run), beat : In(stream of beat(config))
        To a memory reader, for program and arguments.
    dispatch : Out(stream of UnitCommand).array(4)
        To the queues of LOAD, STORE, MATRIX, VECTOR. All share one payload register.
    wait, signal : Out(stream of SEMAPHORES bits)
        To the semaphores, for SYNC. A fault takes them back.
    semaphores : In(SEMAPHORES)
        Those that are above zero, for the check at END.
    unit_fault : In(Fault).array(4)
        Same order as ``dispatch``. The first fault of a block counts; of those in one cycle the sequencer's own, then
        the lowest index. They are or'ed into one record, which is looked at a cycle later.
    units_idle : In(1)
        Queues are empty and units are not busy. Low from the cycle after a dispatched command is accepted.
    abort : Out(1)
        From the second cycle after a fault, or the one after that of END, until all is quiet, at least one cycle.
    clear : Out(1)
        One cycle after the head of a launch, and one cycle after ``abort``: semaphores become zero, parameters of the
        units take their reset values.
    gang : Out(1)
        The block is of a gang.
    pc : Out(16), running : Out(1), state : Out(UnitState)
        For debugging: the instruction in execution (after a block: its final one), whether a block is here, and what
        SYNC does.
    events : Out(class_events(SequencerCycle))
        For counters.

    Latency
    -------
    See docs/theory/sequencer.md, which lists it in cycles. All outputs come from registers or selections of registers.
    """

    core: Signal
    context: Signal
    starts: Signal
    scrubbing: Signal
    forget: Signal
    cancel: Signal
    retired: Signal
    launch: stream.Interface
    done: stream.Interface
    run: stream.Interface
    beat: stream.Interface
    dispatch: list[stream.Interface]
    wait: stream.Interface
    signal: stream.Interface
    semaphores: Signal
    unit_fault: list[data.View]
    units_idle: Signal
    abort: Signal
    clear: Signal
    gang: Signal
    pc: Signal
    running: Signal
    state: Signal
    events: data.View

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "core": In(CORE_BITS),
                "context": Out(CONTEXT_BITS),
                "starts": Out(1),
                "scrubbing": In(1),
                "forget": In(1),
                "cancel": In(config.queues),
                "retired": In(1),
                "launch": In(stream.Signature(request_flit(config))),
                "done": Out(stream.Signature(response_flit(config))),
                "run": Out(stream.Signature(Run)),
                "beat": In(stream.Signature(beat(config))),
                "dispatch": Out(stream.Signature(UnitCommand)).array(len(UNITS)),
                "wait": Out(stream.Signature(SEMAPHORES)),
                "signal": Out(stream.Signature(SEMAPHORES)),
                "semaphores": In(SEMAPHORES),
                "unit_fault": In(Fault).array(len(UNITS)),
                "units_idle": In(1),
                "abort": Out(1),
                "clear": Out(1),
                "gang": Out(1),
                "pc": Out(PC_BITS),
                "running": Out(1),
                "state": Out(UnitState),
                "events": Out(class_events(SequencerCycle)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.launcher = launcher = Launch(self._config)
        m.submodules.fetch = fetch = Fetch(self._config)
        m.submodules.execute = execute = Execute(self._config)
        m.submodules.report = report = Report(self._config)
        m.submodules.watchdog = watchdog = Watchdog()
        m.d.comb += [report.core.eq(self.core), self.context.eq(launcher.order.context)]
        cancelled = Signal(reset_less=True)
        m.d.sync += cancelled.eq(self.cancel.bit_select(launcher.queue, 1))
        for outer, inner in (
            (self.launch, launcher.i),
            (self.done, report.o),
            (self.run, fetch.run),
            (self.beat, fetch.beat),
            (self.wait, execute.wait),
            (self.signal, execute.signal),
            *zip(self.dispatch, execute.dispatch, strict=True),
        ):
            wiring.connect(m, wiring.flipped(outer), inner)

        state = Signal(_State)
        # An index of an instruction, also in a unit's record.
        place = len(execute.pc)
        record = Signal(data.StructLayout({**widths(FAULT, "code", "unit", "address"), "pc": place}), reset_less=True)
        quiet = Signal()
        m.d.comb += [
            launcher.enable.eq((state == _State.IDLE) | (state == _State.LAUNCH)),
            fetch.start.eq(launcher.start),
            fetch.order.eq(launcher.order),
            fetch.open.eq(launcher.ready),
            fetch.index.eq(execute.index),
            fetch.forget.eq((state == _State.ABORT) | self.forget),
            self.starts.eq(launcher.start),
            execute.clear.eq(launcher.begin),
            execute.go.eq(launcher.done),
            execute.stall.eq(~launcher.ready | ~fetch.args_done | self.scrubbing),
            execute.stop.eq((state == _State.ABORT) | (state == _State.REPORT)),
            execute.words.eq(launcher.order.words),
            execute.available.eq(fetch.available),
            execute.instruction.eq(fetch.instruction),
            execute.register.eq(Mux(launcher.register.valid, launcher.register, fetch.register)),
            quiet.eq(self.units_idle & ~execute.dispatching & ~fetch.busy),
            report.send.eq(state == _State.REPORT),
            report.code.eq(record.code),
            report.unit.eq(record.unit),
            report.pc.eq(record.pc),
            report.address.eq(record.address),
            watchdog.limit.eq(launcher.watchdog),
            watchdog.progress.eq(self.retired | (state != _State.RUN) | self.scrubbing),
            self.gang.eq(launcher.gang),
            self.pc.eq(execute.pc),
            self.running.eq(state != _State.IDLE),
        ]
        # Every fault is seen a cycle late, so that none is before another that happened with it.
        unit_fault = Signal(data.StructLayout({"valid": 1, **record.shape().members}), reset_less=True)
        fetch_failed = Signal()
        late_cancelled = Signal()
        own = execute.fault
        ported = [(f.valid, unit, f.code, f.pc, f.address) for unit, f in zip(UNITS, self.unit_fault, strict=True)]
        m.d.sync += [
            *_first(unit_fault, ported),
            unit_fault.valid.eq(Cat(f.valid for f in self.unit_fault).any()),
            fetch_failed.eq(fetch.error),
            late_cancelled.eq(cancelled),
        ]
        zero = Const(0, 32)
        # What is left over is found in the cycle in which it counts: all others happened before.
        leftover = execute.ended & self.semaphores.any()
        faults: list[_Fault] = [
            (own.valid, Unit.SEQUENCER, own.code, execute.pc, own.address),
            (fetch_failed, Unit.SEQUENCER, fetch.code, zero, fetch.address),
            (unit_fault.valid, unit_fault.unit, unit_fault.code, unit_fault.pc, unit_fault.address),
            (late_cancelled, Unit.SEQUENCER, Const(FaultCode.ABORTED), execute.pc, zero),
            (watchdog.expired, Unit.SEQUENCER, Const(FaultCode.WATCHDOG), execute.pc, zero),
            (leftover, Unit.SEQUENCER, Const(FaultCode.SEMAPHORE_LEFTOVER), execute.pc, self.semaphores),
        ]
        fault = Signal()
        m.d.comb += fault.eq(Cat(valid for valid, *_ in faults[:-1]).any() | (leftover & quiet))
        m.d.sync += self.clear.eq(launcher.begin)
        with m.Switch(state):
            with m.Case(_State.IDLE), m.If(launcher.begin):
                m.d.sync += state.eq(_State.LAUNCH)
            with m.Case(_State.LAUNCH), m.If(launcher.done):
                m.d.sync += state.eq(_State.RUN)
            with m.Case(_State.RUN):
                # The record follows what happens until a fault stops it.
                m.d.sync += _first(record, faults, execute.pc)
                with m.If(execute.ended & quiet):
                    m.d.sync += state.eq(_State.REPORT)
                with m.If(fault):
                    m.d.sync += [state.eq(_State.ABORT), self.abort.eq(1)]
            with m.Case(_State.ABORT), m.If(quiet):
                m.d.sync += [state.eq(_State.REPORT), self.abort.eq(0), self.clear.eq(1)]
            with m.Case(_State.REPORT), m.If(report.done):
                m.d.sync += state.eq(_State.IDLE)

        with m.If(self.running):
            m.d.comb += self.state.eq(UnitState.RUN)
        with m.If(execute.wait.valid):
            m.d.comb += self.state.eq(UnitState.WAIT)
        with m.If(execute.signal.valid):
            m.d.comb += self.state.eq(UnitState.SIGNAL)

        run = state == _State.RUN
        m.d.comb += [
            self.events.launch.eq((state == _State.LAUNCH) | (run & ~launcher.ready)),
            self.events.fetch.eq(run & execute.fetching),
            *(
                self.events[f"{unit.name.lower()}_queue"].eq(execute.blocked & port.valid)
                for unit, port in zip(UNITS, execute.dispatch, strict=True)
            ),
            self.events.sync_wait.eq(execute.wait.valid & ~execute.wait.ready),
            self.events.sync_signal.eq(execute.signal.valid & ~execute.signal.ready),
            self.events.end.eq(run & execute.ended),
            self.events.report.eq((state == _State.ABORT) | (state == _State.REPORT)),
            self.events.execute.eq(run),
        ]
        return m
