"""The standard library of Amaranth: FIFOs, CRCs, ways between clocks."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib import cdc, crc, fifo, wiring
from amaranth.lib.crc import catalog
from amaranth.lib.wiring import In, Out
from bench import cases, lockstep


class Between(wiring.Component):
    """A signal on its way from one domain to another."""

    i: In(3)
    o: Out(3)

    def __init__(self, make: Callable[[Signal, Signal], Any]) -> None:
        self._make = make
        super().__init__()

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        sent = Signal(3)
        m.d.sync += sent.eq(self.i)
        m.submodules.way = self._make(sent, self.o)
        return m


class Resettable(wiring.Component):
    """A counter in a domain whose reset comes from a port, asynchronously."""

    go: In(1)
    reset: In(1)
    count: Out(8)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.domains.own = own = ClockDomain(async_reset=True)
        clock = Signal()
        m.submodules.synchronizer = cdc.ResetSynchronizer(self.reset, domain="own")
        m.d.comb += [own.clk.eq(clock), clock.eq(self.go)]
        m.d.own += self.count.eq(self.count + 3)
        return m


DESIGNS: dict[str, Callable[[], Any]] = {
    "fifo": lambda: fifo.SyncFIFO(width=9, depth=5),
    "buffered_fifo": lambda: fifo.SyncFIFOBuffered(width=70, depth=9),
    "async_fifo": lambda: fifo.AsyncFIFO(width=8, depth=8),
    "crc_16": lambda: catalog.CRC16_CCITT(data_width=8).create(),
    "synchronizer": lambda: Between(lambda i, o: cdc.FFSynchronizer(i, o, o_domain="other", stages=3, init=5)),
    "edge_synchronizer": lambda: Between(lambda i, o: cdc.AsyncFFSynchronizer(i[0], o[0], o_domain="other")),
    "reset_synchronizer": lambda: Resettable(),
}


MORE: dict[str, Callable[[], Any]] = {
    "fifo_of_one": lambda: fifo.SyncFIFO(width=4, depth=1),
    "async_buffered_fifo": lambda: fifo.AsyncFIFOBuffered(width=12, depth=9),
    "crc_32": lambda: catalog.CRC32_ETHERNET(data_width=32).create(),
    "crc_5": lambda: crc.Algorithm(
        crc_width=5, polynomial=5, initial_crc=31, reflect_input=True, reflect_output=True, xor_output=31
    )(data_width=16).create(),
    "crc_82": lambda: catalog.CRC82_DARC(data_width=5).create(),
}
"""Those that CI has no time for."""


@pytest.mark.parametrize("name", cases(DESIGNS, MORE))
def test_lockstep(name: str) -> None:
    lockstep((DESIGNS | MORE)[name])
