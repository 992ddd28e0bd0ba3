# amaranth: UnusedElaboratable=no
"""The top level: a whole chip between an AXI4-Lite target, an AXI4 manager and an interrupt line."""

from amaranth import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from sley.abi.config import ChipConfig
from sley.abi.placement import command_node, core_node, memory_node
from sley.hw.bus.axi_lite import AxiLite, AxiLiteTarget
from sley.hw.command.bank import command_bank
from sley.hw.command.processor import CommandProcessor
from sley.hw.core.core import Core
from sley.hw.counters.bus import BUS_EVENTS, BusCounters
from sley.hw.elaboration.shared import shared, split
from sley.hw.memory.axi import axi4_signature
from sley.hw.mmu.gateway import MemoryGateway
from sley.hw.noc.mesh import Mesh
from sley.hw.reset import ResetControl


def chip_signature(config: ChipConfig) -> wiring.Signature:
    """Ports of a chip with that configuration; see ``Chip``."""
    return wiring.Signature({"s_axil": In(AxiLite()), "m_axi": Out(axi4_signature(config)), "irq": Out(1)})


class Chip(wiring.Component):
    """A Sley neural processing unit in one clock domain.

    Parameters
    ----------
    config : ChipConfig
        Sizes; see ``sley.abi.config.PRESETS``.

    Members
    -------
    s_axil : In(AxiLite())
        Registers, 64 KiB; see ``sley.abi.registers``.
    m_axi : Out(axi4_signature(config))
        Device memory: one scratchpad row wide, bursts of up to ``max_burst`` beats that never cross 4 KiB, ID 0.
    irq : Out(1)
        Level, high while an enabled cause is pending.
    """

    s_axil: wiring.PureInterface
    m_axi: wiring.PureInterface
    irq: Signal

    def __init__(self, config: ChipConfig) -> None:
        self.config = config
        super().__init__(chip_signature(config))

    def elaborate(self, platform: object) -> Module:
        c = self.config
        m = Module()
        m.submodules.target = target = AxiLiteTarget()
        m.submodules.bank = bank = command_bank(c)
        m.submodules.memory = memory = MemoryGateway(c)
        m.submodules.reset_control = control = ResetControl()
        command, mesh = CommandProcessor(c), Mesh(c)
        cores = [Core(c) for _ in range(c.cores)]
        m.submodules.command = split(command, "sley_command", platform, reset=control.reset)
        m.submodules.mesh = ResetInserter(control.reset)(mesh)
        for index, core in enumerate(cores):
            m.submodules[f"core{index}"] = shared(core, "sley_core", platform, reset=control.reset)

        connect(m, flipped(self.s_axil), target.bus)
        connect(m, target.registers, bank.bus)
        connect(m, bank.chip, command.chip)
        connect(m, bank.queue_shared, command.queue_shared)
        connect(m, bank.doorbell_shared, command.doorbell_shared)
        for k in range(c.queues):
            connect(m, bank.queue[k], command.queue[k])
        connect(m, memory.axi, flipped(self.m_axi))
        for k in range(c.contexts):
            connect(m, bank.context[k], memory.roots[k])
        m.d.comb += [
            self.irq.eq(command.irq),
            control.request.eq(command.reset_request),
            command.resetting.eq(control.resetting),
            memory.drain.eq(control.drain),
            control.drained.eq(memory.drained),
        ]

        if c.cores > 1:
            m.d.comb += memory.ended.eq(command.ended)

        node = command_node(c)
        connect(m, command.request, mesh.request_i[node])
        connect(m, mesh.response_o[node], command.response)
        node = memory_node(c)
        connect(m, mesh.request_o[node], memory.request_o)
        connect(m, memory.response_i, mesh.response_i[node])
        for index, core in enumerate(cores):
            x, y = node = core_node(c, index)
            connect(m, core.request_i, mesh.request_i[node])
            connect(m, mesh.response_o[node], core.response_o)
            connect(m, mesh.request_o[node], core.request_o)
            connect(m, core.response_i, mesh.response_i[node])
            m.d.comb += [core.index.eq(index), core.x.eq(x), core.y.eq(y), command.core_debug[index].eq(core.debug)]
            m.d.comb += [
                core.counter_select.eq(command.counter_select),
                core.cancel.eq(command.abort),
                core.invalidate.eq(command.invalidate),
            ]

        m.submodules.bus_counters = counters = BusCounters()
        m.d.comb += [counters.axi[name].eq(getattr(memory.axi, name)) for name in BUS_EVENTS.members]
        m.d.comb += [counters.select.eq(command.counter_select), command.bus_counter.eq(counters.value)]
        return m
