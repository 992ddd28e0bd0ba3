"""The interrupt line: which causes are pending, and when fences are told together."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.registers import RegisterMap
from sley.hw.elaboration.layouts import struct


class Interrupts(wiring.Component):
    """Raises the line for causes that are pending and enabled.

    An error raises it at once. A fence does when IRQ_COALESCE.count of them have been raised since no enabled fence was
    pending, or IRQ_COALESCE.cycles after the first; it then stays high until software has cleared all of them.

    Parameters
    ----------
    config : ChipConfig
        Sets the number of queues.

    Members
    -------
    status, enable, coalesce : In(layout of the register)
        The registers IRQ_STATUS, IRQ_ENABLE and IRQ_COALESCE.
    fence : In(queues)
        High for the cycle in which its bit is set in ``status``.
    irq : Out(1)
        The line, two cycles later.
    """

    status: data.View
    enable: data.View
    coalesce: data.View
    fence: Signal
    irq: Signal

    def __init__(self, config: ChipConfig) -> None:
        shapes = {
            name: struct(RegisterMap(config)[f"CHIP.IRQ_{name.upper()}"].layout)
            for name in ("status", "enable", "coalesce")
        }
        members = {name: In(shape) for name, shape in shapes.items()}
        super().__init__({**members, "fence": In(config.queues), "irq": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        limit = self.coalesce
        count, cycles = Signal.like(limit.count), Signal.like(limit.cycles)
        due, pending, raised = Signal(), Signal(), Signal()
        m.d.comb += [
            pending.eq((self.status.fence & self.enable.fence).any()),
            raised.eq((self.fence & self.enable.fence).any()),
        ]
        with m.If(~pending):
            m.d.sync += [count.eq(raised), cycles.eq(0), due.eq(0)]
        with m.Elif(~due):
            m.d.sync += [
                count.eq(count + raised),
                cycles.eq(cycles + 1),
                due.eq((count >= limit.count) | (cycles >= limit.cycles)),
            ]
        fence_due = pending & (due | (limit.count <= 1))
        m.d.sync += self.irq.eq(fence_due | (self.status.error & self.enable.error).any())
        return m
