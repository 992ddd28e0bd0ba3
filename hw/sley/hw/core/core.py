"""A core: the sequencer, its four units, their semaphores and their memories, at one node of the mesh."""

from collections.abc import Iterable
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from sley.abi.config import ChipConfig
from sley.abi.faults import UNITS, Unit, UnitState
from sley.abi.network import COORDINATE_BITS, Tag
from sley.hw.command.debug import CoreDebug
from sley.hw.core.load.unit import LoadUnit
from sley.hw.core.matrix.unit import MatrixUnit
from sley.hw.core.scrub import Scrub
from sley.hw.core.semaphores import Semaphores
from sley.hw.core.sequencer.launch import CORE_BITS
from sley.hw.core.sequencer.sequencer import Sequencer
from sley.hw.core.sram import memories
from sley.hw.core.store.unit import StoreUnit
from sley.hw.core.unit_front import UnitFront
from sley.hw.core.vector.unit import VectorUnit
from sley.hw.counters.core import CoreCounters
from sley.hw.counters.select import COUNTER_SELECT
from sley.hw.elaboration.shared import split
from sley.hw.memory.reader import MemoryReader
from sley.hw.memory.writer import MemoryWriter
from sley.hw.mmu.port import TranslatedPort, attach
from sley.hw.mmu.tlb import Invalidation
from sley.hw.noc.messages import request_flit, response_flit

READ_WEIGHTS = (1, 16, 1)
"""Packets in a row of fetch, Load and Store: a read is one flit, a write up to ``max_burst`` and one, and while it
passes several reads come together, on whose answers the units wait."""
FETCH_RUNS = 4
"""Runs in flight of program and arguments: there are two, more if the program is long."""


class Core(wiring.Component):
    """One core of the chip.

    Semaphore clients by priority: waiting, the sequencer and then the units in the order of ``UNITS``; signalling, the
    same with the two engines of the matrix unit (weights, product) one after the other.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    index : In(8), x : In(COORDINATE_BITS), y : In(COORDINATE_BITS)
        Number and place of the core: constants, as ports so that all cores are one module.
    request_i : Out(stream of request_flit), response_o : In(stream of response_flit)
        Its reads and writes, and the answers, which are always accepted in the end without help of the network.
    request_o : In(stream of request_flit), response_i : Out(stream of response_flit)
        Launch messages from the command processor, and the messages that end a block.
    cancel : In(config.queues)
        Blocks of these queues end with ABORTED.
    debug : Out(CoreDebug)
        What the debug registers show.
    invalidate : In(Invalidation)
        A context whose translations must be forgotten.
    counter_select : In(COUNTER_SELECT)
        The performance counter in ``debug``.
    """

    index: Signal
    x: Signal
    y: Signal
    request_i: stream.Interface
    request_o: stream.Interface
    response_i: stream.Interface
    response_o: stream.Interface
    cancel: Signal
    debug: data.View
    invalidate: data.View
    counter_select: data.View

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "index": In(CORE_BITS),
                "x": In(COORDINATE_BITS),
                "y": In(COORDINATE_BITS),
                "request_i": Out(stream.Signature(request_flit(config))),
                "response_o": In(stream.Signature(response_flit(config))),
                "request_o": In(stream.Signature(request_flit(config))),
                "response_i": Out(stream.Signature(response_flit(config))),
                "cancel": In(config.queues),
                "debug": Out(CoreDebug),
                "counter_select": In(COUNTER_SELECT),
                "invalidate": In(Invalidation),
            }
        )

    def elaborate(self, platform: object) -> Module:
        c = self._config
        m = Module()
        sequencer = Sequencer(c)
        m.submodules.sequencer = split(sequencer, "sley_sequencer", platform)
        m.d.comb += sequencer.core.eq(self.index)
        load, store, matrix, vector = LoadUnit(c), StoreUnit(c), MatrixUnit(c), VectorUnit(c)
        m.submodules.load = split(load, "sley_load", platform)
        m.submodules.store = split(store, "sley_store", platform)
        m.submodules.matrix = split(matrix, "sley_matrix", platform)
        m.submodules.vector = split(vector, "sley_vector", platform)
        m.d.comb += load.gang.eq(sequencer.gang)
        units: tuple[Any, ...] = (load, store, matrix, vector)

        m.submodules.scratchpad = scratchpad = memories.scratchpad(c)
        for reader, user in enumerate(
            (matrix.activations, matrix.weights, vector.scratchpad_read_a, vector.scratchpad_read_b, store.scratchpad)
        ):
            connect(m, user, scratchpad.read[reader])
        for writer, user in enumerate((load.scratchpad, vector.scratchpad_write)):
            connect(m, user, scratchpad.write[writer])

        m.submodules.accumulator = accumulator = memories.accumulators(c)
        lists = (load.list_read, store.list_read) if c.gather else ()
        for reader, user in enumerate(
            (matrix.accumulate_read, vector.accumulator_read_a, vector.accumulator_read_b, store.accumulator, *lists)
        ):
            connect(m, user, accumulator.read[reader])
        for writer, user in enumerate((matrix.accumulate_write, load.accumulator, vector.accumulator_write)):
            connect(m, user, accumulator.write[writer])

        m.submodules.semaphores = semaphores = Semaphores(waiters=1 + len(UNITS), signallers=6)
        connect(m, sequencer.wait, semaphores.wait[0])
        signals = (sequencer.signal, *load.signal, *store.signal, *matrix.signal, *vector.signal)
        for signaller, user in enumerate(signals):
            connect(m, user, semaphores.signal[signaller])
        m.d.comb += [semaphores.clear.eq(sequencer.clear), sequencer.semaphores.eq(semaphores.some)]

        invalidate = Signal(Invalidation)
        m.d.sync += invalidate.eq(self.invalidate)
        m.submodules.scrub = scrub = Scrub(c)
        m.d.comb += [
            scrub.start.eq(sequencer.starts),
            scrub.context.eq(sequencer.context),
            scrub.abort.eq(sequencer.abort),
            scrub.invalidate.eq(invalidate),
            sequencer.scrubbing.eq(scrub.busy),
            sequencer.forget.eq(invalidate.valid & invalidate.contents),
            scratchpad.clear.eq(scrub.clear),
            accumulator.clear.eq(scrub.clear),
            scrub.clearing.eq(scratchpad.clearing | accumulator.clearing),
            scrub.units_idle.eq(~matrix.busy & ~vector.busy),
        ]
        scrubbed = {Unit.MATRIX: scrub.matrix, Unit.VECTOR: scrub.vector}

        m.submodules.counters = counters = CoreCounters()
        # What happens is known late in a cycle, and which class that is only behind it.
        events: dict[str, Value] = {}
        for group in ("sequencer", *(unit.name.lower() for unit in UNITS)):
            port = getattr(counters, f"{group}_events")
            events[group] = Signal(port.shape(), name=f"{group}_events")
            happened = Signal(port.shape(), name=f"{group}_happened", reset_less=True)
            m.d.sync += happened.eq(events[group])
            m.d.comb += port.eq(happened)
        m.d.comb += [
            counters.select.eq(self.counter_select),
            events["sequencer"].eq(sequencer.events),
            events["matrix"].eq(matrix.events),
            events["vector"].eq(vector.events),
        ]

        quiet = [~scrub.busy]
        states = {"sequencer": sequencer.state}
        for k, (unit, kind) in enumerate(zip(units, UNITS, strict=True)):
            name = kind.name.lower()
            m.submodules[f"{name}_front"] = front = UnitFront(kind, c.unit_queue, c.program_words)
            connect(m, sequencer.dispatch[k], front.i)
            connect(m, front.wait, semaphores.wait[1 + k])
            if kind not in scrubbed:
                connect(m, front.o, unit.command)
            else:
                with m.If(scrub.busy):
                    connect(m, scrubbed[kind], unit.command)
                with m.Else():
                    connect(m, front.o, unit.command)
            m.d.comb += [
                front.abort.eq(sequencer.abort),
                unit.abort.eq(sequencer.abort),
                unit.clear.eq(sequencer.clear),
                sequencer.unit_fault[k].eq(unit.fault),
            ]
            quiet += [front.empty, ~unit.busy]
            signals_waiting = Cat(s.valid & ~s.ready for s in unit.signal).any()
            states[name] = Mux(
                signals_waiting,
                UnitState.SIGNAL,
                Mux(unit.busy, UnitState.RUN, Mux(front.waiting, UnitState.WAIT, UnitState.IDLE)),
            )
            m.d.comb += [
                events[name].signal.eq(signals_waiting),
                events[name].semaphore.eq(front.waiting),
                events[name].empty.eq(sequencer.running),
            ]
            taken = ~front.empty & ~front.waiting
            working = matrix.events.command if unit is matrix else unit.busy
            m.d.comb += events[name].command.eq(taken | working)
        m.d.comb += sequencer.units_idle.eq(Cat(quiet).all())

        node = (self.x, self.y)
        tags: list[Any] = [Tag.FETCH, Tag.LOAD, Tag.STORE]
        m.submodules.fetch_reader = fetch_reader = MemoryReader(
            c, tag=tags[0], source=node, depth=FETCH_RUNS, beats=2 * c.max_burst
        )
        m.submodules.load_reader = load_reader = MemoryReader(c, tag=tags[1], source=node)
        m.submodules.store_writer = store_writer = MemoryWriter(c, tag=tags[2], source=node)
        connect(m, sequencer.run, fetch_reader.i)
        connect(m, fetch_reader.o, sequencer.beat)
        for run, to_memory in ((load.run, load_reader.i), (store.run, store_writer.i)):
            m.d.comb += [
                to_memory.payload.eq(run.payload),
                to_memory.payload.context.eq(sequencer.context),
                to_memory.valid.eq(run.valid),
                run.ready.eq(to_memory.ready),
            ]
        connect(m, load_reader.o, load.beat)
        connect(m, store.data, store_writer.data)
        m.d.comb += [
            store_writer.cut.eq(store.cut),
            store_writer.phase.eq(store.phase),
            store.writer_pending.eq(store_writer.pending),
            store.writer_error.eq(store_writer.error),
            store.writer_error_phase.eq(store_writer.error_phase),
        ]

        m.submodules.port = port = TranslatedPort(c, tags, READ_WEIGHTS)
        parts: tuple[Any, ...] = (fetch_reader, load_reader, store_writer)
        for k, part in enumerate(parts):
            attach(m, part, port, k)
        m.d.comb += port.invalidate.eq(invalidate)
        connect(m, port.request_i, flipped(self.request_i))
        connect(m, flipped(self.response_o), port.response_o)
        connect(m, flipped(self.request_o), sequencer.launch)
        connect(m, sequencer.done, flipped(self.response_i))

        self._count_load(m, events["load"], load, load_reader)
        self._count_store(m, events["store"], store)
        m.d.comb += [
            counters.traffic_amounts.load_beats.eq(_moves(load_reader.response)),
            counters.traffic_amounts.load_bytes.eq(_requested_bytes(m, load.run)),
            counters.traffic_amounts.store_beats.eq(store_writer.sent),
            counters.traffic_amounts.store_bytes.eq(_requested_bytes(m, store.run)),
            counters.traffic_amounts.fetch_beats.eq(_moves(fetch_reader.response)),
            counters.traffic_amounts.scratchpad_weights.eq(_refused(matrix.weights)),
            counters.traffic_amounts.scratchpad_vector_a.eq(_refused(vector.scratchpad_read_a)),
            counters.traffic_amounts.scratchpad_vector_b.eq(_refused(vector.scratchpad_read_b)),
            counters.traffic_amounts.scratchpad_store.eq(_refused(store.scratchpad)),
            counters.traffic_amounts.scratchpad_vector_out.eq(_refused(vector.scratchpad_write)),
            counters.traffic_amounts.accumulator_vector_a.eq(_refused(vector.accumulator_read_a)),
            counters.traffic_amounts.accumulator_vector_b.eq(_refused(vector.accumulator_read_b)),
            counters.traffic_amounts.accumulator_store.eq(_refused(store.accumulator)),
            counters.traffic_amounts.accumulator_load.eq(_refused(load.accumulator)),
            counters.traffic_amounts.accumulator_vector_out.eq(_refused(vector.accumulator_write)),
            counters.rows_amounts.scratchpad_read.eq(_granted(m, scratchpad.read)),
            counters.rows_amounts.scratchpad_written.eq(_granted(m, scratchpad.write)),
            counters.rows_amounts.accumulator_read.eq(_granted(m, accumulator.read)),
            counters.rows_amounts.accumulator_written.eq(_granted(m, accumulator.write)),
        ]

        finished = Cat(unit.retired for unit in units)
        retired = Signal(len(finished), reset_less=True)
        m.d.sync += retired.eq(finished)
        m.d.comb += [sequencer.cancel.eq(self.cancel), sequencer.retired.eq(retired.any())]
        debug = Signal(CoreDebug)
        m.d.sync += [
            debug.pc.eq(sequencer.pc),
            debug.running.eq(sequencer.running),
            debug.semaphores.eq(Cat(semaphores.values)),
            debug.retired.eq(sum(retired)),
            *(debug[name].eq(state) for name, state in states.items()),
        ]
        # A counter comes out of a memory a cycle after it was selected, as the others come out of a register.
        m.d.comb += [self.debug.eq(debug), self.debug.counter.eq(counters.value)]
        return m

    def _count_load(self, m: Module, events: data.View, load: LoadUnit, reader: MemoryReader) -> None:
        """What its ports show of the load unit. A beat is written in the cycle behind the one that takes it."""
        beat = _moves(load.beat)
        before = Signal()
        m.d.sync += before.eq(beat)
        m.d.comb += [
            events.beat.eq(beat),
            events.row.eq((_moves(load.scratchpad) | _moves(load.accumulator)) & ~before),
            events.memory.eq(reader.busy & ~load.beat.valid),
            events.bank.eq(_refused(load.scratchpad) | _refused(load.accumulator)),
        ]

    def _count_store(self, m: Module, events: data.View, store: StoreUnit) -> None:
        """What its ports show of the store unit."""
        m.d.comb += [
            events.beat.eq(_moves(store.data)),
            events.memory.eq(_refused(store.data)),
            events.acknowledge.eq(store.acknowledging),
            events.bank.eq(_refused(store.scratchpad) | _refused(store.accumulator)),
        ]


def _moves(port: stream.Interface) -> Value:
    return port.valid & port.ready


def _refused(port: stream.Interface) -> Value:
    return port.valid & ~port.ready


def _granted(m: Module, ports: Iterable[Any]) -> Value:
    """Ports of a memory that were granted in the cycle before: grants are known late in a cycle."""
    granted = [_moves(port) for port in ports]
    before = Signal(len(granted))
    m.d.sync += before.eq(Cat(granted))
    return sum(before[1:], before[0])


def _requested_bytes(m: Module, run: stream.Interface) -> Signal:
    """The bytes of a run that was taken in the cycle before: the counters lie far from there."""
    taken, requested = Signal(), Signal.like(run.payload.bytes, reset_less=True)
    m.d.sync += [taken.eq(_moves(run)), requested.eq(run.payload.bytes)]
    return Mux(taken, requested, 0)
