"""A chip whose memory bus is watched: an assertion fails when a burst touches a page that it must not."""

from amaranth import Module, Signal
from amaranth.hdl import Assert, Format
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from sley.abi.config import ChipConfig
from sley.abi.pages import PAGE_BITS
from sley.hw.bus.axi_lite import AxiLite
from sley.hw.chip import Chip
from sley.hw.memory.axi import axi4_signature


class WatchedChip(wiring.Component):
    """A ``Chip`` behind a watch.

    A read or write address whose page has its bit set in the register ``forbidden`` fails an assertion in the cycle
    in which it is valid, whether or not memory accepts it. Bit k is page k of memory; the bit behind the last page
    stands for all addresses beyond. No logic writes the register: a test does, with ``poke("sley.forbidden", bits)``.
    A burst stays in one page, so its first address tells all.

    Parameters
    ----------
    config : ChipConfig
        The chip.
    pages : int
        Pages of memory.

    Members
    -------
    s_axil : In(AxiLite()), m_axi : Out(axi4_signature(config)), irq : Out(1)
        Those of ``Chip``.
    """

    s_axil: wiring.PureInterface
    m_axi: wiring.PureInterface
    irq: Signal

    def __init__(self, config: ChipConfig, pages: int) -> None:
        self._config, self._pages = config, pages
        super().__init__({"s_axil": In(AxiLite()), "m_axi": Out(axi4_signature(config)), "irq": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.chip = chip = Chip(self._config)
        connect(m, flipped(self.s_axil), chip.s_axil)
        connect(m, chip.m_axi, flipped(self.m_axi))
        m.d.comb += self.irq.eq(chip.irq)
        forbidden = Signal(self._pages + 1, reset_less=True)
        m.d.sync += forbidden.eq(forbidden)
        for name, valid, address, length in (
            ("read", chip.m_axi.arvalid, chip.m_axi.araddr, chip.m_axi.arlen),
            ("write", chip.m_axi.awvalid, chip.m_axi.awaddr, chip.m_axi.awlen),
        ):
            page, bad = Signal(range(self._pages + 1)), Signal()
            number = address >> PAGE_BITS
            with m.If(number < self._pages):
                m.d.comb += page.eq(number)
            with m.Else():
                m.d.comb += page.eq(self._pages)
            m.d.comb += bad.eq(valid & forbidden.bit_select(page, 1))
            message = Format(name + " of {:#010x}, {} beats behind the first, in a forbidden page", address, length)
            m.d.sync += Assert(~bad, message)
        return m
