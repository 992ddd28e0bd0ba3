"""Notices a block in which nothing happens."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Watchdog(wiring.Component):
    """Counts the cycles since the last progress.

    Members
    -------
    limit : In(32)
        So many cycles without progress are too many; 0: never. Changes only with ``progress``.
    progress : In(1)
        In this cycle.
    expired : Out(1)
        For one cycle, when ``limit`` cycles without progress have passed.
    """

    limit: Signal
    progress: Signal
    expired: Signal

    def __init__(self) -> None:
        super().__init__({"limit": In(32), "progress": In(1), "expired": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(32, reset_less=True)
        m.d.sync += self.expired.eq(~self.progress & (left == 1))
        with m.If(self.progress):
            m.d.sync += left.eq(self.limit)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return m
