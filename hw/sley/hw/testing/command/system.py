# amaranth: UnusedElaboratable=no
"""A command processor with its register bank, between memory and cores."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.hw.bus.axi_lite import RegisterBus
from sley.hw.command.bank import command_bank
from sley.hw.command.debug import CoreDebug
from sley.hw.command.processor import CommandProcessor
from sley.hw.command.records import INDEX_BITS
from sley.hw.noc.messages import request_flit, response_flit
from sley.hw.stream.arbiter import PacketArbiter


class CommandSystem(wiring.Component):
    """Command processor and register bank; answers come from two sides, memory and cores.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    bus : In(RegisterBus())
        The registers.
    request : Out(stream of request_flit(config))
        What the processor sends.
    memory, cores : In(stream of response_flit(config))
        Answers of memory, and of cores.
    core_debug : In(CoreDebug).array(cores)
        State of each core.
    states : Out(4).array(queues), read_indices : Out(INDEX_BITS).array(queues)
        Of each queue.
    irq : Out(1), reset_request : Out(1), resetting : In(1)
        As of ``CommandProcessor``.
    watched : tuple
        Parts of the processor, see ``Design``.
    """

    bus: wiring.PureInterface
    request: stream.Interface
    memory: stream.Interface
    cores: stream.Interface
    core_debug: list[data.View]
    states: list[Signal]
    read_indices: list[Signal]
    irq: Signal
    reset_request: Signal
    resetting: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        self._processor = CommandProcessor(config)
        self._inside = self._processor.elaborate(None)  # now, so that its parts can be named
        parts = self._inside.submodules
        self.watched = (self._processor, parts.executor, parts.words, parts.copies, parts.records, parts.interrupts)
        super().__init__(
            {
                "bus": In(RegisterBus()),
                "request": Out(stream.Signature(request_flit(config))),
                "memory": In(stream.Signature(response_flit(config))),
                "cores": In(stream.Signature(response_flit(config))),
                "core_debug": In(CoreDebug).array(config.cores),
                "states": Out(4).array(config.queues),
                "read_indices": Out(INDEX_BITS).array(config.queues),
                "irq": Out(1),
                "reset_request": Out(1),
                "resetting": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bank = bank = command_bank(self._config)
        m.submodules.processor = self._inside
        processor = self._processor
        m.submodules.merge = merge = PacketArbiter(response_flit(self._config), 2)
        wiring.connect(m, wiring.flipped(self.bus), bank.bus)
        wiring.connect(m, bank.chip, processor.chip)
        wiring.connect(m, bank.queue_shared, processor.queue_shared)
        wiring.connect(m, bank.doorbell_shared, processor.doorbell_shared)
        for k in range(self._config.queues):
            wiring.connect(m, bank.queue[k], processor.queue[k])
            m.d.comb += [
                self.states[k].eq(processor.queue[k].state.state),
                self.read_indices[k].eq(processor.queue[k].read_index.index),
            ]
        wiring.connect(m, processor.request, wiring.flipped(self.request))
        wiring.connect(m, wiring.flipped(self.memory), merge.i[0])
        wiring.connect(m, wiring.flipped(self.cores), merge.i[1])
        wiring.connect(m, merge.o, processor.response)
        for port, debug in zip(processor.core_debug, self.core_debug, strict=True):
            m.d.comb += port.eq(debug)
        m.d.comb += [
            self.irq.eq(processor.irq),
            self.reset_request.eq(processor.reset_request),
            processor.resetting.eq(self.resetting),
        ]
        return m
