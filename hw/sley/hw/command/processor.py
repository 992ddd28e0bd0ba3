"""The command processor: a node of the mesh that turns packets in memory into work."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.command import QueueEvent
from sley.abi.config import ChipConfig
from sley.abi.counters import CHIP_GROUPS, COUNTER_BITS
from sley.abi.network import Tag
from sley.abi.placement import command_node
from sley.abi.timing import COPY_READER_BURSTS, INVALIDATE_CYCLES
from sley.hw.command.bank import command_registers
from sley.hw.command.copies import CopyScheduler
from sley.hw.command.debug import CORE_UNITS, CoreDebug, CoreWatch
from sley.hw.command.executor import Executor
from sley.hw.command.grids.scheduler import BlockScheduler
from sley.hw.command.interrupts import Interrupts
from sley.hw.command.queue import Queue
from sley.hw.command.queue_records import QueueRecords
from sley.hw.command.words import WordAccess
from sley.hw.counters.select import COUNTER_SELECT
from sley.hw.memory.reader import MemoryReader
from sley.hw.memory.writer import MemoryWriter
from sley.hw.mmu.port import TranslatedPort, attach
from sley.hw.mmu.tlb import Invalidation
from sley.hw.noc.messages import request_flit, response_flit


class CommandProcessor(wiring.Component):
    """Everything between the registers and the network.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    chip, queue_shared, doorbell_shared : In(see command_registers)
        To those of ``command_bank``.
    queue : In(see command_registers).array(queues)
        Likewise, of each queue.
    request : Out(stream of request_flit(config)), response : In(stream of response_flit(config))
        To and from the router; ``response`` is accepted without help of ``request``.
    irq : Out(1)
        Level, an enabled cause is pending.
    core_debug : In(CoreDebug).array(cores)
        State of each core.
    abort : Out(queues)
        Queues whose blocks shall end; a register.
    counter_select : Out(COUNTER_SELECT), bus_counter : In(COUNTER_BITS)
        Which counter the cores and the memory bus show; that of the bus, in the same cycle.
    invalidate : Out(Invalidation)
        To all translators and cores; those in here receive it too.
    reset_request : Out(1)
        High for a cycle when software asks for a reset of the chip.
    resetting : In(1)
        That reset is in progress, no packet is started.
    ended : Out(cores)
        Of each core, whether its block of the current gang has ended.
    """

    chip: wiring.PureInterface
    queue: list[wiring.PureInterface]
    queue_shared: wiring.PureInterface
    doorbell_shared: wiring.PureInterface
    request: stream.Interface
    response: stream.Interface
    irq: Signal
    core_debug: list[data.View]
    abort: Signal
    counter_select: data.View
    bus_counter: Signal
    invalidate: data.View
    reset_request: Signal
    resetting: Signal
    ended: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                **{name: port.flip() for name, port in command_registers(config).items() if name != "context"},
                "request": Out(stream.Signature(request_flit(config))),
                "response": In(stream.Signature(response_flit(config))),
                "irq": Out(1),
                "core_debug": In(CoreDebug).array(config.cores),
                "abort": Out(config.queues),
                "counter_select": Out(COUNTER_SELECT),
                "bus_counter": In(COUNTER_BITS),
                "invalidate": Out(Invalidation),
                "reset_request": Out(1),
                "resetting": In(1),
                "ended": Out(config.cores),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, chip, node = self._config, self.chip, command_node(self._config)

        tags: list[Any] = [Tag.FETCH, Tag.LOAD, Tag.STORE, Tag.WORD, Tag.MESSAGE]
        m.submodules.executor = executor = Executor(config, tag=tags[0], source=node)
        m.submodules.scheduler = scheduler = BlockScheduler(config)
        m.submodules.copies = copies = CopyScheduler(config)
        m.submodules.reader = reader = MemoryReader(
            config, tag=tags[1], source=node, beats=COPY_READER_BURSTS * config.max_burst
        )
        m.submodules.writer = writer = MemoryWriter(config, tag=tags[2], source=node)
        m.submodules.words = words = WordAccess(config, tag=tags[3], source=node)
        m.submodules.port = port = TranslatedPort(config, tags)
        m.submodules.watch = watch = CoreWatch(config)
        m.submodules.interrupts = interrupts = Interrupts(config)
        m.submodules.records = records = QueueRecords(config)

        wiring.connect(m, port.request_i, wiring.flipped(self.request))
        wiring.connect(m, wiring.flipped(self.response), port.response_o)
        for tag, (request, response) in {
            Tag.FETCH: (executor.request, executor.response),
            Tag.WORD: (words.request, words.response),
            Tag.MESSAGE: (scheduler.message, scheduler.done),
        }.items():
            wiring.connect(m, request, port.request[tags.index(tag)])
            wiring.connect(m, port.response[tags.index(tag)], response)
        attach(m, reader, port, tags.index(Tag.LOAD))
        attach(m, writer, port, tags.index(Tag.STORE))
        m.d.comb += port.invalidate.eq(self.invalidate)
        wiring.connect(m, executor.launch, scheduler.i)
        wiring.connect(m, scheduler.o, executor.grid_result)
        wiring.connect(m, executor.copy, copies.i)
        wiring.connect(m, copies.o, executor.copy_result)
        wiring.connect(m, copies.read, reader.i)
        wiring.connect(m, reader.o, copies.beats)
        wiring.connect(m, copies.write, writer.i)
        wiring.connect(m, copies.data, writer.data)
        wiring.connect(m, executor.words, words.i)

        time = Signal(64)
        m.d.sync += time.eq(time + 1)
        m.d.comb += [
            copies.writing.eq(writer.busy),
            copies.write_error.eq(writer.error),
            executor.word_done.eq(words.done),
            executor.word_error.eq(words.error),
            executor.word.eq(words.value),
            executor.time.eq(time),
            scheduler.packet.eq(executor.beat),
            executor.stall.eq(self.resetting),
            self.ended.eq(scheduler.ended),
        ]

        shared, bell = self.queue_shared, self.doorbell_shared
        wiring.connect(m, wiring.flipped(shared), records.registers)
        m.d.comb += [
            executor.readback.eq(shared.readback.address),
            executor.watchdog.eq(shared.watchdog.cycles),
            records.time.eq(time),
            records.doorbell.eq(bell.write_index.index),
            records.owner.eq(executor.queue),
            records.faulted.eq((executor.event & QueueEvent.FAULT).any()),
            records.fault.eq(executor.fault),
        ]

        failed, aborting = Signal(config.queues), Signal(config.queues)
        m.d.comb += [scheduler.abort.eq(aborting), copies.abort.eq(aborting)]
        m.d.sync += self.abort.eq(aborting)
        for k in range(config.queues):
            m.submodules[f"queue{k}"] = queue = Queue(config)
            registers = self.queue[k]
            wiring.connect(m, wiring.flipped(registers), queue.registers)
            view = executor.queues[k]
            event = Mux(executor.queue[k], executor.event, 0) | Mux(executor.taken[k], QueueEvent.TAKE, 0)
            m.d.comb += [
                queue.event.eq(event),
                queue.doorbell.eq(bell.write_index.index),
                queue.doorbell_written.eq(bell.write_index_written[k]),
                queue.fault_code.eq(executor.fault.code),
                queue.buffer.eq(executor.buffer),
                queue.buffer_packets.eq(executor.buffer_packets),
                executor.pending[k].eq(queue.pending),
                queue.posted.eq(executor.posted[k]),
                queue.lost.eq(executor.lost[k]),
                queue.lost_code.eq(executor.lost_code),
                view.place.packet.eq(queue.packet),
                view.place.nested.eq(queue.nested),
                view.place.context.eq(registers.owner.context),
                view.ahead.eq(queue.ahead),
                view.stays.eq(queue.stays),
                view.read_next.eq(queue.read_next),
                *(user.priorities[k].eq(registers.owner.priority) for user in (executor, scheduler, copies)),
                failed[k].eq(queue.failed),
                aborting[k].eq(queue.aborting),
                records.rings[k].eq(queue.rings),
                records.rung[k].eq(queue.rung),
                records.errors[k].eq(queue.error),
            ]

        time_high = Signal(32)
        with m.If(chip.time_lo_read):
            m.d.sync += time_high.eq(time[32:])
        spreading = Signal(range(INVALIDATE_CYCLES + 1))
        invalidate = chip.invalidate
        m.d.sync += [
            self.invalidate.valid.eq(chip.invalidate_written),
            self.invalidate.context.eq(invalidate.context),
            self.invalidate.contents.eq(invalidate.contents),
        ]
        with m.If(chip.invalidate_written):
            m.d.sync += spreading.eq(INVALIDATE_CYCLES)
        with m.Elif(spreading != 0):
            m.d.sync += spreading.eq(spreading - 1)

        m.d.comb += [
            interrupts.status.eq(chip.irq_status),
            interrupts.enable.eq(chip.irq_enable),
            interrupts.coalesce.eq(chip.irq_coalesce),
            interrupts.fence.eq(executor.fence),
            self.irq.eq(interrupts.irq),
            chip.time_lo.cycles.eq(time[:32]),
            chip.time_hi.cycles.eq(time_high),
            chip.irq_status_set.fence.eq(executor.fence),
            chip.irq_status_set.error.eq(failed),
            chip.status.resetting.eq(self.resetting),
            chip.status.invalidating.eq(spreading != 0),
            self.reset_request.eq(chip.control_written & chip.control.reset),
        ]

        bus_counter = Signal(COUNTER_BITS)
        bus_selected = chip.counter_select.group.matches(*CHIP_GROUPS)
        m.d.comb += [
            watch.select.eq(chip.core_select.core),
            watch.packets.eq((executor.event & QueueEvent.RETIRE).any()),
            watch.blocks.eq(scheduler.retired),
            chip.progress.count.eq(watch.progress),
            chip.core_pc.pc.eq(watch.core.pc),
            chip.core_pc.running.eq(watch.core.running),
            chip.core_semaphores_lo["values"].eq(watch.core.semaphores[:32]),
            chip.core_semaphores_hi["values"].eq(watch.core.semaphores[32:]),
            self.counter_select.freeze.eq(chip.counter_control.freeze),
            self.counter_select.counter.eq(chip.counter_select.counter),
            self.counter_select.group.eq(chip.counter_select.group),
            chip.counter.value.eq(Mux(bus_selected, bus_counter, watch.counter)),
        ]
        m.d.sync += bus_counter.eq(self.bus_counter)
        for unit in CORE_UNITS:
            m.d.comb += chip.core_units[unit].eq(watch.core[unit])
        for k in range(config.cores):
            m.d.comb += watch.cores[k].eq(self.core_debug[k])
        return m
