"""The matrix unit: a systolic array with the engines that feed and drain it."""

from amaranth import Module, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import Out

from sley.abi.config import ChipConfig
from sley.abi.counters import MatrixCycle
from sley.abi.instructions import SEMAPHORES
from sley.abi.types import ElementType
from sley.hw.core.matrix.accumulate import Accumulate
from sley.hw.core.matrix.activations import ActivationStreamer
from sley.hw.core.matrix.array import SystolicArray, settle_cycles
from sley.hw.core.matrix.front import MatrixFront
from sley.hw.core.matrix.weights import WeightLoader
from sley.hw.core.sram.memories import accumulator_read, accumulator_write, scratchpad_read
from sley.hw.core.unit import Fault, unit_signature
from sley.hw.counters.classes import class_events
from sley.hw.stream.fifo import StreamFIFO

IN_FLIGHT = 16
"""MATMULs that may be here, waiting or in execution, without having signalled before the next one waits. One of bf16
takes less than 9 N cycles."""


class MatrixUnit(wiring.Component):
    """Executes WEIGHTS, MATMUL and the SETs of the matrix unit.

    Commands come in order; WEIGHTS run ahead in an engine of their own, so that the next tile loads while a MATMUL
    streams. MATMULs follow one another without an idle cycle in the array when their weights are there, and weights
    are there in time when the MATMUL before has as many rows as they, and one more if they are fewer than N.

    Theory of operation: docs/theory/matrix.md.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    command, fault, busy, abort, clear : as of unit_signature
        The ports of a unit.
    signal, retired : as of unit_signature(signals=2)
        Number 0 of WEIGHTS (all its rows have been read) and SET, number 1 of MATMUL (its last row has been written).
    activations : Out(read_port), weights : Out(read_port)
        Readers of the scratchpad.
    accumulate_read : Out(read_port), accumulate_write : Out(write_port)
        Ports of the accumulators. They do not wait: they must be port 0, and on chips with int8 alone its data must be
        0 where nothing was read.
    rows : Out(1)
        A row of activations enters the array.
    events : Out(class_events(MatrixCycle))
        For counters: all but ``signal``, ``semaphore`` and ``empty``.

    Rules
    -----
    Faults are raised in program order, although two commands execute at a time:

    1. LOCAL_ADDRESS with the first row outside. A MATMUL to accumulator rows that do not exist does nothing; one, or a
       WEIGHTS, that walks out of the scratchpad stops there.
    2. BAD_PARAMETER with rc, if above 65535 or not 1 to N for WEIGHTS, or with the number of a parameter.
    3. ILLEGAL_INSTRUCTION for bf16 where there is none.

    Latency
    -------
    4 cycles from ``command`` to the first read granted, ``write_latency`` from a row's read to its write, 1 more to the
    signal.

    Throughput
    ---------- A row a cycle. A MATMUL waits for the rows that it accumulates to (see ``Hazards``), and for the last row
    of the other type.
    """

    command: stream.Interface
    signal: list[stream.Interface]
    fault: data.View
    busy: Signal
    retired: Signal
    abort: Signal
    clear: Signal
    activations: wiring.PureInterface
    weights: wiring.PureInterface
    accumulate_read: wiring.PureInterface
    accumulate_write: wiring.PureInterface
    rows: Signal
    events: data.View

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                **unit_signature(signals=2).members,
                "activations": Out(scratchpad_read(config)),
                "weights": Out(scratchpad_read(config)),
                "accumulate_read": Out(accumulator_read(config)),
                "accumulate_write": Out(accumulator_write(config)),
                "rows": Out(1),
                "events": Out(class_events(MatrixCycle)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        front = MatrixFront(self._config)
        loader = WeightLoader(self._config)
        streamer = ActivationStreamer(self._config)
        accumulate = Accumulate(self._config)
        started = StreamFIFO(SEMAPHORES, IN_FLIGHT)  # signal sets of the MATMULs that are here
        m.submodules.array = array = SystolicArray(self._config)
        # An abort is a reset of all control but the array's, which holds nothing that outlives a load.
        aborted = ResetInserter(self.abort)
        m.submodules.front = aborted(front)
        m.submodules.loader = aborted(loader)
        m.submodules.streamer = aborted(streamer)
        m.submodules.accumulate = aborted(accumulate)
        m.submodules.started = aborted(started)

        wiring.connect(m, front.weights, loader.i)
        wiring.connect(m, front.matmuls, streamer.i)
        wiring.connect(m, streamer.signal, started.i)
        wiring.connect(m, loader.read, wiring.flipped(self.weights))
        wiring.connect(m, streamer.read, wiring.flipped(self.activations))
        wiring.connect(m, accumulate.read, wiring.flipped(self.accumulate_read))
        wiring.connect(m, accumulate.write, wiring.flipped(self.accumulate_write))
        m.d.comb += [
            front.i.payload.eq(self.command.payload),
            front.i.valid.eq(self.command.valid & ~self.abort),
            self.command.ready.eq(front.i.ready | self.abort),
            front.clear.eq(self.clear | self.abort),
            front.engines_idle.eq(loader.idle & streamer.idle),
            loader.swap.eq(streamer.swap),
            loader.swaps.eq(streamer.swaps),
            loader.quiet.eq(streamer.quiet),
            streamer.loaded.eq(loader.loaded),
            array.weights.eq(loader.weights),
            array.weights_valid.eq(loader.weights_valid),
            array.weights_row.eq(loader.weights_row),
            array.weights_rest.eq(loader.weights_rest),
            array.activations.eq(streamer.activations),
            array.swap.eq(streamer.activations_swap),
            accumulate.sums.eq(array.sums),
            accumulate.slot.eq(streamer.slot),
            self.rows.eq(accumulate.entering),
        ]

        self._types(m, array, loader, streamer, accumulate)
        signalling = self._signals(m, front, loader, started, accumulate.done)
        # A MATMUL in the streamer has its signal set in the queue, so ``signalling`` says that it is there.
        m.d.comb += self.busy.eq(~front.idle | ~loader.idle | signalling)
        unloaded = streamer.quiet & ~streamer.idle
        m.d.comb += [
            self.events.row_int8.eq(streamer.slot.row & ~streamer.row_bf16),
            self.events.row_bf16.eq(streamer.slot.row & streamer.row_bf16),
            self.events.operands.eq(
                (self.activations.valid & ~self.activations.ready)
                | (unloaded & self.weights.valid & ~self.weights.ready)
            ),
            self.events.weights.eq(unloaded),
            self.events.hazard.eq(streamer.hazard),
            self.events.command.eq(~front.idle | ~loader.idle | ~streamer.idle),
            self.events.drain.eq(self.busy),
        ]
        fault = Signal(Fault, reset_less=True)
        raised = Signal()
        # The engines keep program order among themselves, so at most one raises a fault in a cycle.
        m.d.sync += raised.eq((front.fault.valid | loader.fault.valid | streamer.fault.valid) & ~self.abort)
        m.d.sync += fault.eq(front.fault)
        for source in (loader.fault, streamer.fault):
            with m.If(source.valid):
                m.d.sync += fault.eq(source)
        m.d.comb += [self.fault.eq(fault), self.fault.valid.eq(raised)]
        return m

    def _types(
        self,
        m: Module,
        array: SystolicArray,
        loader: WeightLoader,
        streamer: ActivationStreamer,
        accumulate: Accumulate,
    ) -> None:
        """What tells the types of operands apart."""
        if not self._config.has(ElementType.BF16):
            m.d.comb += [loader.settled.eq(1), streamer.settled.eq(1)]
            return
        cycles = settle_cycles(self._config)
        settling = Signal(range(cycles))  # not reset by an abort, as the array is not
        with m.If(loader.turn_bf16 | streamer.swap_bf16):
            m.d.sync += settling.eq(cycles - 1)
        with m.Elif(settling != 0):
            m.d.sync += settling.eq(settling - 1)
        m.d.comb += [
            loader.settled.eq((settling == 0) & ~streamer.swap_bf16),
            streamer.settled.eq(settling == 0),
            array.weights_bf16.eq(loader.weights_bf16),
            array.old.eq(accumulate.old),
        ]
        for part in (array, accumulate):
            m.d.comb += [part.bf16.eq(streamer.bf16), part.run.eq(streamer.run)]

    def _signals(
        self, m: Module, front: MatrixFront, loader: WeightLoader, started: StreamFIFO, done: Signal
    ) -> Signal:
        """Both signal streams; the value says whether a set is still to be accepted on one of them."""
        offered = Signal()
        offered_set = Signal(SEMAPHORES, reset_less=True)
        # MATMULs whose last row is written, not signalled. What is accepted is known late, and counts a cycle later.
        complete = Signal(range(IN_FLIGHT + 3))
        accepted = Signal()
        before = Signal.like(complete)  # this cycle
        some = Signal()  # of them
        m.d.comb += [
            self.signal[0].valid.eq(offered),
            self.signal[0].payload.eq(offered_set),
            self.signal[1].valid.eq(started.o.valid & some),
            self.signal[1].payload.eq(started.o.payload),
            started.o.ready.eq(self.retired[1]),
        ]
        m.d.comb += [self.retired[k].eq(s.valid & s.ready) for k, s in enumerate(self.signal)]
        with m.If(~offered | self.signal[0].ready):
            m.d.comb += loader.signal.ready.eq(1)
            m.d.comb += front.set_done.ready.eq(~loader.signal.valid)
            m.d.sync += offered.eq(loader.signal.valid | front.set_done.valid)
            m.d.sync += offered_set.eq(loader.signal.payload & loader.signal.valid.replicate(SEMAPHORES))
        m.d.sync += [
            accepted.eq(self.retired[1]),
            complete.eq(before + done),
            some.eq(done.any() | before[1:].any() | (before[0] & ~self.retired[1])),
        ]
        m.d.comb += before.eq(complete - accepted)
        with m.If(self.abort):
            m.d.sync += [offered.eq(0), accepted.eq(0), complete.eq(0), some.eq(0)]
        return offered | loader.signal.valid | ~started.empty
